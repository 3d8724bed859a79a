"""The page: its files, read once when the server starts. What is not in the table does not exist."""

from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import Response

from jumok.serve.app import Refusal, Route, Server

TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "json": "application/json",
    "svg": "image/svg+xml",
}


@cache
def page_files() -> dict[str, tuple[bytes, str]]:
    """Content and ETag by path."""
    found = {}

    def walk(folder: Traversable, prefix: str) -> None:
        for entry in folder.iterdir():
            if entry.is_dir():
                walk(entry, f"{prefix}{entry.name}/")
            elif entry.name.rpartition(".")[2] in TYPES:
                content = entry.read_bytes()
                found[prefix + entry.name] = content, f'"{sha256(content).hexdigest()[:16]}"'

    walk(files("jumok.serve") / "page", "")
    return found


async def index(server: Server, request: Request) -> Response:
    return _file(request, "index.html")


async def module(server: Server, request: Request) -> Response:
    return _file(request, request.path_params["file"])


def _file(request: Request, path: str) -> Response:
    if path not in page_files():
        raise Refusal(404, "serve.not_found", "there is nothing at this address")
    content, tag = page_files()[path]
    headers = {"etag": tag, "cache-control": "no-cache"}  # asked again every time, answered with 304 if unchanged
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=TYPES[path.rpartition(".")[2]], headers=headers)


ROUTES = (
    Route("GET", "/", index, "The page", media="text/html", open=True),
    Route("GET", "/page/{file:path}", module, "Its modules, style and texts", media="text/plain", open=True),
)
