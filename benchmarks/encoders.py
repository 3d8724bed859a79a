"""Classes, tags and answers of a file by a BERT: the fast engine beside ONNX Runtime, transformers and our reference.

    python benchmarks/encoders.py [--rounds 5] [--bert FOLDER] [--lines 512]

FOLDER is a BERT in Hugging Face's layout; without it, one of MiniLM's size (6 layers of 384) with random weights. Lines
are made of words of its vocabulary, as many as a sentence of SST-2 or CoNLL-2003 has; questions come with a text of 80
to 160 words. From text to labels or spans, tokenizing included, on one thread; what is compared is processor time.

The peers are what people make: `torch.onnx.export`, in float32 and after `quantize_dynamic` with a scale for each
channel, in sorted batches of the size that is fastest here; CTranslate2's encoder in int8, as its own converter writes
it, without a head; and transformers in sorted batches of 16.
"""

import argparse
import os
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import ctranslate2
import numpy as np
import onnxruntime
import torch
from ctranslate2.converters import TransformersConverter
from interleave import write
from onnxruntime.quantization import QuantType, quantize_dynamic
from prediction import Works, afresh, fastest, measured, rows_of, words
from transformers import (
    BertConfig,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertModel,
    PreTrainedTokenizerFast,
)

from jumok.building import _store, build_engine
from jumok.engines.fast_folder import engine_folder, read_engine
from jumok.examples.questions import Question
from jumok.exchange import import_folder
from jumok.hub.tokenizer import write_tokenizers
from jumok.predictor import load
from jumok.tasks.stored import read_model
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import BERT, TokenizerConfig

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
TASKS = {
    "classify": (BertForSequenceClassification, 2),
    "tag": (BertForTokenClassification, 9),
    "answer": (BertForQuestionAnswering, 2),
}
Given = Sequence[tuple[str, ...]]
"""texts, or questions with their texts"""
BATCHES = (8, 16, 32)


def make_folder(folder: Path, bert: Path | None, task: str) -> None:
    """A model with a random head."""
    kind, labels = TASKS[task]
    torch.manual_seed(1)
    if bert is not None:
        kind.from_pretrained(bert, num_labels=labels, attn_implementation="eager").save_pretrained(folder)
        for path in bert.glob("tokenizer*.json"):
            (folder / path.name).write_bytes(path.read_bytes())
        return
    tokenizer = Tokenizer.train(TokenizerConfig(kind="wordpiece", vocab_size=8000), [" ".join(words(7000))], BERT)
    sizes = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}
    config = BertConfig(vocab_size=tokenizer.vocab_size, num_labels=labels, **sizes)
    config.pad_token_id = tokenizer.pad_id
    kind(config).save_pretrained(folder)
    write_tokenizers(folder, Tokenizers(tokenizer, tokenizer), max_length=512)


def made_texts(task: str, tokenizer: Tokenizer, n: int) -> list[tuple[str, ...]]:
    """Texts of 4 to 40 words, 19 on average; for questions, of 10 words, a fourth as many texts of 80 to 160."""
    known = [piece for piece in tokenizer.pieces(range(tokenizer.vocab_size)) if piece.isalpha() and piece.islower()]
    rng = np.random.default_rng(1)

    def text(words: int) -> str:
        return " ".join(rng.choice(known, size=words))

    if task == "answer":
        return [(text(10), text(int(rng.integers(80, 160)))) for _ in range(n // 4)]
    return [(text(min(max(int(rng.normal(19, 9)), 4), 40)),) for _ in range(n)]


def logits_of(output: Any) -> Any:
    """What the task asks for is the highest of these along their last axis, or for answers along the tokens."""
    return output.logits if "logits" in output else torch.stack([output.start_logits, output.end_logits], dim=1)


def exported(folder: Path, beside: Path, task: str) -> tuple[Path, Path]:
    """The conventional graphs: float32 and int8."""
    model = TASKS[task][0].from_pretrained(folder, attn_implementation="eager").eval()

    class Outputs(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
            return logits_of(self.model(input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids))

    ids = torch.randint(5, 1000, (2, 16))
    exact, rounded = beside / f"{task}.onnx", beside / f"{task}-int8.onnx"
    axes = {name: {0: "batch", 1: "length"} for name in INPUTS} | {"logits": {0: "batch"}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            Outputs().eval(),
            (ids, torch.ones_like(ids), torch.zeros_like(ids)),
            str(exact),
            dynamo=False,
            opset_version=17,
            input_names=list(INPUTS),
            output_names=["logits"],
            dynamic_axes=axes,
        )
        quantize_dynamic(exact, rounded, per_channel=True, weight_type=QuantType.QInt8)
    return exact, rounded


def sorted_batches(tokenizer: Any, given: Given, rows: int, kind: str) -> Any:
    """Batches of texts of like length, as tensors or arrays."""
    order = sorted(given, key=lambda texts: -sum(map(len, texts)))
    for first in range(0, len(order), rows):
        sides = [list(side) for side in zip(*order[first : first + rows], strict=True)]
        yield tokenizer(*sides, padding=True, truncation=True, return_token_type_ids=True, return_tensors=kind)


def session_work(graph: Path, tokenizer: Any, given: Given, rows: int) -> Callable[[], object]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])

    def work() -> None:
        for batch in sorted_batches(tokenizer, given, rows, "np"):
            session.run(None, {name: batch[name].astype(np.int64) for name in INPUTS})[0].argmax(-1).tolist()

    return work


def encoder_work(folder: Path, beside: Path, tokenizer: Any, given: Given, rows: int) -> Callable[[], object]:
    """The body alone in CTranslate2, int8."""
    if not beside.exists():
        model = BertModel.from_pretrained(folder)
        model.config.position_embedding_type = "absolute"  # which the converter asks for
        model.save_pretrained(beside / "body")
        tokenizer.save_pretrained(beside / "body")
        TransformersConverter(str(beside / "body")).convert(str(beside / "ct2"), quantization="int8")
    encoder = ctranslate2.Encoder(str(beside / "ct2"), compute_type="int8", inter_threads=1, intra_threads=1)

    def work() -> None:
        for batch in sorted_batches(tokenizer, given, rows, "np"):
            texts = [ids[: mask.sum()].tolist() for ids, mask in zip(batch[INPUTS[0]], batch[INPUTS[1]], strict=True)]
            kinds = [k[: len(text)].tolist() for k, text in zip(batch[INPUTS[2]], texts, strict=True)]
            np.array(encoder.forward_batch(texts, token_type_ids=kinds).last_hidden_state)

    return work


def compared(task: str, bert: Path | None, n: int, rounds: int, beside: Path) -> list[Any]:
    folder, run = beside / f"{task}-hf", beside / f"{task}-run"
    make_folder(folder, bert, task)
    import_folder(folder, run)
    build_engine(run)
    exact = load(run, engine="fast")
    read = (lambda one: Question("", *one)) if task == "answer" else (lambda one: one[0])
    exact.predict([read(("a", "a"))])  # reads the weights, which are replaced next
    model_path = run / "model"
    built, _ = read_engine(engine_folder(model_path), model_path)
    _store(engine_folder(model_path), replace(built, compute="int8"), read_model(model_path))
    rounded, reference = load(run, engine="fast"), load(run, engine="torch")
    given = made_texts(task, exact.tokenizer, n)
    examples = [read(one) for one in given]
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    tokenizer.model_max_length = 512
    kind = TASKS[task][0]
    theirs = kind.from_pretrained(folder).eval()

    def transformers_work() -> None:
        with torch.inference_mode():
            for batch in sorted_batches(tokenizer, given, 16, "pt"):
                logits_of(theirs(**{name: batch[name] for name in INPUTS})).argmax(-1).tolist()

    graphs = dict(zip(("float32", "int8"), exported(folder, beside, task), strict=True))
    best = {
        name: fastest({rows: session_work(graph, tokenizer, given, rows) for rows in BATCHES})
        for name, graph in graphs.items()
    }
    peers: Works = {
        f"ONNX Runtime {name}, batches of {best[name]}": session_work(graph, tokenizer, given, best[name])
        for name, graph in graphs.items()
    }
    float32_peer, int8_peer = peers
    encoders = {rows: encoder_work(folder, beside / f"{task}-encoder", tokenizer, given, rows) for rows in BATCHES}
    encoder = f"CTranslate2 int8 without a head, batches of {(most := fastest(encoders))}"
    peers[encoder] = encoders[most]
    works: Works = {
        "jumok": lambda: afresh(exact).predict(examples),
        "jumok int8": lambda: afresh(rounded).predict(examples),
        "jumok torch": lambda: afresh(reference).predict(examples),
        "transformers": transformers_work,
        **peers,
    }
    times = measured(works, rounds)
    rows = rows_of(
        f"{task}, {len(given)} texts (float32)",
        times,
        {"transformers": 1.5, float32_peer: None, "jumok torch": None},
        units=len(given),
        unit="texts",
    )
    int8 = {**times, "jumok": times["jumok int8"]}
    targets = {int8_peer: 1.0, encoder: None, "transformers": None}
    rows += rows_of(f"{task}, {len(given)} texts (int8)", int8, targets, units=len(given), unit="texts")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bert", type=Path)
    parser.add_argument("--lines", type=int, default=512)
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for task in TASKS:
            rows += compared(task, given.bert, given.lines, given.rounds, Path(folder))
    write("encoders", rows)


if __name__ == "__main__":
    main()
