"""The page's files: read once, compressed once, cached by browsers until they change.

All files have one version, a hash of them all, in their address (``/page/_/VERSION/app.js``): what
has that address never changes, so browsers keep it without asking. Modules name each other by
relative addresses and so stay within one version. The same files without a version, and the
document itself, are revalidated by ETag.
"""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

_KEPT_FOREVER = "public, max-age=31536000, immutable"
_REVALIDATED = "no-cache"
_LEAST_COMPRESSED = 500
_DOCUMENT = "index.html"


@dataclass(frozen=True, slots=True)
class Shell:
    """What one page's document says in place of the marks of ``index.html``.

    Attributes:
        files: The way from the page's address to the files.
        entry: The module that the page begins with.
        preloaded: A further module that is loaded beside it.
    """

    title: str
    files: str
    entry: str
    preloaded: str


ENTITY_PAGE = Shell("PPS", "../_", "app.js", "search_box.js")
OWNER_PAGE = Shell("Haven · PPS", "../page/_", "talk/haven.js", "talk/room.js")


@dataclass(frozen=True, slots=True)
class Asset:
    """A file: its bytes, the same compressed (None where that gains nothing), and its digest."""

    body: bytes
    compressed: bytes | None
    media_type: str
    digest: str

    @classmethod
    def of(cls, body: bytes, media_type: str) -> Asset:
        compressed = gzip.compress(body, 9, mtime=0) if len(body) >= _LEAST_COMPRESSED else None
        if compressed is not None and len(compressed) >= len(body):
            compressed = None
        return cls(body, compressed, media_type, hashlib.sha256(body).hexdigest()[:20])


class Assets:
    """The files of a folder, read when the first of them is asked for.

    Every answer has some headers.
    """

    def __init__(self, folder: Path, headers: dict[str, str]) -> None:
        self._folder = folder
        self._headers = headers

    @cached_property
    def version(self) -> str:
        """Return the hash of all files' names and bytes: 20 hexadecimal digits."""
        digest = hashlib.sha256()
        for name, asset in self._files.items():
            digest.update(f"{name}\0{asset.digest}\0".encode())
        return digest.hexdigest()[:20]

    def document(self, request: Request, shell: Shell) -> Response:
        """Return a page's document, which names its files by their version."""
        return self._answer(request, self._documents[shell], _REVALIDATED)

    def file(self, request: Request, path: str) -> Response | None:
        """Return the answer for a path below ``/page/_/``; None for an unknown file or version."""
        version, _, name = path.partition("/")
        if version == self.version:
            cache = _KEPT_FOREVER
        else:
            cache = _REVALIDATED
            name = path
        asset = None if name == _DOCUMENT else self._files.get(name)
        return None if asset is None else self._answer(request, asset, cache)

    @cached_property
    def _files(self) -> dict[str, Asset]:
        paths = sorted(path for path in self._folder.rglob("*") if path.is_file())
        return {
            path.relative_to(self._folder).as_posix(): Asset.of(
                path.read_bytes(), _media_type(path)
            )
            for path in paths
        }

    @cached_property
    def _documents(self) -> dict[Shell, Asset]:
        text = self._files[_DOCUMENT].body.decode()
        return {
            shell: Asset.of(self._filled(text, shell).encode(), "text/html; charset=utf-8")
            for shell in (ENTITY_PAGE, OWNER_PAGE)
        }

    def _filled(self, text: str, shell: Shell) -> str:
        for mark, value in {**asdict(shell), "version": self.version}.items():
            text = text.replace(f"{{{mark}}}", value)
        return text

    def _answer(self, request: Request, asset: Asset, cache: str) -> Response:
        zipped = asset.compressed is not None and accepts_gzip(request)
        tag = f'"{asset.digest}{"-gzip" if zipped else ""}"'
        headers = {
            **self._headers,
            "Cache-Control": cache,
            "ETag": tag,
            "Vary": "Accept-Encoding",
        }
        if tag in _tags(request.headers.get("if-none-match", "")):
            return Response(status_code=304, headers=headers)
        if asset.compressed is not None and zipped:
            headers["Content-Encoding"] = "gzip"
            return Response(asset.compressed, headers=headers, media_type=asset.media_type)
        return Response(asset.body, headers=headers, media_type=asset.media_type)


def compressed(request: Request, response: Response) -> Response:
    """Compress the body of an answer that is not streamed, if the client accepts that. Blocks.

    An answer of a page holds no secret that a guess beside it could reveal by the answer's length:
    its session's halves are in headers, and only the page itself may ask (see ``browsers``).
    """
    body = response.body
    if (
        len(body) < _LEAST_COMPRESSED
        or not accepts_gzip(request)
        or "content-encoding" in response.headers
    ):
        return response
    response.body = gzip.compress(bytes(body), 5, mtime=0)
    response.headers["Content-Encoding"] = "gzip"
    response.headers["Content-Length"] = str(len(response.body))
    response.headers.add_vary_header("Accept-Encoding")
    return response


def accepts_gzip(request: Request) -> bool:
    """Tell whether a client takes gzip: it is named (or ``*`` is) with a quality above 0."""
    qualities: dict[str, float] = {}
    for part in request.headers.get("accept-encoding", "").lower().split(","):
        coding, _, parameter = part.partition(";")
        name, _, value = parameter.strip().partition("=")
        try:
            qualities[coding.strip()] = float(value) if name.strip() == "q" else 1.0
        except ValueError:
            qualities[coding.strip()] = 0.0
    return qualities.get("gzip", qualities.get("*", 0.0)) > 0


def _tags(header: str) -> set[str]:
    """Return the entity tags of a condition; a cache on the way may have made them weak."""
    return {part.strip().removeprefix("W/") for part in header.split(",")}


def _media_type(path: Path) -> str:
    if path.suffix == ".js":
        return "text/javascript; charset=utf-8"  # whatever this machine's table says
    return mimetypes.guess_type(path.name)[0] or "application/octet-stream"
