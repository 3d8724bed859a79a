"""docs/biomedical/run.sh as it is written, on corpora of the same names that fit into a minute."""

import gzip
import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from jumok.hub.folder import ModelFolder
from jumok.models.bert import Bert, BertConfig
from jumok.models.weights import unique_tensors
from jumok.tasks.stored import write_model
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import BERT, TokenizerConfig

ROOT = Path(__file__).parents[2]
CHEMICALS = ["aspirin", "celecoxib", "naloxone", "imatinib"]
PROTEINS = ["cyclooxygenase", "interleukin", "kinase", "receptor"]
DISEASES = ["arthritis", "leukemia", "asthma"]
VERBS = {"inhibits": "INHIBITOR", "activates": "ACTIVATOR"}


def sentence(rng: random.Random) -> tuple[str, str, str, str]:
    return rng.choice(CHEMICALS), rng.choice([*VERBS]), rng.choice(PROTEINS), rng.choice(DISEASES)


def said(chemical: str, verb: str, protein: str, disease: str) -> str:
    return f"The drug {chemical} strongly {verb} human {protein} in patients with {disease} ."


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def conll(n: int, seed: int, types: dict[str, str]) -> str:
    rng = random.Random(seed)
    texts = [said(*sentence(rng)).split() for _ in range(n)]
    return "\n\n".join("\n".join(f"{w}\t{'B-' + types[w] if w in types else 'O'}" for w in words) for words in texts)


def relations(n: int, seed: int) -> str:
    rng, lines = random.Random(seed), []
    for _ in range(n):
        chemical, verb, protein, disease = sentence(rng)
        text = said(chemical, verb, protein, disease)
        head, tail = (
            {"start": text.index(word), "end": text.index(word) + len(word), "type": kind}
            for word, kind in ((chemical, "CHEMICAL"), (protein, "GENE"))
        )
        lines.append(json.dumps({"text": text, "head": head, "tail": tail, "label": VERBS[verb]}))
    return "\n".join(lines)


@pytest.fixture(scope="module")
def corpora(tmp_path_factory) -> Path:
    folder, rng = tmp_path_factory.mktemp("corpora"), random.Random(0)
    named = dict.fromkeys(CHEMICALS, "Chemical") | dict.fromkeys(DISEASES, "Disease")
    sets = {"jnlpba": dict.fromkeys(PROTEINS, "protein"), "ncbi_disease": dict.fromkeys(DISEASES, "Disease")}
    for corpus, types in {**sets, "bc5cdr": named}.items():
        recipe = (ROOT / f"recipes/{corpus}/minilm.toml").read_text("utf-8")
        for k, name in enumerate(re.findall(rf'"{corpus}/(.+?)"', recipe)):
            write(folder / corpus / name, conll(20 if k else 200, k, types))
    for k, name in enumerate(("train.jsonl.gz", "dev.jsonl", "test.jsonl.gz")):
        write(folder / "chemprot" / name, relations(20 if k else 300, k))
    abstracts = [" ".join(said(*sentence(rng)) for _ in range(2)) for _ in range(520)]
    write(folder / "biomed_abstracts/train.txt.gz", "\n".join(abstracts[:500]))
    write(folder / "biomed_abstracts/valid.txt", "\n".join(abstracts[500:]))
    write(folder / "wikitext2/valid.txt.gz", "\n\n".join(f"a dog sees {n} cats .\nit runs away ." for n in range(30)))
    return folder


def write_weights(folder: Path, corpora: Path) -> None:
    """A small BERT that has learned nothing."""
    lines = [(corpora / "biomed_abstracts/valid.txt").read_text("utf-8"), "a dog sees cats . it runs away . $ #"]
    tokenizer = Tokenizer.train(TokenizerConfig(kind="wordpiece", vocab_size=120), lines, BERT)
    c = BertConfig(d_model=64, d_ff=128, n_heads=2, n_layers=2, max_len=128)
    torch.manual_seed(1)
    tensors = unique_tensors(Bert(c, vocab=tokenizer.vocab_size))
    facts = {"version": "0.1.0", "task": {"kind": "embedding", "pooler": True}, "max_len": 128}
    folder.mkdir()
    write_model(folder, ModelFolder(c, tensors, Tokenizers(tokenizer, tokenizer), facts), card="")


def test_from_weights_to_a_table(corpora, tmp_path):
    write_weights(tmp_path / "weights", corpora)
    for name in (
        "docs/biomedical",
        *(f"recipes/{c}" for c in ("biomed", "jnlpba", "ncbi_disease", "bc5cdr", "chemprot")),
    ):
        shutil.copytree(ROOT / name, tmp_path / name)
    smaller = {"steps = 800": "steps = 20", "warmup = 80": "warmup = 0.1", "new_pieces = 1000": "new_pieces = 3"}
    smaller |= {"batch_tokens = 2048": "batch_tokens = 256", "batch_tokens = 1024": "batch_tokens = 256"}
    smaller |= {"epochs = 10": "epochs = 4", "_every = 0.1": "_every = 0.5", "_every = 0.2": "_every = 0.5"}
    for recipe in (tmp_path / "recipes").rglob("*.toml"):  # a body that knows nothing learns fast, or not in a minute
        text = re.sub(r"learning_rate = \S+?,", "learning_rate = 2e-3,", recipe.read_text("utf-8"))
        for old, new in smaller.items():
            text = text if "epochs" in old and recipe.parent.name == "chemprot" else text.replace(old, new)
        recipe.write_text(text, "utf-8")
    (tmp_path / "raw.txt").write_text(
        "The drug imatinib strongly inhibits human kinase in patients with leukemia . Nothing else was seen .\n",
        "utf-8",
    )
    commands = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{commands}:{os.environ['PATH']}",
        "JUMOK_DATA": str(corpora),
        "JUMOK_CACHE": str(tmp_path / "cache"),
        "OMP_NUM_THREADS": "1",
    }
    command = ["bash", "docs/biomedical/run.sh", "weights", "out", "raw.txt"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=420)
    assert done.returncode == 0, done.stderr
    out = tmp_path / "out"
    rows = [json.loads(line) for line in (out / "relations.jsonl").read_text("utf-8").splitlines()]
    assert [(row["head_text"], row["relation"], row["tail_text"]) for row in rows] == [
        ("imatinib", "INHIBITOR", "kinase")
    ]
    header, *lines = (out / "relations.tsv").read_text("utf-8").splitlines()
    assert header.split("\t") == [*rows[0]]
    assert lines == ["\t".join(str(value) for value in row.values()) for row in rows]
    assert done.stdout.endswith("\n".join([header, *lines]) + "\n")
    found = {corpus: (out / f"entities-{corpus}.tsv").read_text("utf-8") for corpus in ("ncbi_disease", "bc5cdr")}
    assert "Disease\tleukemia" in found["ncbi_disease"]
    assert "Chemical\timatinib" in found["bc5cdr"]
    assert (out / "abstract.png").read_bytes().startswith(b"\x89PNG")
