"""Preparing text: learning a vocabulary of 8,000 BPE tokens, and writing the token shards of a parallel corpus.

    python benchmarks/preparation.py [--rounds 7] [--threads 1 2]

The text is German and English captions and Korean and English documentation, from the folder named by JUMOK_DATA;
without it, numbers in words, which the repository makes. The peers are `tokenizers` called directly, with the same
normaliser, words and vocabulary (its ids are compared with ours, byte for byte), and sentencepiece if it is installed.
Every measurement is a process of its own with the same number of threads: CPU seconds from the first line read to the
last byte written, and what that added to resident memory; imports are not counted.
"""

import argparse
import gzip
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from time import process_time

from interleave import Row, middle, peak_memory, write

PIECES = 8000
TOGETHER = 10_000  # lines that the peers encode at once
CORPORA = {"captions, de-en": "multi30k/train.{de,en}.gz", "documentation, ko-en": "pydocs_ko_en/train.{ko,en}.gz"}
PEERS = {"tokenizers": "Hugging Face tokenizers", "sentencepiece": "sentencepiece"}
TARGETS = {"tokenizers": 1.0, "sentencepiece": None}
WORKS = {"learn": f"learning {PIECES:,} BPE tokens", "shards": "writing token shards"}
Work = Callable[[], object]


def lines_of(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", newline="\n") as stream:
        for line in stream:
            yield line.removesuffix("\n")


def of_jumok(work: str, files: list[Path], vocabulary: Path, out: Path) -> Work:
    from jumok.data.cache import Cache
    from jumok.data.corpus import Corpus
    from jumok.examples.pairs import ParallelData
    from jumok.tasks.prepare import Recorded, prepare_shards
    from jumok.tasks.translation.task import encode_pairs, pair_tokenizers
    from jumok.text.tokenizer import Tokenizer, Tokenizers
    from jumok.text.vocabulary import TokenizerConfig

    data = ParallelData(source="a", target="b", train=[[str(file) for file in files]], max_len=100_000)
    corpus, cache = Corpus(data, "train", seed=1), Cache(out)

    def learn() -> None:
        pair_tokenizers(TokenizerConfig(vocab_size=PIECES), corpus, cache).source.save(vocabulary)

    def shards() -> None:
        tokenizer, facts = Tokenizer.load(vocabulary), {}
        rows = encode_pairs(corpus, Tokenizers(tokenizer, tokenizer), data.max_len, facts)
        recorded = Recorded(rows, ("source", "target"), tokenizer.vocab_size, facts)
        prepare_shards(cache, [corpus.fingerprint(), tokenizer.sha256], lambda: recorded)

    return learn if work == "learn" else shards


def of_tokenizers(work: str, files: list[Path], vocabulary: Path, out: Path) -> Work:
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    special = ["</s>", "<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "<pad>"]

    def learn() -> None:
        tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
        tokenizer.normalizer = normalizers.Sequence(
            [
                normalizers.NFC(),
                normalizers.Replace("▁", "_"),
                normalizers.Replace(Regex(r"\s+"), " "),
                normalizers.Strip(),
            ]
        )
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Metaspace(prepend_scheme="always"), pre_tokenizers.Punctuation("isolated")]
        )
        tokenizer.decoder = decoders.Metaspace()
        alphabet = (PIECES - len(special)) // 2
        trainer = trainers.BpeTrainer(
            vocab_size=PIECES, special_tokens=special, limit_alphabet=alphabet, show_progress=False
        )
        tokenizer.train_from_iterator(itertools.chain.from_iterable(map(lines_of, files)), trainer)
        tokenizer.save(str(out / "tokenizer.json"))

    def shards() -> None:
        tokenizer = Tokenizer.from_file(str(vocabulary))  # its post-processor ends every text with </s>
        write_ids(files, out, lambda texts: [encoding.ids for encoding in tokenizer.encode_batch_fast(texts)])

    return learn if work == "learn" else shards


def of_sentencepiece(work: str, files: list[Path], vocabulary: Path, out: Path) -> Work:
    import sentencepiece

    threads = int(os.environ["RAYON_NUM_THREADS"])
    model = vocabulary.with_suffix("")

    def learn() -> None:
        sentencepiece.SentencePieceTrainer.train(
            input=[str(file) for file in files],
            model_prefix=str(model),
            model_type="bpe",
            vocab_size=PIECES,
            byte_fallback=True,
            num_threads=threads,
            minloglevel=2,
        )

    def shards() -> None:
        processor = sentencepiece.SentencePieceProcessor(model_file=f"{model}.model", num_threads=threads)
        write_ids(files, out, lambda texts: processor.encode(texts, add_eos=True))

    return learn if work == "learn" else shards


def write_ids(files: Sequence[Path], out: Path, encode: Callable[[list[str]], list[list[int]]]) -> None:
    """Ids end to end and the ends of the lines, as jumok writes them."""
    import numpy as np

    for name, file in zip(("source", "target"), files, strict=True):
        ends = [np.zeros(1, np.int64)]
        lines = lines_of(file)
        with (out / f"{name}.tokens").open("wb") as tokens:
            while texts := list(itertools.islice(lines, TOGETHER)):
                rows = encode(texts)
                np.fromiter(itertools.chain.from_iterable(rows), np.uint16).tofile(tokens)
                ends.append(ends[-1][-1] + np.cumsum([len(row) for row in rows]))
        np.concatenate(ends).tofile(out / f"{name}.offsets")


MAKERS = {"jumok": of_jumok, "tokenizers": of_tokenizers, "sentencepiece": of_sentencepiece}


def measure_here(name: str, work: str, files: list[Path], vocabulary: Path, out: Path) -> None:
    """What the child process does: the work, then its cost as JSON."""
    todo = MAKERS[name](work, files, vocabulary, out)
    resident, began = peak_memory(), process_time()
    todo()
    print(json.dumps({"cpu": process_time() - began, "rss": peak_memory() - resident}))


def measure(name: str, work: str, files: list[Path], folder: Path, threads: int) -> tuple[float, float, list[bytes]]:
    """CPU seconds, megabytes, and the files of tokens."""
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    environment = {
        **os.environ,
        "RAYON_NUM_THREADS": str(threads),
        "TOKENIZERS_PARALLELISM": "true" if threads > 1 else "false",
        "OMP_NUM_THREADS": str(threads),
    }
    command = [
        sys.executable,
        __file__,
        "--child",
        name,
        work,
        *map(str, files),
        str(folder / "vocabulary.json"),
        str(out),
    ]
    said = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    cost = json.loads(said)
    return cost["cpu"], cost["rss"], [path.read_bytes() for path in sorted(out.rglob("*.tokens"))]


def corpora(folder: Path) -> Iterator[tuple[str, list[Path]]]:
    """Names and plain files of the corpora."""
    data = os.environ.get("JUMOK_DATA")
    if not data:
        from jumok.examples.made.numbers import generate

        files = [folder / "numbers.ko", folder / "numbers.en"]
        pairs = list(generate("korean_numbers", "train", n=30_000, seed=1))
        for i, file in enumerate(files):
            file.write_text("".join(f"{pair[i]}\n" for pair in pairs), "utf-8")
        yield "numbers, ko-en", files
    for name, pattern in CORPORA.items() if data else ():
        both, files = pattern[pattern.index("{") + 1 : pattern.index("}")], []
        for language in both.split(","):
            packed = Path(data) / pattern.replace(f"{{{both}}}", language)
            files.append(folder / f"{packed.parent.name}.{language}")
            with gzip.open(packed) as stream, files[-1].open("wb") as plain:
                shutil.copyfileobj(stream, plain)
        yield name, files


def compare(text: str, files: list[Path], folder: Path, threads: int, rounds: int, rows: list[Row]) -> None:
    names = ["jumok", *(name for name in PEERS if find_spec(name))]
    size = sum(file.stat().st_size for file in files) / 1e6
    for work, title in WORKS.items():
        cost: dict[str, list[float]] = {name: [] for name in names}
        memory: dict[str, float] = {}
        written = {}
        for turn in range(rounds + 1):  # the first is to warm up
            for name in names:
                seconds, memory[name], written[name] = measure(name, work, files, folder, threads)
                cost[name] += [seconds] if turn else []
        if written["jumok"] != written["tokenizers"]:
            sys.exit(f"{text}: jumok and tokenizers wrote different ids")
        unit = {
            n: f"{size / statistics.median(found):.2f} MB/s, {statistics.median(found):.2f} s CPU"
            for n, found in cost.items()
        }
        for peer in names[1:]:
            ratio, low, high = middle([b / a for a, b in zip(cost["jumok"], cost[peer], strict=True)])
            rows.append(
                Row(
                    work=f"{title}, {text}, {threads} thread{'s' if threads > 1 else ''}",
                    against=PEERS[peer],
                    ratio=ratio,
                    low=low,
                    high=high,
                    target=TARGETS[peer],
                    unit_jumok=unit["jumok"],
                    unit_peer=unit[peer],
                    rss_jumok=memory["jumok"],
                    rss_peer=memory[peer],
                )
            )


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        name, work, *paths = sys.argv[2:]
        *files, vocabulary, out = map(Path, paths)
        measure_here(name, work, files, vocabulary, out)
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    asked = parser.parse_args()
    if not find_spec("sentencepiece"):
        print("sentencepiece is not installed: skipped")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        for text, files in corpora(Path(name)):
            for threads in asked.threads:
                compare(text, files, Path(name), threads, asked.rounds, rows)
    write("preparation", rows)


if __name__ == "__main__":
    main()
