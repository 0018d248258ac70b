"""The only access to Chroma: a client without side effects, its types and errors, and blanking."""

from __future__ import annotations

import importlib
import logging
import struct
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypedDict, cast

from pydantic import ValidationError

from pps.core.errors import ConfigError, StoreError
from pps.core.footprint import loading
from pps.models.protocols import Matrix, Vector

HNSW: Mapping[str, str | int] = {
    "space": "cosine",
    "max_neighbors": 24,
    "ef_construction": 150,
    "ef_search": 400,
}
"""Parameters of the graph of neighbours, measured by ``scripts/bench scale --only nearest``.

Of 100,000 sentences embedded by MiniLM, queries find 99 % of the ten nearest if they name things or
are near a sentence, and 90 % if they are random words, which are far from all sentences. With
``ef_construction`` 100 writing takes a sixth less time, but the same recall needs ``ef_search``
600, which is half as much again for every query. 32 neighbours find no more.
"""

Number = bool | int | float | str

_HEADER = struct.Struct("<IQQQQ")
"""Version, an offset, allocated rows, used rows, and bytes per row in ``data_level0.bin``."""
_VERSION = 1
_LENGTH_BYTES = 4


class ChromaAnswer(TypedDict):
    """The result of ``query``, with one inner list per query vector."""

    ids: list[list[str]]
    distances: list[list[float]]


class Collection(Protocol):
    """The methods of a Chroma collection that PPS uses."""

    @property
    def name(self) -> str: ...

    @property
    def metadata(self) -> Mapping[str, Number] | None: ...

    def upsert(self, ids: Sequence[str], embeddings: Matrix) -> None: ...

    def delete(self, ids: Sequence[str]) -> object: ...

    def query(
        self,
        *,
        query_embeddings: Sequence[Vector],
        ids: Sequence[str] | None = None,
        n_results: int,
        include: Sequence[str],
    ) -> ChromaAnswer: ...


class ChromaClient(Protocol):
    """The methods of a Chroma client that PPS uses."""

    def list_collections(self) -> Sequence[Collection]: ...

    def create_collection(
        self,
        name: str,
        *,
        configuration: Mapping[str, object],
        metadata: Mapping[str, Number],
        embedding_function: None,
    ) -> Collection: ...

    def close(self) -> None: ...


def open_client(folder: Path) -> ChromaClient:
    """Open Chroma on a folder, without telemetry and settings of the environment or ``.env``.

    Blocks; the first call in a process imports chromadb (over a second).

    Raises:
        ConfigError: An environment variable that Chroma reads at import has an invalid value.
        StoreError: The folder cannot be opened; the error names ``pps reindex``.
    """
    _import_quietly()
    with chroma_errors(folder):
        import chromadb
        from chromadb.api.shared_system_client import SharedSystemClient
        from chromadb.config import Settings

        settings = Settings(
            _env_file=None,  # pyright: ignore[reportCallIssue]  # pydantic-settings' own argument
            anonymized_telemetry=False,
            is_persistent=True,
            persist_directory=str(folder),
            allow_reset=False,
            migrations="apply",
            chroma_api_impl="chromadb.api.rust.RustBindingsAPI",
            chroma_server_nofile=None,
            chroma_otel_collection_endpoint="",
            chroma_otel_granularity=None,
        )
        try:
            return cast(ChromaClient, chromadb.PersistentClient(str(folder), settings=settings))
        except BaseException:
            # A system that failed to start stays registered under its path, and the next client
            # of the path would get it, unstarted. There is no public way to unregister it.
            getattr(SharedSystemClient, "_identifier_to_system").pop(str(folder), None)  # noqa: B009
            raise


def _import_quietly() -> None:
    """Import chromadb; the import reads settings from variables such as ``MIGRATIONS``."""
    logging.getLogger("chromadb").setLevel(logging.ERROR)
    try:
        with loading():
            importlib.import_module("chromadb")
    except ValidationError as error:
        names = ", ".join(str(problem["loc"][0]).upper() for problem in error.errors())
        raise ConfigError(
            f"{names}: set in the environment or in a .env file of this folder, "
            "read by Chroma and refused there; unset it for pps"
        ) from None


@contextmanager
def chroma_errors(folder: Path) -> Generator[None]:
    """Raise Chroma's errors inside the block as ``StoreError`` with the command that helps."""
    try:
        yield
    except BaseException as error:
        if not _is_chromas(error):
            raise
        first_line = (str(error).strip().splitlines() or [""])[0][:200]
        raise StoreError(
            f"the vector index in {folder} failed ({type(error).__name__}: {first_line}); "
            "`pps reindex` rebuilds it from the journal, the anchors and the graph"
        ) from error


def _is_chromas(error: BaseException) -> bool:
    """Return whether Chroma raised an error; a panic of its Rust code has no importable class."""
    if (
        isinstance(error, OSError | ValueError | RuntimeError)
        or type(error).__name__ == "PanicException"
    ):
        return True
    return type(error).__module__.startswith("chromadb.")


class Blanking:
    """Overwrites unused parts of Chroma's files with zeros; call it between writes.

    hnswlib saves its whole allocation, which it never clears. So the bytes after the last row are
    earlier contents of this process's memory and may include secrets or another entity's text.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: dict[Path, int] = {}

    def blank(self) -> None:
        """Overwrite the bytes after the last row of each graph saved since the last call.

        Raises:
            OSError: A file cannot be written.
        """
        for header in self._folder.glob("*/header.bin"):
            saved = header.stat().st_mtime_ns
            if self._seen.get(header) != saved:
                for file, start in _unused_parts(header):
                    _overwrite(file, start)
                self._seen[header] = saved


def _unused_parts(header: Path) -> Iterator[tuple[Path, int]]:
    """Yield (file of the graph, offset at which its unused part begins).

    Yields nothing for a header of another format.
    """
    with header.open("rb") as file:
        content = file.read(_HEADER.size)
    if len(content) < _HEADER.size:
        return
    version, _, room, rows, width = _HEADER.unpack(content)
    if version == _VERSION and rows < room:
        yield header.with_name("length.bin"), rows * _LENGTH_BYTES
        yield header.with_name("data_level0.bin"), rows * width


def _overwrite(path: Path, start: int) -> None:
    """Overwrite a file from ``start`` on with zeros, unless it is zero; its size stays."""
    with path.open("r+b") as file:
        file.seek(start)
        rest = file.read()
        if rest.strip(b"\0"):
            file.seek(start)
            file.write(bytes(len(rest)))
