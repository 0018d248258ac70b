"""The seam to Chroma: a quiet client, narrow types, errors of PPS, and blanking of its files."""

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
"""On 100,000 sentences embedded by MiniLM, 99 % of the ten nearest are found for questions that
name things and for vectors near a sentence's, and nine in ten for questions of random words, which
are far from all. An ``ef_construction`` of 100 takes a sixth less time to write and needs an
``ef_search`` of 600, half as much again for every query, to find as many; 32 neighbours find no
more. Measured by ``scripts/bench scale --only nearest``."""

Number = bool | int | float | str

_HEADER = struct.Struct("<IQQQQ")
"""Version, an offset, rows that there is room for, rows, and bytes a row in ``data_level0.bin``."""
_VERSION = 1
_LENGTH_BYTES = 4


class ChromaAnswer(TypedDict):
    """What ``query`` answers, one inner list a query."""

    ids: list[list[str]]
    distances: list[list[float]]


class Collection(Protocol):
    """The few calls that PPS makes on a collection of Chroma's."""

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
    """The few calls that PPS makes on a client."""

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
    """Open Chroma on a folder: no telemetry, no settings from the environment or a ``.env`` file.

    Blocks; the first call in a process imports chromadb (over a second).

    Raises:
        ConfigError: The environment holds a word of Chroma's own with a value that it refuses.
        StoreError: The folder cannot be opened; the message names ``pps reindex``.
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
            # A system whose start failed stays registered under its path, and the next client of
            # that path would be given it, unstarted.
            systems = SharedSystemClient._identifier_to_system  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001 - no public way
            systems.pop(str(folder), None)
            raise


def _import_quietly() -> None:
    """Import chromadb; its import reads settings from plain words such as ``MIGRATIONS``."""
    logging.getLogger("chromadb").setLevel(logging.ERROR)
    try:
        with loading():
            importlib.import_module("chromadb")
    except ValidationError as error:
        names = ", ".join(str(problem["loc"][0]).upper() for problem in error.errors())
        raise ConfigError(
            f"{names}: set in the environment or in a .env file of this folder, read by Chroma and refused there; "
            "unset it for pps"
        ) from None


@contextmanager
def chroma_errors(folder: Path) -> Generator[None]:
    """Raise what Chroma raises as a StoreError that names the command that helps."""
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
    """Tell whether Chroma raised it; a panic of its Rust code has no importable class."""
    if (
        isinstance(error, OSError | ValueError | RuntimeError)
        or type(error).__name__ == "PanicException"
    ):
        return True
    return type(error).__module__.startswith("chromadb.")


class Blanking:
    """Zeroes what the files of a Chroma folder hold beyond their rows; call it between writes.

    It is memory of this process that nobody meant to save. hnswlib saves the lengths of all rows
    that it has room for, and never clears that room: the bytes behind the last row may be of any
    text that this process has held, a secret or another entity's words.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: dict[Path, int] = {}

    def blank(self) -> None:
        """Overwrite the room behind the last row of each graph that was saved since the last call.

        Raises:
            OSError: The disk refused.
        """
        for header in self._folder.glob("*/header.bin"):
            saved = header.stat().st_mtime_ns
            if self._seen.get(header) != saved:
                for file, start in _rooms(header):
                    _overwrite(file, start)
                self._seen[header] = saved


def _rooms(header: Path) -> Iterator[tuple[Path, int]]:
    """Yield the files of a graph with free room, and where it begins.

    Nothing for a header of another format.
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
    """Make a file's bytes from ``start`` on zero, where they are not; its size stays."""
    with path.open("r+b") as file:
        file.seek(start)
        rest = file.read()
        if rest.strip(b"\0"):
            file.seek(start)
            file.write(bytes(len(rest)))
