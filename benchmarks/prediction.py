"""Predictions beside other engines: translation, generation, classification, tagging, the first answer, two cores.

    python benchmarks/prediction.py [--rounds 5] [--only WORK,…] [--run RUN --text FILE] [--joeynmt PYTHON]

Every engine gets the same weights, the same sentences and the same search, in one process and in turns, on one thread
(OMP_NUM_THREADS=1); what is compared is processor time. CTranslate2 is called directly: at its defaults in float32, in
int8 with the batch size that is fastest here, and the same with the AVX-512 kernels that jumok asks it for, where there
are any (its best settings). transformers generates in sorted batches.

`tiny` (4+4 layers of 128) and `base` (6+6 of 512), both with 8,000 tokens, have learned to write 14 tokens whatever
they read (see `learn_to_end`): their outputs mean nothing, and have the length of a sentence. RUN is a translator with
real weights, whose texts are in FILE; PYTHON runs in an environment that has JoeyNMT. Without them, their rows are left
out.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from time import process_time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import ctranslate2
import numpy as np
import torch
from interleave import Row, middle, peak_memory, write

from jumok.building import WIDTHS, _store, build_engine
from jumok.cli.engine import ensure_engine
from jumok.decode.options import DecodeConfig
from jumok.engines.fast_folder import engine_folder
from jumok.engines.fast_work import Layout, prefer_avx512, this_machine
from jumok.exchange import export_folder
from jumok.files import write_folder
from jumok.hub.folder import ModelFolder
from jumok.models.gpt import Gpt, GptConfig
from jumok.models.transformer import Transformer, TransformerConfig
from jumok.models.weights import unique_tensors
from jumok.predictor import load, open_fast
from jumok.tasks.stored import read_model, write_model
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import TokenizerConfig

VOCABULARY, SENTENCES, ENDS_AT = 8000, 400, 14
SIZES = {
    "tiny": TransformerConfig(d_model=128, d_ff=256, n_heads=4, n_layers=4, dropout=0.0, norm="pre"),
    "base": TransformerConfig(dropout=0.0, norm="pre"),
}
BATCHES = (16, 32, 64, 128)
INSTRUCTIONS = "CT2_FORCE_CPU_ISA"
"""which kernels CTranslate2 takes, if it is not to choose itself"""
Works = dict[str, Callable[[], object]]


def words(n: int) -> list[str]:
    """Made-up words, all different."""
    syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
    return [syllables[i % 70] + syllables[i // 70 % 70] + syllables[i // 4900] for i in range(n)]


def sentences(n: int, seed: int = 1) -> list[str]:
    """Of 5 to 25 words, 14 on average, as captions and short news have; words are as frequent as in Zipf's law."""
    rng = np.random.default_rng(seed)
    known = words(VOCABULARY - 3)
    shares = 1 / np.arange(1, len(known) + 1)
    shares /= shares.sum()
    return [" ".join(rng.choice(known, size=min(max(int(rng.normal(14, 5)), 5), 25), p=shares)) for _ in range(n)]


def learn_to_end(model: Transformer, *, at: int) -> None:
    """Train a model until it writes `at` tokens, of thirty that are likely, and the end: a minute or two for `base`."""
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3 if model.config.d_model < 256 else 5e-4)
    n, learned = (40, 0) if model.config.d_model < 256 else (12, 0)
    ends = torch.zeros(n, 1, dtype=torch.long)
    for _ in range(600):
        source, target = torch.randint(3, model.start_id, (n, at)), torch.randint(3, 33, (n, at))
        source, target = torch.cat([source, ends], dim=1), torch.cat([target, ends], dim=1)
        read = torch.cat([torch.full_like(ends, model.start_id), target[:, :-1]], dim=1)
        logits = model.logits(model(source, torch.ones_like(source, dtype=torch.bool), read))
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten()).backward()
        model.target_embedding.weight.grad[-1] = 0  # of <pad>
        optimizer.step()
        p_end = logits.detach().softmax(dim=-1)[:, :, 0].mean(dim=0)
        learned = learned + 1 if p_end[at] > 0.75 and p_end[: at - 2].max() < 0.01 else 0
        if learned == 5:
            return
    raise SystemExit("the model has not learned to end")


def make_run(folder: Path, c: TransformerConfig | GptConfig, tokenizer: Tokenizer, *, ends: bool = True) -> Path:
    """A run folder with random weights; a translator `ends` its sentences if it is to be searched."""
    torch.manual_seed(1)
    tokenizers = Tokenizers(tokenizer, tokenizer)
    facts: dict[str, Any] = {"version": "0.1.0", "decode": {}}
    if isinstance(c, TransformerConfig):
        model: Any = Transformer(c, **tokenizers.sizes)
        if ends:
            learn_to_end(model, at=ENDS_AT)
        facts |= {"task": {"kind": "translation"}, "source": "en", "target": "xx"}
    else:
        model = Gpt(c, vocab=tokenizer.vocab_size)
        facts |= {"task": {"kind": "language_model"}, "max_len": c.max_len}
    stored = ModelFolder(c, unique_tensors(model), tokenizers, facts)
    write_folder(folder / "model", lambda building: write_model(building, stored, card=""))
    built = replace(build_engine(folder), compute="int8")  # there is no dev data on which it could be measured
    _store(engine_folder(folder / "model"), built, stored)
    if ends:
        _store(engine_folder(folder / "model"), replace(built, width=width(folder), machine=this_machine()), stored)
    return folder


def width(run: Path) -> int:
    """The number of hypotheses in a batch that is fastest here, as it is measured on dev data otherwise."""
    texts, model = sentences(128, seed=5), run / "model"
    predictors = {n: open_fast(model, engine_folder(model), layout=Layout(1, n)) for n in WIDTHS}
    return fastest({n: partial(predictor.predict, texts) for n, predictor in predictors.items()})


def cpu(work: Callable[[], object]) -> float:
    """Processor seconds; what a peer in a process of its own says it took."""
    began = process_time()
    said = work()
    return said if isinstance(said, float) else process_time() - began


def measured(works: Works, rounds: int) -> dict[str, list[float]]:
    """Processor seconds of each work in each round, after a warm-up."""
    for work in works.values():
        work()
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            times[name].append(cpu(work))
    return times


def afresh(predictor: Any) -> Any:
    """A predictor whose vocabularies remember no word of the round before: peers get ready-made tokens."""
    for tokenizer in (predictor.tokenizers.source, predictor.tokenizers.target):
        tokenizer._words.__init__()
    return predictor


def fastest(works: dict[int, Callable[[], object]]) -> int:
    """The setting that is fastest here, of two tries each."""
    seconds = {setting: min(cpu(work), cpu(work)) for setting, work in works.items()}
    return min(seconds, key=seconds.__getitem__)


def rows_of(
    work: str, times: dict[str, list[float]], targets: dict[str, float | None], *, units: int, unit: str
) -> list[Row]:
    """jumok against each of the others: how often its time fits into theirs."""
    found = []
    own = times["jumok"]
    for peer, target in targets.items():
        ratio, low, high = middle([theirs / ours for ours, theirs in zip(own, times[peer], strict=True)])
        speeds = [units / middle(times[name])[0] for name in ("jumok", peer)]
        found.append(
            Row(
                work=work,
                against=peer,
                ratio=round(ratio, 3),
                low=round(low, 3),
                high=round(high, 3),
                target=target,
                unit_jumok=f"{speeds[0]:,.0f} {unit}/s of one core",
                unit_peer=f"{speeds[1]:,.0f} {unit}/s",
                rss_jumok=round(peak_memory()),
            )
        )
    return found


def translation(
    name: str,
    run: Path,
    texts: Sequence[str],
    rounds: int,
    beside: Path,
    search: dict[str, Any],
    joeynmt: Path | None = None,
) -> list[Row]:
    """One search by all engines: our fast engine, our reference, CTranslate2 and transformers."""
    fast, reference = load(run, engine="fast"), load(run, engine="torch")
    tokenizers = fast.tokenizers
    sources = [tokenizers.encode_source(text) for text in texts]
    pieces = [tokenizers.source.pieces(ids) for ids in sources]
    theirs = beside / f"{name}-ct2"
    if not theirs.exists():
        export_folder(run, theirs, "ctranslate2")
    beam = 1 if search["method"] == "greedy" else search["beam"]
    limit = max(map(len, sources)) + DecodeConfig().max_extra

    penalty = 0.0 if beam == 1 else search["length_penalty"]
    settings = {"beam_size": beam, "length_penalty": penalty, "max_decoding_length": limit}
    library = Library("Translator", theirs, pieces, settings)
    works: Works = {
        "jumok": lambda: afresh(fast).predict(texts, **search),
        "jumok torch": lambda: afresh(reference).predict(texts, **search),
        "CTranslate2 float32": library.process("float32", beside / f"{name}-{beam}-float32.json"),
        **library.int8(beside / f"{name}-{beam}-int8.json"),
    }
    targets: dict[str, float | None] = dict.fromkeys([*works][1:])
    targets[library.strongest] = 1.0 if not fast.engine.built.shortlist else 1.3
    tokens = sum(len(output.ids) + 1 for output in fast.predict(texts, **search))
    written, vocabulary = round(tokens / len(texts)), tokenizers.target.vocab_size
    c = read_model(run / "model").config
    works["transformers"] = transformers_translation(c, sources, vocabulary, beam, written)
    targets["transformers"] = {"tiny": 8.0, "base": 4.0}.get(name)
    if joeynmt is not None:
        works["JoeyNMT"] = joey_translation(
            joeynmt, c, sources, vocabulary, beam, written, beside / f"{name}-{beam}.json"
        )
        targets["JoeyNMT"] = None
    print(f"{name}: {written} tokens a sentence")
    work = f"{'greedy' if beam == 1 else f'beam {beam}'}, {name} ({fast.engine.built.compute}"
    work += f", shortlist {fast.engine.built.shortlist})" if fast.engine.built.shortlist else ")"
    return rows_of(work, measured(works, rounds), targets, units=tokens, unit="tokens")


def transformers_translation(
    c: TransformerConfig, sources: Sequence[Sequence[int]], vocabulary: int, beam: int, written: int
) -> Callable[[], object]:
    """MarianMTModel.generate of a model of this size, in sorted batches of 32; its weights do not matter, as it is made
    to write as many tokens as the others do on average."""
    from transformers import MarianConfig, MarianMTModel

    pad = vocabulary - 1
    sizes = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (("layers", c.n_layers), ("attention_heads", c.n_heads), ("ffn_dim", c.d_ff))
    }
    ids = {"pad_token_id": pad, "decoder_start_token_id": pad, "eos_token_id": 0, "forced_eos_token_id": None}
    config = MarianConfig(d_model=c.d_model, vocab_size=vocabulary, activation_function="relu", **sizes, **ids)
    model = MarianMTModel(config).eval()
    model.generation_config.max_length = None
    order = sorted(range(len(sources)), key=lambda i: -len(sources[i]))

    def work() -> None:
        with torch.inference_mode():
            for first in range(0, len(order), 32):
                some = [sources[i] for i in order[first : first + 32]]
                width = max(map(len, some))
                read = torch.tensor([[*row, *[pad] * (width - len(row))] for row in some])
                mask = (read != pad).long()
                lengths = {"min_new_tokens": written, "max_new_tokens": written}
                model.generate(input_ids=read, attention_mask=mask, num_beams=beam, **lengths)

    return work


def joey_translation(
    python: Path,
    c: TransformerConfig,
    sources: Sequence[Sequence[int]],
    vocabulary: int,
    beam: int,
    written: int,
    file: Path,
) -> Callable[[], float]:
    """JoeyNMT's search with a model of this size, likewise in sorted batches of 32 and with outputs of this length."""
    sizes = {name: getattr(c, name) for name in ("n_layers", "n_heads", "d_model", "d_ff", "norm")}
    asked = {**sizes, "rows": sources, "vocabulary": vocabulary, "beam": beam, "alpha": 0.6, "written": written}
    return in_process([str(python), str(Path(__file__).with_name("joey.py"))], asked, file)


def in_process(command: Sequence[str], asked: dict[str, Any], file: Path) -> Callable[[], float]:
    """A peer in a process of its own, which finds what is asked of it in a file and says how long it took."""
    file.write_text(json.dumps(asked), "utf-8")
    own = {name: value for name, value in os.environ.items() if name != INSTRUCTIONS}
    peer = subprocess.Popen([*command, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=own)
    assert peer.stdin is not None
    assert peer.stdout is not None
    asking, answers = peer.stdin, peer.stdout

    def work() -> float:
        print(file=asking, flush=True)
        return float(answers.readline())

    return work


@dataclass(frozen=True)
class Library:
    """CTranslate2 called directly."""

    kind: str
    folder: Path
    pieces: Sequence[Sequence[str]]
    settings: dict[str, Any]

    def process(self, compute: str, file: Path, **settings: Any) -> Callable[[], float]:
        """With the instructions that it chooses itself."""
        asked = {"kind": self.kind, "folder": str(self.folder), "compute": compute, "pieces": self.pieces}
        asked["settings"] = self.settings | settings
        return in_process([sys.executable, str(Path(__file__).with_name("library.py"))], asked, file)

    def int8(self, file: Path) -> Works:
        """In batches of the size that is fastest here; also in this process, where AVX-512 is on if it can be."""
        chosen = {f"CTranslate2 int8, batches of {self.best}": self.process("int8", file, max_batch_size=self.best)}
        return {**chosen, **({self.strongest: self.here(self.best)} if os.environ.get(INSTRUCTIONS) else {})}

    @property
    def strongest(self) -> str:
        name = f"CTranslate2 int8, batches of {self.best}"
        return f"{name}, {os.environ[INSTRUCTIONS]}" if os.environ.get(INSTRUCTIONS) else name

    @cached_property
    def best(self) -> int:
        return fastest({n: self.here(n) for n in BATCHES})

    @cached_property
    def _method(self) -> Callable[..., object]:
        one = {"inter_threads": 1, "intra_threads": 1}
        model = getattr(ctranslate2, self.kind)(str(self.folder), compute_type="int8", **one)
        method: Callable[..., object] = model.translate_batch if self.kind == "Translator" else model.generate_batch
        return method

    def here(self, n: int) -> Callable[[], object]:
        return lambda: self._method(self.pieces, max_batch_size=n, **self.settings)


def generation(rounds: int, beside: Path) -> list[Row]:
    """64 prompts of 8 to 40 tokens continued greedily by 50, by a GPT of 4 layers of 256."""
    tokenizer = Tokenizer.train(TokenizerConfig(kind="byte_bpe", vocab_size=VOCABULARY), sentences(4000))
    c = GptConfig(d_model=256, d_ff=1024, n_heads=4, n_layers=4, dropout=0.0, attention_dropout=0.0, max_len=256)
    run = make_run(beside / "gpt", c, tokenizer)
    rng = np.random.default_rng(3)
    pool = sentences(64, seed=4)
    prompts = [tokenizer.decode(tokenizer.encode(text)[: rng.integers(8, 40)]) for text in pool]
    fast, reference = load(run, engine="fast"), load(run, engine="torch")
    options = {"method": "greedy", "max_extra": 50}
    start = tokenizer.pieces([tokenizer.start_id])
    pieces = [[*start, *tokenizer.pieces(tokenizer.encode(prompt))] for prompt in prompts]
    export_folder(run, beside / "gpt-ct2", "ctranslate2")
    settings = {"max_length": 50, "include_prompt_in_result": False, "sampling_topk": 1}
    library = Library("Generator", beside / "gpt-ct2", pieces, settings)
    works: Works = {
        "jumok": lambda: afresh(fast).predict(prompts, **options),
        "jumok torch": lambda: afresh(reference).predict(prompts, **options),
        **library.int8(beside / "gpt-int8.json"),
        "transformers": transformers_generation(run, pieces, tokenizer, beside),
    }
    targets: dict[str, float | None] = dict.fromkeys([*works][1:]) | {library.strongest: 1.0}
    return rows_of("GPT 4/256, 64 prompts (int8)", measured(works, rounds), targets, units=64 * 50, unit="tokens")


def transformers_generation(
    run: Path, pieces: Sequence[Sequence[str]], tokenizer: Tokenizer, beside: Path
) -> Callable[[], object]:
    """GPT2LMHeadModel.generate, all prompts in one batch, padded to the left."""
    from transformers import GPT2LMHeadModel

    export_folder(run, beside / "gpt-hf")
    model = GPT2LMHeadModel.from_pretrained(beside / "gpt-hf").eval()
    known = {piece: i for i, piece in enumerate(tokenizer.pieces(range(tokenizer.vocab_size)))}
    rows = [[known[piece] for piece in each] for each in pieces]
    width = max(map(len, rows))
    ids = torch.tensor([[*[0] * (width - len(row)), *row] for row in rows])
    mask = torch.tensor([[*[0] * (width - len(row)), *[1] * len(row)] for row in rows])

    def work() -> None:
        with torch.inference_mode():
            model.generate(input_ids=ids, attention_mask=mask, max_new_tokens=50, do_sample=False, pad_token_id=0)

    return work


COLD = """
import sys
import jumok
print(jumok.load(sys.argv[1])([sys.argv[2]])[0])
"""
COLD_PEER = """
import sys
from transformers import MarianMTModel, PreTrainedTokenizerFast
model = MarianMTModel.from_pretrained(sys.argv[1])
tokenizer = PreTrainedTokenizerFast.from_pretrained(sys.argv[1])
read = tokenizer(sys.argv[2], return_tensors="pt", return_token_type_ids=False)
written = model.generate(**read, num_beams=4, min_new_tokens=15, max_new_tokens=15)
print(tokenizer.decode(written[0], skip_special_tokens=True))
"""


def cold(run: Path, theirs: Path, rounds: int) -> list[Row]:
    """Processor time and memory of a process that loads the model and translates one sentence."""
    text = sentences(1)[0]
    seconds: dict[str, list[float]] = {"jumok": [], "transformers": []}
    memory: dict[str, float] = {}
    for _ in range(rounds):
        for name, code, folder in (("jumok", COLD, run), ("transformers", COLD_PEER, theirs)):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            measure = "import resource;r=resource.getrusage(resource.RUSAGE_SELF);print(r.ru_maxrss, file=sys.stderr)"
            command = [sys.executable, "-c", code + measure, str(folder), text]
            said = subprocess.run(command, capture_output=True, text=True, check=True).stderr.split()
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds[name].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
            memory[name] = int(said[-1]) / 1024
    ratio, low, high = middle([t / j for j, t in zip(seconds["jumok"], seconds["transformers"], strict=True)])
    return [
        Row(
            work="first answer, cold",
            against="transformers",
            ratio=round(ratio, 3),
            low=round(low, 3),
            high=round(high, 3),
            target=8.0,
            unit_jumok=f"{middle(seconds['jumok'])[0]:.2f} s",
            unit_peer=f"{middle(seconds['transformers'])[0]:.2f} s",
            rss_jumok=round(memory["jumok"]),
            rss_peer=round(memory["transformers"]),
        )
    ]


FILE = """
import resource, subprocess, sys
from time import perf_counter
began = perf_counter()
command = [sys.executable, "-m", "jumok", "predict", sys.argv[1], sys.argv[2]]
subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
print(perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
"""


def file_of(run: Path, texts: Sequence[str], threads: int, beside: Path) -> tuple[float, float]:
    """Seconds and peak megabytes of `jumok predict` on a file."""
    path = beside / "texts.txt"
    path.write_text("".join(f"{text}\n" for text in texts), "utf-8")
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    command = [sys.executable, "-c", FILE, str(run), str(path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.split()
    return float(said[0]), float(said[1])


def scheduling(run: Path, rounds: int, beside: Path) -> list[Row]:
    """Two cores against one (the time to start taken off), and memory for a file a hundred times as long."""
    few, many = sentences(1, seed=9), sentences(6000, seed=9)
    speedups = []
    for _ in range(rounds):
        one, two = ((file_of(run, many, n, beside)[0] - file_of(run, few, n, beside)[0]) for n in (1, 2))
        speedups.append(one / two)
    ratio, low, high = middle(speedups)
    small, large = (file_of(run, sentences(n, seed=9), 1, beside)[1] for n in (1000, 100_000))
    shared = {"unit_peer": "", "unit_jumok": ""}
    return [
        Row(work="two cores", against="one core", ratio=round(ratio, 3), low=round(low, 3), high=round(high, 3),
            target=1.8, **shared),
        Row(work="memory, a file of 100,000 lines", against="1,000 lines", ratio=round(large / small, 3),
            low=round(large / small, 3), high=round(large / small, 3), target=1.1,
            unit_jumok=f"{large:.0f} MB", unit_peer=f"{small:.0f} MB", rss_jumok=round(large), rss_peer=round(small)),
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", help="of tiny,base,gpt,cold,scheduling,run; the results of the others are kept")
    parser.add_argument("--run", type=Path)
    parser.add_argument("--text", type=Path)
    parser.add_argument("--joeynmt", type=Path, metavar="PYTHON")
    parser.add_argument("--sentences", type=int, default=SENTENCES)
    given = parser.parse_args()
    only, rounds = (given.only or "tiny,base,gpt,cold,scheduling,run").split(","), given.rounds
    torch.set_num_threads(1)
    prefer_avx512()  # before the first model is opened, whoever does that
    greedy, beam = {"method": "greedy"}, {"method": "beam", "beam": 4, "length_penalty": 0.6}
    kept = bool(given.only)

    def store(rows: list[Row]) -> None:
        nonlocal kept
        write("prediction", rows, keep=kept)
        kept = True  # what was measured a moment ago

    with tempfile.TemporaryDirectory() as folder:
        beside = Path(folder)
        tokenizer = Tokenizer.train(
            TokenizerConfig(kind="word", vocab_size=VOCABULARY), [" ".join(words(VOCABULARY - 3))]
        )
        texts = sentences(given.sentences)
        for name in ("tiny", "base"):
            if name in only or (name == "tiny" and {"cold", "scheduling"} & {*only}):
                run = make_run(beside / name, SIZES[name], tokenizer)
            if name in only:
                some = texts if name == "tiny" else texts[: len(texts) // 4]
                for search in (beam, greedy):
                    store(translation(name, run, some, rounds, beside, search, given.joeynmt))
        if given.run is not None and "run" in only:
            ensure_engine(given.run, print)
            lines = given.text.read_text("utf-8").splitlines()[: given.sentences]
            for search in (beam, greedy):
                store(translation(given.run.name, given.run, lines, rounds, beside, search))
        if "gpt" in only:
            store(generation(rounds, beside))
        if "cold" in only:
            joint = replace(SIZES["tiny"], norm="post")  # as Marian
            export_folder(make_run(beside / "joint", joint, tokenizer, ends=False), beside / "tiny-hf")
            store(cold(beside / "tiny", beside / "tiny-hf", rounds))
        if "scheduling" in only:
            store(scheduling(beside / "tiny", rounds, beside))


if __name__ == "__main__":
    main()
