"""HTTP that does not wait for ever: uvicorn's protocol, with deadlines and sizes for what a client sends and reads.

uvicorn resets its time-out at every byte, so a client that trickles holds a connection as long as it likes, and its
fast parser takes headers of any size.
"""

import asyncio
from collections import Counter
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

IDLE = 15.0
"""seconds to the first byte of a request"""
HEAD = 10.0
"""seconds for a request's head, from its first byte"""
BODY = 30.0
"""seconds for its body"""
READING = 15.0
"""seconds in which a client takes at least READING_BYTES of an answer that waits for it; streams too"""
READING_BYTES = 16_384
HEAD_BYTES, HEADERS, URL_BYTES = 16_384, 64, 4096
PER_ADDRESS = 64
"""connections"""


class GuardedProtocol(HttpToolsProtocol):
    """Ends a connection that is slow, or whose request is too large, with a 4xx."""

    per_address: Counter[str] = Counter()

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._timer: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._in_head = False

    @property
    def _address(self) -> str:
        return self.client[0] if self.client else ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.per_address[self._address] += 1
        if self.per_address[self._address] > PER_ADDRESS:
            self._refuse(503)
        else:
            self._expect(IDLE)

    def connection_lost(self, exc: Exception | None) -> None:
        self.per_address[self._address] -= 1
        self._expect(None)
        self._stop_looking()
        super().connection_lost(exc)

    def _expect(self, seconds: float | None) -> None:
        """The next part has to be there within so many seconds."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self._refuse, 408)

    def _refuse(self, status: int) -> None:
        self._expect(None)
        if not self.transport.is_closing():
            if not self.transport.get_write_buffer_size():  # else an answer is still on its way
                self.transport.write(STATUS_LINE[status] + b"connection: close\r\ncontent-length: 0\r\n\r\n")
            self.transport.close()
            self._look_later()  # closed once all is written, which a client that reads nothing would prevent

    def pause_writing(self) -> None:
        super().pause_writing()
        self._look_later()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._stop_looking()

    def _look_later(self) -> None:
        """Whether the client reads its answer: if it does not, the connection is cut."""
        self._stop_looking()
        left = self.transport.get_write_buffer_size()
        if left:
            self._unread = self.loop.call_later(READING, self._look, left)

    def _look(self, before: int) -> None:
        left = self.transport.get_write_buffer_size()
        if left and before - left < READING_BYTES:
            self.transport.abort()
        else:
            self._look_later()

    def _stop_looking(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self._in_head:  # still: all of it belongs to the head
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                self._refuse(431)

    def on_message_begin(self) -> None:
        self._in_head, self._head_bytes = True, 0
        self._expect(HEAD)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._expect(BODY)
        sizes = sum(len(name) + len(value) for name, value in self.headers)
        if len(self.url) > URL_BYTES:
            self._refuse(414)
        elif sizes > HEAD_BYTES or len(self.headers) > HEADERS:
            self._refuse(431)
        if not self.transport.is_closing():
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._expect(None)
        if not self.transport.is_closing():
            super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing() and not self.pipeline:
            self._expect(IDLE)
