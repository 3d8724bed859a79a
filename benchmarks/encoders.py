"""Classes and tags of a file by a BERT: the fast engine beside ONNX Runtime, transformers and our reference.

    python benchmarks/encoders.py [--rounds 5] [--bert FOLDER] [--lines 512]

FOLDER is a BERT in Hugging Face's layout; without it, one of MiniLM's size (6 layers of 384) with random weights. Lines
are made of words of its vocabulary, as many as a sentence of SST-2 or CoNLL-2003 has. From text to labels, tokenizing
included, on one thread; what is compared is processor time.

The peers are what people make: `torch.onnx.export`, in float32 and after `quantize_dynamic` with a scale for each
channel, in sorted batches of the size that is fastest here; and transformers in sorted batches of 16.
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

import numpy as np
import onnxruntime
import torch
from interleave import write
from onnxruntime.quantization import QuantType, quantize_dynamic
from prediction import Works, fastest, measured, rows_of, words
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertForTokenClassification,
    PreTrainedTokenizerFast,
)

from jumok.building import _store, build_engine
from jumok.engines.fast_folder import engine_folder, read_engine
from jumok.exchange import import_folder
from jumok.hub.tokenizer import write_tokenizers
from jumok.predictor import load
from jumok.tasks.stored import read_model
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import BERT, TokenizerConfig

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
TASKS = {"classify": (BertForSequenceClassification, 2), "tag": (BertForTokenClassification, 9)}
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


def made_lines(tokenizer: Tokenizer, n: int) -> list[str]:
    """Of 4 to 40 words, 19 on average."""
    known = [piece for piece in tokenizer.pieces(range(tokenizer.vocab_size)) if piece.isalpha() and piece.islower()]
    rng = np.random.default_rng(1)
    return [" ".join(rng.choice(known, size=min(max(int(rng.normal(19, 9)), 4), 40))) for _ in range(n)]


def exported(folder: Path, beside: Path, task: str) -> tuple[Path, Path]:
    """The conventional graphs: float32 and int8."""
    model = TASKS[task][0].from_pretrained(folder, attn_implementation="eager").eval()

    class Outputs(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
            return self.model(input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids).logits

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


def sorted_batches(tokenizer: Any, lines: Sequence[str], rows: int, kind: str) -> Any:
    """Batches of lines of like length, as tensors or arrays."""
    order = sorted(lines, key=lambda line: -len(line))
    for first in range(0, len(order), rows):
        yield tokenizer(
            order[first : first + rows], padding=True, truncation=True, return_token_type_ids=True, return_tensors=kind
        )


def session_work(graph: Path, tokenizer: Any, lines: Sequence[str], rows: int) -> Callable[[], object]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])

    def work() -> None:
        for batch in sorted_batches(tokenizer, lines, rows, "np"):
            session.run(None, {name: batch[name].astype(np.int64) for name in INPUTS})[0].argmax(-1).tolist()

    return work


def compared(task: str, bert: Path | None, n: int, rounds: int, beside: Path) -> list[Any]:
    folder, run = beside / f"{task}-hf", beside / f"{task}-run"
    make_folder(folder, bert, task)
    import_folder(folder, run)
    build_engine(run)
    exact = load(run, engine="fast")
    exact.predict(["a"])  # reads the weights, which are replaced next
    model_path = run / "model"
    built, _ = read_engine(engine_folder(model_path), model_path)
    _store(engine_folder(model_path), replace(built, compute="int8"), read_model(model_path))
    rounded, reference = load(run, engine="fast"), load(run, engine="torch")
    lines = made_lines(exact.tokenizer, n)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    tokenizer.model_max_length = 512
    kind = TASKS[task][0]
    theirs = kind.from_pretrained(folder).eval()

    def transformers_work() -> None:
        with torch.inference_mode():
            for batch in sorted_batches(tokenizer, lines, 16, "pt"):
                theirs(**{name: batch[name] for name in INPUTS}).logits.argmax(-1).tolist()

    graphs = dict(zip(("float32", "int8"), exported(folder, beside, task), strict=True))
    best = {
        name: fastest({rows: session_work(graph, tokenizer, lines, rows) for rows in BATCHES})
        for name, graph in graphs.items()
    }
    peers: Works = {
        f"ONNX Runtime {name}, batches of {best[name]}": session_work(graph, tokenizer, lines, best[name])
        for name, graph in graphs.items()
    }
    float32_peer, int8_peer = peers
    works: Works = {
        "jumok": lambda: exact.predict(lines),
        "jumok int8": lambda: rounded.predict(lines),
        "jumok torch": lambda: reference.predict(lines),
        "transformers": transformers_work,
        **peers,
    }
    times = measured(works, rounds)
    rows = rows_of(
        f"{task} {n} lines (float32)",
        times,
        {"transformers": 1.5, float32_peer: None, "jumok torch": None},
        units=n,
        unit="lines",
    )
    int8 = {**times, "jumok": times["jumok int8"]}
    rows += rows_of(f"{task} {n} lines (int8)", int8, {int8_peer: 1.0, "transformers": None}, units=n, unit="lines")
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
