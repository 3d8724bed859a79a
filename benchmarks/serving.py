"""Serving: many clients at once, more work than the machine can do, and the attention of a large encoder.

    python benchmarks/serving.py [RUN FILE] [--sentences 256] [--rounds 5]

RUN translates, as a Transformer (its model folder is Marian's, so transformers reads the same weights); FILE has a
text on each line. Without them, the quickstart's model is trained for 400 steps with post-norm. 32 clients on
loopback, each with one connection and one sentence a request, against `jumok predict` of the same sentences (the time
to start and to load taken off), and against what people write first around transformers: an endpoint that answers one
request at a time, with the same beam. Then requests of 16 sentences come ten times as fast as the server answers
them, while another client asks for /health. Last, all maps of a random BERT of 12 layers and 12 heads at 512 tokens,
and one head of it as the page fetches it.
"""

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from interleave import Row, middle, write

CLIENTS = 32
OVERLOAD, PER_REQUEST, SECONDS = 10, 16, 10.0
HEALTH, REFUSAL, PICTURE = 0.100, 0.050, 2.0
PEER = """
import sys
from threading import Lock
import torch, uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
from transformers import MarianMTModel, PreTrainedTokenizerFast

model = MarianMTModel.from_pretrained(sys.argv[1]).eval()
tokenizer = PreTrainedTokenizerFast.from_pretrained(sys.argv[1])
lock = Lock()

def translate(text):
    with lock, torch.inference_mode():
        read = tokenizer(text, return_tensors="pt", return_token_type_ids=False)
        written = model.generate(**read, num_beams=4, max_new_tokens=read.input_ids.shape[1] + 50)
        return tokenizer.decode(written[0], skip_special_tokens=True)

async def predict(request):
    from asyncio import to_thread
    return JSONResponse({"text": await to_thread(translate, (await request.json())["examples"])})

app = Starlette(routes=[Route("/predict", predict, methods=["POST"])])
server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
config = server.config
config.load()
listening = config.bind_socket()
listening.listen(128)
print("at http://127.0.0.1:%d" % listening.getsockname()[1], flush=True)
server.run(sockets=[listening])
"""


@contextmanager
def server(*command: str) -> Iterator[tuple[int, int]]:
    """A server in a process of its own: its port and process."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if found := re.search(r"at http://127\.0\.0\.1:(\d+)", line):
            break
    else:
        raise SystemExit("".join(said))
    reading = subprocess.Popen(["cat"], stdin=process.stdout, stdout=subprocess.DEVNULL)  # a full pipe would stop it
    try:
        yield int(found[1]), process.pid
    finally:
        process.terminate()
        process.wait()
        reading.wait()
        process.stdout.close()


async def post(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, body: object
) -> tuple[int, bytes]:
    """Status and content of a request over an open connection."""
    content = json.dumps(body).encode() if body is not None else b""
    method = "GET" if body is None else "POST"
    head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    writer.write(f"{head}content-length: {len(content)}\r\n\r\n".encode() + content)
    answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = re.search(r"content-length: (\d+)", answer)
    assert length is not None, answer
    return int(answer.split()[1]), await reader.readexactly(int(length[1]))


@dataclass
class Load:
    """What clients saw: seconds of each request, by status."""

    took: float = 0.0
    seconds: dict[int, list[float]] = field(default_factory=dict)

    def add(self, status: int, seconds: float) -> None:
        self.seconds.setdefault(status, []).append(seconds)


async def closed(port: int, path: str, texts: Sequence[str]) -> Load:
    """So many clients, each of which sends its next sentence when it has the answer to the one before."""
    load, waiting = Load(), iter(texts)

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for text in waiting:
            began = perf_counter()
            status, _ = await post(reader, writer, path, {"examples": text})
            load.add(status, perf_counter() - began)
        writer.close()

    began = perf_counter()
    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    load.took = perf_counter() - began
    assert load.seconds.keys() == {200}, load.seconds.keys()
    return load


async def overload(port: int, path: str, texts: Sequence[str], rate: float) -> tuple[Load, Load]:
    """Requests at a fixed rate for some seconds, whatever becomes of them; and what /health took meanwhile."""
    work, health = Load(), Load()
    done = asyncio.Event()

    async def one(n: int) -> None:
        first = n * PER_REQUEST % max(len(texts) - PER_REQUEST, 1)
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            began = perf_counter()
            status, _ = await post(reader, writer, path, {"examples": list(texts[first : first + PER_REQUEST])})
            work.add(status, perf_counter() - began)
            writer.close()
        except OSError:
            work.add(0, 0.0)

    async def look() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while not done.is_set():
            began = perf_counter()
            status, _ = await post(reader, writer, "/health", None)
            health.add(status, perf_counter() - began)
            await asyncio.sleep(0.05)
        writer.close()

    looking = asyncio.create_task(look())
    began, sent = perf_counter(), []
    while (now := perf_counter() - began) < SECONDS:
        while len(sent) < now * rate:
            sent.append(asyncio.create_task(one(len(sent))))
        await asyncio.sleep(0.005)
    done.set()
    await looking
    await asyncio.gather(*sent)
    return work, health


async def timed(port: int, path: str, body: object) -> float:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 26)
    began = perf_counter()
    status, content = await post(reader, writer, path, body)
    assert status == 200, content[:300]
    writer.close()
    return perf_counter() - began


def resident(process: int) -> float:
    """Megabytes."""
    status = Path(f"/proc/{process}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+)", status)
    assert found is not None
    return int(found[1]) / 1024


def predicted(run: Path, texts: Sequence[str], folder: Path) -> float:
    """Seconds that `jumok predict` takes for the texts, those of start and load taken off."""

    def seconds(lines: Sequence[str]) -> float:
        file = folder / "lines.txt"
        file.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        began = perf_counter()
        command = [sys.executable, "-m", "jumok", "predict", str(run), str(file)]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        return perf_counter() - began

    return seconds(texts) - seconds(texts[:1])


def bert(folder: Path) -> Path:
    """A run around a BERT of the published size with random weights."""
    from tokenizers import BertWordPieceTokenizer
    from transformers import BertConfig, BertForPreTraining

    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{c}" for c in letters)]
    BertForPreTraining(BertConfig(vocab_size=len(vocabulary))).save_pretrained(folder / "bert")
    BertWordPieceTokenizer({word: n for n, word in enumerate(vocabulary)}).save(str(folder / "bert/tokenizer.json"))
    (folder / "bert/vocab.txt").write_text("".join(f"{word}\n" for word in vocabulary), "utf-8")
    subprocess.run([sys.executable, "-m", "jumok", "import", folder / "bert", folder / "large"], check=True)
    return folder / "large"


def made(folder: Path) -> tuple[Path, list[str]]:
    """A small translator of numbers, and texts that it has not seen."""
    from jumok.recipe import load_recipe
    from jumok.shipped import shipped_recipe

    recipe, run = shipped_recipe("quickstart"), folder / "numbers"
    settings = ("model.norm=post", "train.steps=400", "train.evaluate_every=400", "train.save_every=400")
    command = [sys.executable, "-m", "jumok", "train", str(recipe), "--out", str(run)]
    subprocess.run([*command, *(word for key in settings for word in ("--set", key))], check=True, capture_output=True)
    return run, [pair.source for pair in load_recipe(recipe).data.read("test", seed=1)]


def at_least(work: str, against: str, found: list[float], target: float, units: tuple[str, str]) -> Row:
    ratio, low, high = middle(found)
    values = {"ratio": ratio, "low": low, "high": high, "target": target}
    return Row(work=work, against=against, unit_jumok=units[0], unit_peer=units[1], **values)


def most(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


def throughput(run: Path, texts: list[str], rounds: int, folder: Path, rows: list[Row]) -> float:
    """Sentences a second of the server."""
    few = texts[: max(len(texts) // 4, CLIENTS)]
    times: dict[str, list[float]] = {"served": [], "predict": [], "peer": []}
    latencies: dict[str, list[float]] = {"served": [], "peer": []}
    jumok = [sys.executable, "-m", "jumok", "serve", str(run), "--port", "0"]
    path = f"/api/runs/{run.resolve().name}/predict"
    for n in range(rounds + 1):  # the first is to warm up
        with server(*jumok) as (port, _):
            asyncio.run(closed(port, path, few))
            load = asyncio.run(closed(port, path, texts))
        with server(sys.executable, "-c", PEER, str(run / "model")) as (port, _):
            peer = asyncio.run(closed(port, "/predict", few))
        alone = predicted(run, texts, folder)
        if n:
            times["served"].append(len(texts) / load.took)
            times["peer"].append(len(few) / peer.took)
            times["predict"].append(len(texts) / alone)
            latencies["served"] += load.seconds[200]
            latencies["peer"] += peer.seconds[200]
    unit = {name: f"{statistics.median(found):,.1f} sentences/s" for name, found in times.items()}
    for name, found in latencies.items():
        unit[name] += f", p50 {most(found, 0.5):.2f} s, p99 {most(found, 0.99):.2f} s"
    work = f"translate, {CLIENTS} clients"
    for peer_name, against, target in (
        ("predict", "jumok predict", 0.9),
        ("peer", "transformers, one request at a time", 3.0),
    ):
        ratios = [one / other for one, other in zip(times["served"], times[peer_name], strict=True)]
        rows.append(at_least(work, against, ratios, target, (unit["served"], unit[peer_name])))
    return statistics.median(times["served"])


def under_overload(run: Path, texts: list[str], speed: float, rounds: int, rows: list[Row]) -> None:
    path = f"/api/runs/{run.resolve().name}/predict"
    rate = OVERLOAD * speed / PER_REQUEST
    health, refused, before, after = [], [], [], []
    answered = turned_away = 0
    for _ in range(rounds):
        with server(sys.executable, "-m", "jumok", "serve", str(run), "--port", "0") as (port, process):
            asyncio.run(closed(port, path, texts))
            before.append(resident(process))
            work, looks = asyncio.run(overload(port, path, texts, rate))
            after.append(resident(process))
        assert work.seconds.keys() <= {200, 429, 503, 504}, work.seconds.keys()
        health.append(max(looks.seconds[200]))
        refused.append(most([*work.seconds.get(429, []), *work.seconds.get(503, [])] or [0.0], 0.99))
        answered += len(work.seconds.get(200, []))
        turned_away += len(work.seconds.get(429, [])) + len(work.seconds.get(503, []))
    work_name = f"{OVERLOAD} times as many requests as are answered"
    told = f"{answered} answered, {turned_away} refused"
    for what, limit, found in (("/health, slowest", HEALTH, health), ("refusals, p99", REFUSAL, refused)):
        units = (f"{1000 * statistics.median(found):.0f} ms; {told}", f"{1000 * limit:.0f} ms")
        rows.append(at_least(f"{work_name}: {what}", "the limit", [limit / max(x, 1e-6) for x in found], 1.0, units))
    memory = [b / a for a, b in zip(after, before, strict=True)]
    units = (f"{statistics.median(after):,.0f} MB", f"{statistics.median(before):,.0f} MB")
    rows.append(at_least(f"{work_name}: memory", "before", memory, 0.8, units))


def pictures(rounds: int, folder: Path, rows: list[Row]) -> None:
    run = bert(folder)
    body = {"example": " ".join(["a"] * 510)}
    head = {**body, "map": "self", "layer": 11, "head": 3}
    first, one = [], []
    for _ in range(rounds):
        with server(sys.executable, "-m", "jumok", "serve", str(run), "--port", "0") as (port, _):
            first.append(asyncio.run(timed(port, f"/api/runs/{run.name}/attention", body)))
            one.append(asyncio.run(timed(port, f"/api/runs/{run.name}/attention/head", head)))
    for what, found in (("144 maps of BERT-base at 512 tokens", first), ("one of them in full, then", one)):
        units = (f"{statistics.median(found):.2f} s", f"{PICTURE:.0f} s")
        rows.append(at_least(what, "the limit", [PICTURE / x for x in found], 1.0, units))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("run", type=Path, nargs="?")
    arguments.add_argument("file", type=Path, nargs="?")
    arguments.add_argument("--sentences", type=int, default=256)
    arguments.add_argument("--rounds", type=int, default=5)
    asked = arguments.parse_args()
    os.environ.pop("OMP_NUM_THREADS", None)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        run, lines = (asked.run, asked.file.read_text("utf-8").splitlines()) if asked.file else made(Path(name))
        texts = lines[: asked.sentences]
        speed = throughput(run, texts, asked.rounds, Path(name), rows)
        under_overload(run, texts, speed, asked.rounds, rows)
        pictures(asked.rounds, Path(name), rows)
    write("serving", rows)


if __name__ == "__main__":
    main()
