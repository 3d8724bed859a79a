"""Who may ask: the hosts a server answers to, its API key, and the token of requests that change something.

A page of another site can send requests to a server on this machine, and under a name of its own that it points here
(DNS rebinding) even read the answers. So a server answers to the names it knows only, takes no POST from another
origin, and for acts that change something asks for a token that only its own page can read.
"""

import os
from collections.abc import Sequence
from hmac import compare_digest
from pathlib import Path
from secrets import token_urlsafe
from urllib.parse import urlsplit

from starlette.requests import Request

from jumok.errors import InputError
from jumok.serve.refusal import Refusal

LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
KEY_VARIABLE = "JUMOK_API_KEY"
SHORTEST_KEY = 16
TOKEN_HEADER = "x-jumok-token"


class Access:
    """What a request must bring to be answered."""

    def __init__(self, *, hosts: Sequence[str] = (), key: str | None = None) -> None:
        self.hosts = LOCAL | {host.lower() for host in hosts}
        self.token = token_urlsafe(32)
        self._key = key.encode() if key else None

    @property
    def needs_key(self) -> bool:
        return self._key is not None

    def knows(self, host: str) -> bool:
        """Whether a Host header names this server."""
        return _name(host) in self.hosts

    def require_key(self, request: Request, given: str = "") -> None:
        """The key as `Authorization: Bearer`, or `given` in the body, for APIs that have it there."""
        if self._key is None:
            return
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        sent = bearer.strip() if scheme.lower() == "bearer" else given
        if not compare_digest(sent.encode(errors="replace"), self._key):
            what = "the API key is wrong" if sent else "an API key is needed"
            raise Refusal(401, "serve.key", what, hint="send it as Authorization: Bearer KEY")

    def refuse_other_sites(self, request: Request) -> None:
        """Refuse a POST that a page of another site sent: it could not read the answer, only make work."""
        origin = request.headers.get("origin", "")
        if origin == "null" or origin.startswith(("http:", "https:")):
            require_same_origin(request)

    def require_token(self, request: Request) -> None:
        sent = request.headers.get(TOKEN_HEADER, "")
        if not compare_digest(sent.encode(), self.token.encode()):
            hint = f"GET /api/session has the token; send it as {TOKEN_HEADER}"
            raise Refusal(403, "serve.token", "a request that changes something needs the token", hint=hint)


def require_same_origin(request: Request) -> None:
    """Refuse a request that another origin's page sent. Browsers say where a request comes from: with each POST in
    Origin, and on loopback and https also in Sec-Fetch-Site."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    own = f"//{request.headers.get('host', '')}".lower()
    foreign = origin is not None and origin.lower().removeprefix("http:").removeprefix("https:") != own
    if foreign or (site is not None and site != "same-origin"):
        raise Refusal(403, "serve.origin", "the request comes from a page of another origin")


def read_key(file: Path | None) -> str | None:
    """The API key from a file, or from the environment; None if there is neither. Never from the command line, which
    every user of the machine can read."""
    try:
        key = os.environ.get(KEY_VARIABLE) if file is None else file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("the API key cannot be read", where=file, code="input.api_key") from error
    if key is None:
        return None
    key = key.strip()
    if len(key) < SHORTEST_KEY or not key.isascii() or not key.isprintable() or " " in key:
        what = f"an API key is at least {SHORTEST_KEY} ASCII characters without spaces"
        where = file or f"environment variable {KEY_VARIABLE}"
        hint = 'make one with: python -c "import secrets; print(secrets.token_urlsafe())"'
        raise InputError(what, where=where, hint=hint, code="input.api_key")
    return key


def _name(host: str) -> str:
    """The name in a Host header, without its port; an IPv6 address is in brackets."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
