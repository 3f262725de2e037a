"""Makes the tokenizers of this folder and the tokens that the Hugging Face tokenizers library finds with them.

    pip install tokenizers==0.23.3 && python make.py

Each file is {"tokenizer": the tokenizer.json, "texts": [...], "tokens": [[...], ...]}.
"""

import gzip
import json
import pathlib
import random

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).parent
PROSE = (HERE / "../../../../docs/workloads.md").read_text() + (HERE / "../../../../docs/architecture.md").read_text()
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
DEEPSEEK = [
    r"\p{N}{1,3}",
    r"[一-龥぀-ゟ゠-ヿ]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
]


def bpe(pre, specials=("<|end|>",), normalizer=None, **model):
    t = Tokenizer(models.BPE(**model))
    if normalizer:
        t.normalizer = normalizer
    t.pre_tokenizer, t.decoder = pre, decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    t.train_from_iterator([PROSE], trainers.BpeTrainer(vocab_size=700, special_tokens=list(specials), initial_alphabet=alphabet, show_progress=False))
    return t


def splits(*patterns):
    parts = [pre_tokenizers.Split(Regex(p), "isolated") for p in patterns]
    return pre_tokenizers.Sequence([*parts, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def wordpiece():
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer, t.pre_tokenizer, t.decoder = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    t.train_from_iterator([PROSE], trainers.WordPieceTrainer(vocab_size=700, special_tokens=["[UNK]", "[CLS]"], show_progress=False))
    return t


def unigram():
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip(left=False)])
    t.pre_tokenizer, t.decoder = pre_tokenizers.Metaspace(prepend_scheme="never"), decoders.Metaspace()
    t.train_from_iterator([PROSE], trainers.UnigramTrainer(vocab_size=500, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False))
    return t


def sentencepiece():
    """As of Llama 2 and Gemma: characters, spaces as ▁, bytes where there is no character, and no pre-tokenizer."""
    t = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    specials = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % i for i in range(256)]
    t.train_from_iterator([PROSE], trainers.BpeTrainer(vocab_size=800, special_tokens=specials, show_progress=False))
    made = json.loads(t.to_str())
    made["pre_tokenizer"] = None
    made["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}
    made["added_tokens"] = [a for a in made["added_tokens"] if not a["content"].startswith("<0x")]
    return Tokenizer.from_str(json.dumps(made))


def digits():
    pre = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.Punctuation("contiguous"),
        pre_tokenizers.Split(" ", "merged_with_next"), pre_tokenizers.Split(Regex(r"\n+"), "merged_with_previous"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
    ])
    t = bpe(pre, normalizer=normalizers.NFC())
    t.add_tokens(["added", "Servegrid"])
    return t


def texts():
    r = random.Random(7)
    made = [
        PROSE[:3000], "Hello, world! It's 12345 days; don't  stop.\n\n  Tabs\tand   spaces  ", "naïve café — “quotes” …",
        "漢字かな交じり文 한국어 русский текст عربى", "emoji 👩‍👩‍👧‍👦🏳️‍🌈 é é", "def f(x):\n    return x**2 + 3  # comment\r\n\r\n", "", "  ", " ", "\n", "a",
        "'S 'LL I'LL we'Re", "<|end|>x<|im_start|>user\n<s>", "added Servegrid, unadded", "x" * 300, "\u00a0\u2003 nbsp\u3000wide", "ſ'ſ K",
        "[CLS] [UNK] a\u200bb\x00c\ufffd", "/usr/local/bin:~/x_y-z==!!??", "ǅungla ŒUVRE İstanbul", "1½²٣४",
    ]
    alphabet = "abc XYZ  \n\t'0129.,!?éüß漢字👩한_-\r"
    return made + ["".join(r.choice(alphabet) for _ in range(r.randrange(50))) for _ in range(120)]


KINDS = {
    "gpt2": lambda: bpe(pre_tokenizers.ByteLevel(add_prefix_space=False)),
    "llama3": lambda: bpe(splits(LLAMA3), specials=("<|begin_of_text|>", "<|eot_id|>"), ignore_merges=True),
    "qwen2": lambda: bpe(splits(LLAMA3.replace("{1,3}", "")), specials=("<|im_start|>", "<|im_end|>"), normalizer=normalizers.NFC()),
    "o200k": lambda: bpe(splits(O200K)),
    "deepseek": lambda: bpe(splits(*DEEPSEEK)),
    "wordpiece": wordpiece, "unigram": unigram, "sentencepiece": sentencepiece, "digits": digits,
}

for name, make in KINDS.items():
    tokenizer, tried = make(), texts()
    whole = {"tokenizer": json.loads(tokenizer.to_str()), "texts": tried, "tokens": [tokenizer.encode(t, add_special_tokens=False).ids for t in tried]}
    packed = gzip.compress(json.dumps(whole, ensure_ascii=False).encode(), 9, mtime=0)
    (HERE / f"{name}.json.gz").write_bytes(packed)
