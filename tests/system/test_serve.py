"""A server as users start it: requests from many clients, slow ones cut off, drained when it is asked to stop."""

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from served import Served


@pytest.fixture(scope="module")
def served(jumok, reversed_run):
    found = Served(jumok, reversed_run)
    yield found
    assert found.stop() == 0


@pytest.fixture(scope="module", autouse=True)
def slow(served):
    """Slow clients, from now on; the tests above the last ones are answered meanwhile."""
    with ThreadPoolExecutor() as pool:
        yield {client: pool.submit(client, served) for client in (head_that_trickles, body_that_trickles, idle_reader)}


def test_many_clients_get_what_predict_gives(served, jumok, reversed_run):
    texts = [" ".join(str((7 * n + k) % 10) for k in range(1 + n % 6)) for n in range(64)]
    expected = jumok("predict", reversed_run, stdin="\n".join(texts) + "\n").stdout.splitlines()
    found: dict[str, str] = {}

    def ask(some: list[str]) -> None:
        for text in some:
            status, answer = served.ask("POST", "/api/runs/reverse/predict", {"examples": [text]})
            found[text] = answer["outputs"][0]["text"] if status == 200 else f"{status} {answer}"

    clients = [threading.Thread(target=ask, args=(texts[n::16],)) for n in range(16)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert [found[text] for text in texts] == expected


def raw(served: Served, sent: bytes, *, wait: float) -> bytes:
    """What comes back, until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=wait) as connection:
        connection.sendall(sent)
        got = b""
        while part := connection.recv(65536):
            got += part
        return got


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000 + b"\r\n\r\n", 431),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 100 + b"\r\n", 431),
        (b"GET /" + b"x" * 10_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", 400),
    ],
)
def test_heads_that_are_too_large_or_wrong_are_refused(served, sent, status):
    assert raw(served, sent, wait=20).split()[1] == str(status).encode()


def test_what_was_accepted_is_answered_before_the_end(jumok, reversed_run):
    served = Served(jumok, reversed_run)
    answers = []
    body = {"examples": ["1 2 3 4 5 6"] * 200, "options": {"beam": 8}}
    client = threading.Thread(target=lambda: answers.append(served.ask("POST", "/api/runs/reverse/predict", body)))
    client.start()
    deadline = time.monotonic() + 30
    while b"jumok_queue_inputs 0" in metrics(served) and not answers and time.monotonic() < deadline:
        time.sleep(0.01)
    assert served.stop() == 0
    client.join()
    status, answer = answers[0]
    assert (status, len(answer["outputs"])) == (200, 200)


def metrics(served: Served) -> bytes:
    return served.fetch("GET", "/metrics")[2]


def test_a_port_that_is_taken_and_nothing_to_serve_are_named(jumok, served, reversed_run):
    assert f"127.0.0.1:{served.port}" in jumok("serve", reversed_run, "--port", served.port, code=2).stderr
    assert "nothing to serve" in jumok("serve", code=2).stderr


def head_that_trickles(served: Served) -> tuple[bytes, float]:
    """What it gets, and after how many seconds."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as slow:
        began = time.monotonic()
        slow.sendall(b"GET /health HTTP/1.1\r\n")
        slow.settimeout(1.0)
        got = b""
        while not got and time.monotonic() - began < 25:
            try:
                slow.sendall(b"X: y\r\n")
                got = slow.recv(1000)
            except TimeoutError:
                assert served.ask("GET", "/health")[0] == 200
        return got, time.monotonic() - began


def body_that_trickles(served: Served) -> bool:
    """Whether it is cut off, in time."""
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", served.port), timeout=60) as body:
        body.sendall(b"POST /api/runs/reverse/predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\n")
        while time.monotonic() - began < 75:
            try:
                body.sendall(b" ")
            except OSError:
                return True
            assert served.ask("GET", "/health", timeout=10)[0] == 200
            time.sleep(0.5)
    return False


def idle_reader(served: Served) -> bool:
    """Whether a client is cut off that asks and asks, and reads no answer."""
    began, sent = time.monotonic(), 0
    with socket.socket() as reader:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        reader.settimeout(2.0)
        reader.connect(("127.0.0.1", served.port))
        while time.monotonic() - began < 75:
            try:
                if sent < 3000:
                    reader.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100)
                    sent += 100
                else:
                    reader.sendall(b"G")
            except TimeoutError:
                sent = 3000
            except OSError:
                return True
            assert served.ask("GET", "/health", timeout=10)[0] == 200
            time.sleep(0.5)
    return False


def test_a_head_that_trickles_is_cut_off_and_others_are_answered(slow):
    got, seconds = slow[head_that_trickles].result()
    assert got.split()[1] == b"408"
    assert seconds < 15


def test_a_body_that_trickles_and_answers_that_nobody_reads_are_cut_off(slow):
    """After 30 s, and after twice 15 s; others are answered meanwhile."""
    assert slow[body_that_trickles].result()
    assert slow[idle_reader].result()
