// Package huggingface encodes text as a tokenizer.json of the Hugging Face tokenizers library says.
//
// It knows what the tokenizers of language models consist of: BPE over bytes or characters, WordPiece and Unigram, with their
// normalizers and pre-tokenizers. What it does not know is refused when the file is loaded, by name; nothing is encoded
// otherwise than the library would.
//
// One thing is left out on purpose: the space that some tokenizers put in front of a text. A prompt consists of many texts, and
// the tokens of a text must not depend on whether it is the first. Nor are special tokens added around a text; those that a text
// contains are found.
//
// Read load.go for the file, tokenizer.go for how a text is taken apart, then normalize.go, split.go with pattern.go, and the
// models in bpe.go, wordpiece.go and unigram.go.
package huggingface
