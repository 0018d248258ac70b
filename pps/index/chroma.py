"""The only access to Chroma: a client without side effects, its errors, blanking, a collection.

A collection has ids and vectors only, copied from ``vectors.db``. Chroma's own filter walks its
graph of neighbours until it has met enough allowed rows. That takes 10 times as long as a query
without a filter, for any share of allowed rows (of 50,000 rows). So a few allowed rows are read and
scored exactly. For many, the query fetches more rows than needed and drops the others. Only if too
few remain, because the allowed rows are far from the query, their ids are passed to Chroma.
"""

from __future__ import annotations

import importlib
import json
import logging
import math
import shutil
import struct
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypedDict, cast

import numpy as np
from pydantic import ValidationError

from pps.core.errors import ConfigError, IsolationError, StoreError
from pps.core.footprint import loading
from pps.index.vector_rows import RowKey, RowStore
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
SLICE = 256
"""Number of rows in one upsert.

Chroma blocks the interpreter, and with it all requests, until the rows are on disk: 0.33 s for
1,000 rows, 0.13 s for 256 (a quarter more time per row), 0.1 s for 128 (half as much again per
row).
"""
_BATCH = 1000
_FEW = 400
"""Up to this many rows are scored exactly.

The graph reads the same number for every query (``ef_search``), and may miss the nearest.
"""
_PRICE = 3.0
"""Cost of fetching and dropping rows of the graph, in units of scoring one row exactly.

With ``m`` allowed of ``size`` rows, scoring costs ``m`` and dropping ``_PRICE * k * size / m``;
``_PRICE`` includes ``_SURPLUS``.
"""
_SURPLUS = 3.0
_MARGIN = 20
_WIDEST = 2000
"""Maximum rows to fetch; beyond, passing the allowed ids to Chroma is faster."""
Scored = list[tuple[RowKey, float]]
"""Keys of rows with their cosine."""


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
            vars(SharedSystemClient)["_identifier_to_system"].pop(str(folder), None)
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


@dataclass(frozen=True, slots=True)
class VectorHit:
    """An owner and its best part; ``similarity`` is raw cosine in [-1, 1]."""

    owner: str
    part: int
    similarity: float


class ChromaCollection:
    """One collection in its own folder. Writes take turns; queries run concurrently."""

    def __init__(
        self, folder: Path, name: str, rows: RowStore, marks: Mapping[str, Number], *, make: bool
    ) -> None:
        """Open the collection, or ``make`` an empty one in a folder that does not exist.

        Raises:
            IsolationError: The files belong to another entity.
            StoreError: The files cannot be read, or hold another collection or another model's
                vectors.
        """
        self._folder = folder
        self._name = name
        self._rows = rows
        self._blanking = Blanking(folder)
        with chroma_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self._client = open_client(folder)
            try:
                if make:
                    self._chroma = self._client.create_collection(
                        name, configuration={"hnsw": HNSW}, metadata=marks, embedding_function=None
                    )
                else:
                    self._chroma = _own(self._client.list_collections(), folder, name, marks)
            except BaseException:
                self._client.close()
                raise

    @staticmethod
    def erase(folder: Path) -> None:
        """Delete a collection's files."""
        with chroma_errors(folder):
            if folder.exists():
                shutil.rmtree(folder)

    def put(self, keys: Sequence[RowKey], matrix: Matrix, drop: Sequence[RowKey] = ()) -> None:
        """Add rows or replace their vectors, and delete the rows of ``drop`` if they exist."""
        with chroma_errors(self._folder):
            for at in range(0, len(drop), _BATCH):
                self._chroma.delete([_id(key) for key in drop[at : at + _BATCH]])
            for at in range(0, len(keys), SLICE):
                part = slice(at, at + SLICE)
                self._chroma.upsert([_id(key) for key in keys[part]], matrix[part])
            self._blanking.blank()

    def hits(self, probe: Vector, k: int, allowed: AbstractSet[str] | None) -> list[VectorHit]:
        """Return the ``k`` best owners, best first; fewer only if no more exist."""
        size = self._rows.sizes().get(self._name, 0)
        if size == 0:
            return []
        if allowed is None:
            scored = self._scored(probe, None) if size <= _FEW else self._ranked(probe, k, size)
            return best_owners(scored, k)
        if min(size, len(allowed)) <= max(_FEW, math.isqrt(int(_PRICE * k * size))):
            return best_owners(self._scored(probe, allowed), k)
        n = math.ceil(_SURPLUS * k * max(1.0, size / len(allowed))) + _MARGIN
        while True:
            hits = best_owners(self._nearest(probe, min(n, size)), k, allowed)
            if len(hits) >= k:
                return hits
            if n >= min(size, _WIDEST):
                break
            n *= 4
        keys = self._rows.keys(self._name, allowed)
        return best_owners(self._ranked(probe, k, len(keys), keys), k)

    def close(self) -> None:
        """Close the client and blank its files again, because Chroma may save while it closes."""
        with chroma_errors(self._folder):
            self._client.close()
            # A new object blanks all graphs: the old one misses a second save in one clock tick.
            Blanking(self._folder).blank()

    def _ranked(
        self, probe: Vector, k: int, size: int, among: list[RowKey] | None = None
    ) -> Scored:
        """Fetch more and more rows until they have ``k`` owners, or all rows are fetched.

        ``among`` restricts the rows; ``size`` is their number.
        """
        n = k
        while size:
            n = min(n, size)
            scored = self._nearest(probe, n, among)
            if len({owner for (owner, _), _ in scored}) >= k:
                return scored
            if n >= size or len(scored) < n:
                return self._completed(probe, scored, among or self._rows.keys(self._name))
            n *= 2
        return []

    def _nearest(self, probe: Vector, n: int, among: Sequence[RowKey] | None = None) -> Scored:
        """Return about ``n`` rows nearest to a probe, best first.

        Some rows of the graph cannot be reached from everywhere, so there may be fewer than exist.
        """
        with chroma_errors(self._folder):
            answer = self._chroma.query(
                query_embeddings=[probe],
                ids=None if among is None else [_id(key) for key in among],
                n_results=n,
                include=["distances"],
            )
        pairs = zip(answer["ids"][0], answer["distances"][0], strict=True)
        return [(_key(row), 1.0 - distance) for row, distance in pairs]

    def _completed(self, probe: Vector, scored: Scored, keys: list[RowKey]) -> Scored:
        """Add the rows of ``keys`` that the graph did not reach, scored exactly."""
        missing = set(keys).difference(key for key, _ in scored)
        rest = self._scored(probe, {owner for owner, _ in missing})
        return scored + [(key, similarity) for key, similarity in rest if key in missing]

    def _scored(self, probe: Vector, owners: AbstractSet[str] | None) -> Scored:
        """Score all rows of the owners (None: all rows) exactly."""
        unit = probe / np.linalg.norm(probe)
        scored: Scored = []
        for keys, matrix in self._rows.pages(self._name, owners):
            cosines: list[float] = (
                (matrix @ unit) / np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
            ).tolist()
            scored += zip(keys, cosines, strict=True)
        return scored


def listing(folder: Path) -> str:
    """Return the files of a folder with their sizes as JSON; empty for an absent folder."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return json.dumps({str(file.relative_to(folder)): file.stat().st_size for file in files})


def _own(
    collections: Sequence[Collection], folder: Path, name: str, marks: Mapping[str, Number]
) -> Collection:
    """Return the folder's only collection after checking its group, model and name."""
    if any(
        (collection.metadata or {}).get("pps_group") != marks["pps_group"]
        for collection in collections
    ):
        raise IsolationError(f"{folder} holds the vectors of another entity")
    if [(collection.name, collection.metadata) for collection in collections] != [(name, marks)]:
        raise StoreError(
            f"the graph in {folder} is gone, or of another model or collection than its rows"
        )
    return collections[0]


def best_owners(
    scored: Iterable[tuple[RowKey, float]], k: int, allowed: AbstractSet[str] | None = None
) -> list[VectorHit]:
    """Return the ``k`` best owners of scored rows, best first, each by its best part."""
    best: dict[str, tuple[float, int]] = {}
    for (owner, part), similarity in scored:
        if allowed is not None and owner not in allowed:
            continue
        if owner not in best or (-similarity, part) < (-best[owner][0], best[owner][1]):
            best[owner] = (similarity, part)
    ranked = sorted(best.items(), key=lambda item: (-item[1][0], item[0]))[:k]
    return [
        VectorHit(owner, part, max(-1.0, min(1.0, similarity)))
        for owner, (similarity, part) in ranked
    ]


def _id(key: RowKey) -> str:
    """Return a row's id in Chroma; the part comes first, because an owner may contain colons."""
    return f"{key[1]}:{key[0]}"


def _key(row: str) -> RowKey:
    part, _, owner = row.partition(":")
    return owner, int(part)
