// Package tokens turns text into tokens and tokens into KV blocks, and makes text of a given number of tokens.
//
// Read tokenizer.go for what a tokenizer does, then fixed.go for the built-in rules and huggingface.go for those of models;
// prompt.go and request.go say what tokens a request consists of, and hashes.go how tokens become blocks.
package tokens
