"""Successors of BERT as `transformers` writes them: random weights, and vocabularies learned from a few lines."""

import json
import struct
import unicodedata
from functools import partial
from random import Random

import tokenizers
import torch
import transformers
from tokenizers import models, normalizers, pre_tokenizers, trainers

LINES = [
    "the cat sat on the mat, and the dog lay by the door.",
    "비가 오고 바람이 분다. 서울에서 온 고양이는 문 앞에 앉았다.",
    "나는 어제 학교에서 친구를 만났습니다! 그 영화는 정말 재미있었다.",
    "isn't it 3.5 degrees? naïve café, Ångström façade",
    "the sun runs slowly today, the cat sits here: A B C",
]
WORDS = [word for line in LINES for word in line.split()]
ODD = [
    "",
    " ",
    "\t",
    "é",
    "e\u0301",
    "각",
    "\u1100\u1161\u11a8",
    "ﬁ",
    "Ⅻ",
    "½",
    "ＡＢＣ",
    "㈜",
    "İ",
    "漢字",
    "ไทย",
    "عربي",
]
ODD += [
    "🙂",
    "👩\u200d👩\u200d👧",
    "🇰🇷",
    "👍🏽",
    "…",
    "“",
    "##",
    "▁",
    "Ġ",
    "_",
    "\u200b",
    "\u3000",
    "\xa0",
    "\u2028",
    "\ufeff",
]
ODD += ["[MASKED", "<s", "</", "mask>", "\x07", "\u00ad", "\U000e0001", "ﷺ", "ㅋㅋㅋ", "ㅠ", "º", "ß", "ẞ"]

SIZES = {"hidden_size": 24, "intermediate_size": 40, "num_attention_heads": 4, "num_hidden_layers": 2}
DISTILBERT = {"dim": 24, "hidden_dim": 40, "n_heads": 4, "n_layers": 2}


def lines(n, seed=3):
    """Scripts, emoji, composed and decomposed letters, with and without spaces between them."""
    rng, found = Random(seed), ["", " ", "a" * 120, "가" * 200, " ".join(ODD), "".join(ODD)]
    while len(found) < n:
        parts = [rng.choice(WORDS if rng.random() < 0.6 else ODD) for _ in range(rng.randrange(1, 20))]
        if rng.random() < 0.3:
            parts += [chr(rng.randrange(0xAC00, 0xD7A4)) for _ in range(rng.randrange(6))]
        if rng.random() < 0.1:
            parts.append(chr(rng.choice([rng.randrange(0xD800), rng.randrange(0xE000, 0x110000)])))
        rng.shuffle(parts)
        found.append(rng.choice(["", " ", " ", "  "]).join(parts))
    return found


def byte_bpe(*, add_prefix_space=False):
    """RoBERTa's own: byte-level BPE."""
    learner = tokenizers.Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    specials = ["<s>", "<pad>", "</s>", "<unk>"]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=380, special_tokens=specials, initial_alphabet=alphabet, show_progress=False
    )
    learner.train_from_iterator(LINES, trainer)
    vocab = learner.get_vocab()
    vocab["<mask>"] = len(vocab)
    merges = [tuple(merge) for merge in json.loads(learner.to_str())["model"]["merges"]]
    mask = tokenizers.AddedToken("<mask>", lstrip=True, special=True)
    return transformers.RobertaTokenizer(vocab=vocab, merges=merges, mask_token=mask, add_prefix_space=add_prefix_space)


def unigram():
    """XLM-RoBERTa's: Unigram, as SentencePiece learns it, with the special tokens where fairseq puts them."""
    learner = tokenizers.Tokenizer(models.Unigram())
    learner.normalizer = normalizers.NFKC()
    learner.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    trainer = trainers.UnigramTrainer(vocab_size=150, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False)
    learner.train_from_iterator(LINES, trainer)
    learned = json.loads(learner.to_str())["model"]["vocab"]
    specials = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    vocab = [*specials, *((piece, score) for piece, score in learned if piece != "<unk>"), ("<mask>", 0.0)]
    mask = tokenizers.AddedToken("<mask>", lstrip=True, special=True)
    return transformers.XLMRobertaTokenizer(vocab=vocab, mask_token=mask, _spm_precompiled_charsmap=charsmap())


def charsmap():
    """SentencePiece's table of normal forms: a double array over UTF-8, and the forms that its values point at."""
    odd = (
        {c for text in ODD for c in text} | {chr(c) for c in range(0xFF01, 0xFF5F)} | {"\u1100\u1161\u11a8", "e\u0301"}
    )
    forms = {c: unicodedata.normalize("NFKC", c) for c in sorted(odd)}
    forms = {c: form for c, form in forms.items() if form != c} | {"\u200b": " ", "\t": " ", "\x07": ""}
    trie, blob, units = {}, b"", [0] * 256
    for source, form in forms.items():
        node = trie
        for byte in source.encode():
            node = node.setdefault(byte, {})
        node[0], blob = len(blob), blob + form.encode() + b"\0"

    def place(node, at, label):
        """A block of 256 units for the children of the node at this position; 0 is its value."""
        block = len(units)
        units.extend([0] * 256)
        units[at] = (at ^ block) << 10 | (0 in node) << 8 | label
        for byte, child in node.items():
            if byte == 0:
                units[block] = child
            else:
                place(child, block ^ byte, byte)

    place(trie, 0, 0)
    table = struct.pack(f"<{len(units)}I", *units)
    return struct.pack("<I", len(table)) + table + blob


def wordpiece(specials=("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"), *, lowercase=False):
    """BERT's; KLUE's RoBERTa has its special tokens in another order."""
    characters = sorted({c for line in LINES for c in line.replace(" ", "")})
    words = sorted({word for word in WORDS if len(word) > 1})
    pieces = dict.fromkeys([*specials, *characters, *(f"##{c}" for c in characters), *words])
    vocab = {piece: i for i, piece in enumerate(pieces)}
    return transformers.BertTokenizer(vocab=vocab, do_lower_case=lowercase)


def klue():
    return wordpiece(("[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"))


ROBERTA = {**SIZES, "max_position_embeddings": 42, "type_vocab_size": 1, "layer_norm_eps": 1e-5}
SUCCESSORS = {
    "roberta": ("Roberta", byte_bpe, ROBERTA),
    "klue": ("Roberta", klue, ROBERTA),
    "two segments": ("Roberta", byte_bpe, {**ROBERTA, "type_vocab_size": 2}),
    "xlm-roberta": ("XLMRoberta", unigram, ROBERTA),
    "electra": ("Electra", wordpiece, {**SIZES, "max_position_embeddings": 40, "embedding_size": 16}),
    "koelectra": ("Electra", wordpiece, {**SIZES, "max_position_embeddings": 40, "embedding_size": 24}),
    "distilbert": ("DistilBert", partial(wordpiece, lowercase=True), {**DISTILBERT, "max_position_embeddings": 40}),
}
"""how the names of their classes begin, a function that makes the tokenizer, and sizes; all read 40 tokens"""


def foreign_folder(kind, end, path, *, scale=0.2, seed=1, **changes):
    """Write a folder with the class that ends in `end`; returns its model, whose every bias and norm matters."""
    classes, learn, sizes = SUCCESSORS[kind]
    tokenizer = learn()
    ids = {"pad_token_id": tokenizer.pad_token_id, "vocab_size": len(tokenizer)}
    model = getattr(transformers, classes + end)(
        getattr(transformers, f"{classes}Config")(**{**sizes, **ids, **changes})
    )
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0, scale)
    tokenizer.save_pretrained(path)
    model.eval().save_pretrained(path)
    return model
