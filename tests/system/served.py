"""A running `jumok serve`."""

import http.client
import json
import re
import signal
import threading
from typing import Any


class Served:
    """A server as users start it, in a process of its own."""

    def __init__(self, jumok, *arguments: object, port: int = 0) -> None:
        self.process = jumok.start("serve", *arguments, "--port", port)
        said = b""
        while not (found := re.search(rb"at http://127.0.0.1:(\d+)", said)):
            line = self.process.stderr.readline()
            assert line, said.decode()
            said += line
        self.port = int(found[1])
        self.log: list[str] = []
        # A pipe that nobody reads fills up, and the server would wait for room to log.
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        self.log += (line.decode() for line in self.process.stderr)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def fetch(self, method: str, path: str, body: bytes | None = None, timeout: float = 60, **headers: str):
        """Status, headers and content of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, content

    def ask(self, method: str, path: str, body: object = None, timeout: float = 60) -> tuple[int, Any]:
        """Status of an answer, and its JSON."""
        status, _, content = self.fetch(method, path, None if body is None else json.dumps(body).encode(), timeout)
        return status, json.loads(content) if content else {}

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=40)
        self._reading.join(10)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()
        return code
