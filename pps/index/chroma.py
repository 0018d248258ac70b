"""The seam to Chroma: a quiet client, narrow types, and its errors mapped to ours."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypedDict, cast

import numpy as np
from numpy.typing import NDArray
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
"""On 100,000 sentences embedded by MiniLM, 99 % of the ten nearest are found for questions that name things and for
vectors near a sentence's, and nine in ten for questions of random words, which are far from all. An
``ef_construction`` of 100 takes a sixth less time to write and needs an ``ef_search`` of 600, half as much again for
every query, to find as many; 32 neighbours find no more. Measured by ``scripts/bench scale --only nearest``."""

Number = bool | int | float | str


class Rows(TypedDict):
    """What ``get`` answers; ``embeddings`` is None unless asked for."""

    ids: list[str]
    embeddings: NDArray[np.float64] | None


class Found(TypedDict):
    """What ``query`` answers, one inner list a query."""

    ids: list[list[str]]
    distances: list[list[float]]


class ChromaCollection(Protocol):
    """The few calls that PPS makes on a collection."""

    @property
    def name(self) -> str: ...

    @property
    def metadata(self) -> Mapping[str, Number] | None: ...

    def count(self) -> int: ...

    def get(self, ids: Sequence[str] | None = None, *, include: Sequence[str]) -> Rows: ...

    def upsert(
        self, ids: Sequence[str], embeddings: Matrix, metadatas: Sequence[Mapping[str, int] | None] | None = None
    ) -> None: ...

    def delete(self, ids: Sequence[str]) -> object: ...

    def query(
        self,
        *,
        query_embeddings: Sequence[Vector],
        ids: Sequence[str] | None = None,
        n_results: int,
        include: Sequence[str],
    ) -> Found: ...


class ChromaClient(Protocol):
    """The few calls that PPS makes on a client."""

    def list_collections(self) -> Sequence[ChromaCollection]: ...

    def create_collection(
        self,
        name: str,
        *,
        configuration: Mapping[str, object],
        metadata: Mapping[str, Number],
        embedding_function: None,
    ) -> ChromaCollection: ...

    def delete_collection(self, name: str) -> None: ...

    def get_max_batch_size(self) -> int: ...

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
            # A system whose start failed stays registered under its path, and the next client of that
            # path would be given it, unstarted.
            systems = SharedSystemClient._identifier_to_system  # pyright: ignore[reportPrivateUsage]  # no public way
            systems.pop(str(folder), None)
            raise


def _import_quietly() -> None:
    """Import chromadb, which reads settings while it is imported, from plain words such as ``MIGRATIONS``."""
    logging.getLogger("chromadb").setLevel(logging.ERROR)
    try:
        with loading():
            importlib.import_module("chromadb")
    except ValidationError as error:
        names = ", ".join(str(one["loc"][0]).upper() for one in error.errors())
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
        said = (str(error).strip().splitlines() or [""])[0][:200]
        raise StoreError(
            f"the vector index in {folder} failed ({type(error).__name__}: {said}); "
            "`pps reindex` rebuilds it from the journal, the anchors and the graph"
        ) from error


def _is_chromas(error: BaseException) -> bool:
    """Tell whether Chroma raised it; a panic of its Rust half is a BaseException without an importable class."""
    if isinstance(error, OSError | ValueError | RuntimeError) or type(error).__name__ == "PanicException":
        return True
    return type(error).__module__.startswith("chromadb.")
