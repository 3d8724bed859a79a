"""Prediction speed of torch: a recurrent model's beam search, GPT's prompts, classification.

    python benchmarks/reference.py --before PATH --run RUN --file FILE --weights DIR --texts FILE [--rounds 7]

1. Beam 4 with RUN, a recurrent translator, on the first 256 lines of FILE: this source tree against that of an earlier
   commit (PATH is its `src`; `git worktree add` makes one), each in a process of its own. In float32 their outputs must
   be the same; in int8, if RUN's fast engine has that, they may differ.
2. A GPT with random weights, d 256, 4 layers, 8,000 pieces: 32 prompts of 8 to 40 pieces, 50 more for each, greedy,
   against `generate` of transformers with the same weights, the prompts in one batch padded on the left.
3. A BERT classifier around the weights in DIR (a Hugging Face folder), float32, on 512 lines of --texts: against
   transformers on batches of 16 sorted by length. Both get token ids.

CPU seconds of one thread; the works take turns. Ratios are peer / jumok.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time
from types import SimpleNamespace

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import torch
from interleave import Row, middle, write
from transformers import AutoTokenizer, BertForSequenceClassification, GPT2Config, GPT2LMHeadModel

from jumok.cli.engine import ensure_engine
from jumok.decode.options import DecodeConfig, Request
from jumok.engines.torch import TorchEngine
from jumok.hub.bert import open_bert
from jumok.hub.gpt2 import open_gpt2
from jumok.models.bert_heads import BertClassifier
from jumok.models.gpt import Gpt
from jumok.tasks.stored import HEADS

LINES, TEXTS, PROMPTS, NEW, VOCAB = 256, 512, 32, 50, 8000
TRANSLATE = """
import json, sys
from time import process_time
import torch
from jumok import load
torch.set_num_threads(1)
engine = {"engine": sys.argv[4]} if len(sys.argv) > 4 else {}
predictor = load(sys.argv[1], **engine)
lines = open(sys.argv[2], encoding="utf-8").read().splitlines()[: int(sys.argv[3])]
predictor.engine.threads = None
predictor.predict(lines[:16], method="beam", beam=4)
for _ in sys.stdin:
    began = process_time()
    outputs = predictor.predict(lines, method="beam", beam=4)
    print(json.dumps([process_time() - began, [output.text for output in outputs]]), flush=True)
"""
Work = Callable[[], float]


def cpu_seconds(work: Callable[[], object]) -> Work:
    def timed() -> float:
        began = process_time()
        work()
        return process_time() - began

    return timed


def in_turns(*works: Work, rounds: int) -> list[list[float]]:
    """Seconds of each work in each round, after a warm-up."""
    for work in works:
        work()
    return [[*times] for times in zip(*([work() for work in works] for _ in range(rounds)), strict=True)]


def row(work: str, against: str, times: Sequence[list[float]], target: float, n: int, what: str) -> Row:
    ratio, low, high = middle([yours / mine for mine, yours in zip(*times, strict=True)])
    units = [f"{n / float(np.median(found)):.0f} {what}/s" for found in times]
    return Row(
        work=work, against=against, ratio=ratio, low=low, high=high, target=target,
        unit_jumok=units[0], unit_peer=units[1],
    )  # fmt: skip


def translation(before: Path, run: Path, file: Path, rounds: int) -> list[Row]:
    said: dict[str, list[str]] = {}

    def worker(source: Path, *engine: str) -> Work:
        command = [sys.executable, "-c", TRANSLATE, str(run), str(file), str(LINES), *engine]
        environment = {**os.environ, "PYTHONPATH": str(source)}
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

        def timed() -> float:
            assert process.stdin is not None
            assert process.stdout is not None
            print(file=process.stdin, flush=True)
            seconds, said["".join(engine)] = json.loads(process.stdout.readline())
            return float(seconds)

        return timed

    here = Path(__file__).parents[1] / "src"
    ensure_engine(run, print)
    engines = ["torch", "fast"] if (run / "engine").exists() else ["torch"]
    *ours, theirs = in_turns(*(worker(here, engine) for engine in engines), worker(before), rounds=rounds)
    assert said["torch"] == said[""], "outputs must be the same"
    kinds = {"torch": "float32", "fast": "int8"}
    return [
        row(f"beam 4, {run.name} ({kinds[engine]})", "jumok before", (mine, theirs), 3.0, LINES, "sentences")
        for engine, mine in zip(engines, ours, strict=True)
    ]


def writing(rounds: int) -> Row:
    ends = dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"), VOCAB - 1)
    c = GPT2Config(vocab_size=VOCAB, n_positions=256, n_embd=256, n_layer=4, n_head=4, **ends)
    theirs = GPT2LMHeadModel(c).eval()
    config, tensors, _ = open_gpt2(_tree(theirs), theirs.state_dict(), Path(), HEADS)
    model = Gpt(config, vocab=VOCAB).eval()
    model.load_state_dict(tensors)
    tokenizer = SimpleNamespace(start_id=VOCAB - 1, end_id=VOCAB - 1, pad_id=VOCAB - 1)
    engine = TorchEngine([model], SimpleNamespace(source=tokenizer))
    rng = np.random.default_rng(1)
    prompts = [rng.integers(0, VOCAB - 1, n).tolist() for n in rng.integers(8, 41, PROMPTS)]
    requests = [Request(0, len(prompt) + NEW - 1, prompt) for prompt in prompts]
    width = 1 + max(map(len, prompts))
    rows = [[VOCAB - 1] * (width - len(prompt)) + prompt for prompt in prompts]
    mask = [[0] * (width - len(prompt) - 1) + [1] * (len(prompt) + 1) for prompt in prompts]
    asked = {"input_ids": torch.tensor(rows), "attention_mask": torch.tensor(mask)}

    def ours() -> list[list[int]]:
        found = engine.search(None, requests, DecodeConfig(method="greedy"))
        return [h[0].ids[len(prompt) :] for h, prompt in zip(found, prompts, strict=True)]

    @torch.inference_mode()
    def generate() -> torch.Tensor:
        return theirs.generate(**asked, max_new_tokens=NEW, min_new_tokens=NEW, do_sample=False)

    same = [mine == yours[width : width + NEW - 1].tolist() for mine, yours in zip(ours(), generate(), strict=True)]
    assert sum(same) >= PROMPTS - 2, "the same texts, but for ties within rounding"
    times = in_turns(cpu_seconds(ours), cpu_seconds(generate), rounds=rounds)
    return row("GPT, 32 prompts, greedy", "transformers generate, padded left", times, 1.0, PROMPTS * NEW, "tokens")


def classification(weights: Path, texts: Sequence[str], rounds: int) -> Row:
    tokenizer = AutoTokenizer.from_pretrained(weights)
    theirs = BertForSequenceClassification.from_pretrained(weights, num_labels=2).eval()
    config, tensors, _ = open_bert(_tree(theirs), theirs.state_dict(), weights, HEADS)
    model = BertClassifier(config, vocab=theirs.config.vocab_size, n_labels=2).eval()
    model.load_state_dict(tensors)
    marks = SimpleNamespace(pad_id=tokenizer.pad_token_id, end_id=tokenizer.sep_token_id, second_segment=1)
    engine = TorchEngine([model], SimpleNamespace(source=marks))
    ids: list[list[int]] = [tokenizer(text)["input_ids"] for text in texts]
    by_length = sorted(range(len(ids)), key=lambda i: -len(ids[i]))

    @torch.inference_mode()
    def batches() -> torch.Tensor:
        found = torch.zeros(len(ids), 2)
        for first in range(0, len(ids), 16):
            some = by_length[first : first + 16]
            found[some] = theirs(**tokenizer.pad({"input_ids": [ids[i] for i in some]}, return_tensors="pt")).logits
        return found

    mine = torch.from_numpy(np.concatenate(engine.logits(ids))).float()
    torch.testing.assert_close(mine, batches(), rtol=0, atol=1e-4)
    times = in_turns(cpu_seconds(lambda: engine.logits(ids)), cpu_seconds(batches), rounds=rounds)
    return row("classify, BERT float32", "transformers, sorted batches of 16", times, 1.5, len(ids), "texts")


def _tree(model: torch.nn.Module) -> dict[str, object]:
    return {**model.config.to_dict(), "architectures": [type(model).__name__]}


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("before", "run", "file", "weights", "texts"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    texts = [line.split("\t")[0] for line in asked.texts.read_text("utf-8").splitlines()][:TEXTS]
    rows = [
        *translation(asked.before, asked.run, asked.file, asked.rounds),
        writing(asked.rounds),
        classification(asked.weights, texts, asked.rounds),
    ]
    write("reference", rows)


if __name__ == "__main__":
    main()
