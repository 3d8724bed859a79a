"""The process of a server: socket, signals, draining."""

import logging
import signal
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

import uvicorn

from jumok.errors import InputError
from jumok.serve.access import LOCAL, Access
from jumok.serve.app import Server
from jumok.serve.http import GuardedProtocol
from jumok.serve.models import Models
from jumok.serve.queue import Queue
from jumok.serve.routes import ROUTES

DRAIN = 20
"""seconds that accepted requests have to be answered in, once the server is asked to stop"""
CONNECTIONS = 256


class _Draining(uvicorn.Server):
    """Is not ready from the signal on, and ends with exit code 0: uvicorn's would raise the signal again."""

    def __init__(self, config: uvicorn.Config, server: Server) -> None:
        super().__init__(config)
        self._server = server

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._server.draining = True
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def serve_until_asked(
    runs: Sequence[Path],
    folder: Path | None,
    *,
    host: str,
    port: int,
    say: Callable[[str], None],
    hosts: Sequence[str] = (),
    key: str | None = None,
) -> None:
    """Load the runs and answer requests until SIGTERM or Ctrl-C. `hosts` are further names of the server, as clients
    write them; `key` is asked of every request for work."""
    queue = Queue()
    models = Models(runs, folder, queue)
    server = Server(models, ROUTES, access=Access(hosts=[host, *hosts], key=key))
    listening = _listen(host, port)
    address = f"http://{'[' + host + ']' if ':' in host else host}:{listening.getsockname()[1]}"
    logging.basicConfig(format="%(message)s")
    logging.getLogger("jumok.serve").setLevel(logging.INFO)
    config = uvicorn.Config(
        server,
        http=GuardedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=DRAIN,
    )
    say(f"serving {', '.join(models.names()) or 'no run yet'} at {address}")
    if host not in LOCAL and key is None:
        say("note: anybody who reaches this address can use the models; --api-key-file asks for a key")
    _Draining(config, server).run(sockets=[listening])
    queue.close(DRAIN)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(CONNECTIONS)  # whoever reads the address can connect at once
    except OSError as error:
        hint = "choose another --port, or 0 for any free one"
        what = f"cannot listen on {host}:{port}: {error.strerror}"
        raise InputError(what, hint=hint, code="input.port") from error
    return listening
