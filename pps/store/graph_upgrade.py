"""Moves the graph of an older memory from its own file into ``memory.db``.

Steps:

1. Check that the graph file belongs to the memory.
2. Copy ``memory.db`` (with SQLite's online backup) and the graph file with its log into one folder.
3. In one transaction of ``memory.db``: upgrade the schema, write the graph that is read from the
    copy, compare the stored rows with those read, and set a mark.
4. Remove the graph file.

If the process is killed at any step, the memory is unchanged or upgraded, and the next call
continues.
"""

from __future__ import annotations

import filecmp
import hashlib
import logging
import os
import shutil
import sqlite3
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias

from pps.core.errors import PPSError, StoreError, StoreUnavailable
from pps.core.sql import Connection
from pps.core.time import micros, now
from pps.journal import meta, old_graph
from pps.journal.db import (
    damage,
    mapping_errors,
    migrate_and_fill,
    open_untouched,
)
from pps.store.graph_rows import (
    EPISODE_COLUMNS,
    FACT_COLUMNS,
    NODE_COLUMNS,
    StoredFact,
)
from pps.store.graphiti_tables import (
    COMMUNITY_COLUMNS,
    LINK_COLUMNS,
    SAGA_COLUMNS,
    put_communities,
    put_links,
    put_sagas,
)
from pps.store.ladybug_reader import open_ladybug_graph
from pps.store.sql_graph import put_episodes, put_facts, put_mentions, put_nodes
from pps.store.sql_graph_reader import OldGraph, OldPage, open_sql_graph
from pps.store.sql_session import Row, SqlSession

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with the step (``copying``, ``nodes`` ...), the number done, and the total."""

_log = logging.getLogger(__name__)
_SPARE_BYTES = 64 * 2**20
_TABLES: Final = {
    "node": NODE_COLUMNS,
    "fact": FACT_COLUMNS,
    "support": "fact, place, episode",
    "episode": EPISODE_COLUMNS,
    "mention": "episode, node, uuid, created_at",
    "community": f"{COMMUNITY_COLUMNS}, vector",
    "saga": SAGA_COLUMNS,
    **LINK_COLUMNS,
}
"""Table → the columns that are compared: all but ``grp``, which is the file's group everywhere."""


@dataclass(frozen=True, slots=True)
class Upgraded:
    """Result of an upgrade, or of its dry run (``plan``).

    Attributes:
        source: Name of the graph file.
        rows: Table → number of rows that are written.
        left_out: Number of facts that are not, because one of their nodes is missing. No query
            returned them; the copy still holds them.
        copy: Folder of the copy; None for a dry run.
        copy_bytes: Size of the copy; for a dry run, its expected size.
        seconds: Duration.
    """

    source: str
    rows: dict[str, int]
    left_out: int
    copy: Path | None
    copy_bytes: int
    seconds: float


def plan(data: Path, group: str, name: str, progress: Progress) -> Upgraded | None:
    """Read the whole graph file of an earlier PPS and return what ``upgrade`` would do.

    Changes nothing. Blocks. None if there is no such file. Arguments and errors as ``upgrade``.
    """
    started = time.monotonic()
    source = _source(data, group, name)
    if source is None:
        return None
    read_rows = _Tally()
    with _opened(source, group, name) as graph:
        graph.check_group()
        known_nodes = set[str]()
        for page in graph.pages():
            complete = _with_ends(page, known_nodes)
            read_rows.add_page(complete, left_out=page.rows - complete.rows)
            progress(page.section, read_rows.sections[page.section], page.total)
    return Upgraded(
        source=source.name,
        rows=read_rows.counts(),
        left_out=read_rows.left_out,
        copy=None,
        copy_bytes=sum(file.stat().st_size for file in _copied_files(data)),
        seconds=time.monotonic() - started,
    )


def upgrade(data: Path, group: str, name: str, progress: Progress) -> Upgraded | None:
    """Move the graph file of an earlier PPS into ``memory.db``; return None if there is none.

    Blocks; nobody else may have the memory's files open. On every error the memory is unchanged.

    Args:
        data: The folder with ``memory.db``.
        group: The group that must own the files.
        name: The entity's name, for errors.
        progress: Progress callback.

    Raises:
        ConfigError: The extra ``migrate``, which reads ``graph.lbug``, is not installed.
        IsolationError: The graph file or ``memory.db`` belongs to another entity.
        StoreError: A file is damaged, or the stored rows differ from those read.
        StoreConflict, StoreUnavailable: A file is open elsewhere or cannot be read, or the disk is
            too full.
    """
    started = time.monotonic()
    source = _source(data, group, name)
    if source is None:
        _remove_upgraded_files(data)
        return None
    with _opened(source, group, name) as graph:
        graph.check_group()  # before anything of it is copied
    _require_room(data, name)
    progress("copying", 0, 1)
    copy = _copy_files(data)
    progress("copying", 1, 1)
    try:
        read_rows = _move_graph(data / "memory.db", copy, source.name, group, name, progress)
    except BaseException:
        with suppress(PPSError):
            # After a commit keep it: once the graph file is removed, nothing else has its rows.
            if not old_graph.is_upgraded(data / "memory.db"):
                old_graph.drop_copies(data)
        raise
    old_graph.remove_old_files(data)
    if read_rows.left_out:
        _log.warning(
            "%s: %d facts with a missing node were left out; %s holds them",
            name,
            read_rows.left_out,
            copy,
        )
    return Upgraded(
        source=source.name,
        rows=read_rows.counts(),
        left_out=read_rows.left_out,
        copy=copy,
        copy_bytes=old_graph.copies(data)[-1].size_bytes,
        seconds=time.monotonic() - started,
    )


def _source(data: Path, group: str, name: str) -> Path | None:
    source = old_graph.waiting(data, group, name)
    if source is not None:
        old_graph.check_readable(source, name)
    return source


def _remove_upgraded_files(data: Path) -> None:
    """Finish an upgrade that was killed between its commit and the removal of the graph file.

    A file is removed only if the latest complete copy has all files unchanged.
    """
    remaining = old_graph.files_to_copy(data)
    whole_copies = [copy for copy in old_graph.copies(data) if copy.is_whole]
    if (
        remaining
        and whole_copies
        and all(_is_in(file, whole_copies[-1].path) for file in remaining)
        and old_graph.is_upgraded(data / "memory.db")
    ):
        old_graph.remove_old_files(data)


def _is_in(file: Path, copy: Path) -> bool:
    """Return whether a copy has a file unchanged.

    For ``graph.db`` and its log the copy has one file, written by SQLite's backup, so only its
    presence is checked.
    """
    if file.name.startswith(old_graph.SQL):
        return (copy / old_graph.SQL).exists()
    return (copy / file.name).exists() and filecmp.cmp(file, copy / file.name, shallow=False)


@contextmanager
def _opened(file: Path, group: str, name: str) -> Generator[OldGraph]:
    """Open a graph file; errors about damage tell how to restore the graph."""
    open_graph = open_ladybug_graph if file.name == old_graph.LADYBUG else open_sql_graph
    try:
        with open_graph(file, group) as graph:
            yield graph
    except StoreError as error:
        if (
            type(error) is not StoreError
        ):  # subclasses are conditions that pass: a lock, a full disk
            raise
        remedy = (
            f"restore it from a backup, or run `pps rebuild {name}`, "
            "which makes it anew from the journal"
        )
        raise StoreError(f"{error.message}; {remedy}") from error


def _copied_files(data: Path) -> list[Path]:
    memory = data / "memory.db"
    return [*([memory] if memory.exists() else ()), *old_graph.files_to_copy(data)]


def _require_room(data: Path, name: str) -> None:
    graph_bytes = sum(file.stat().st_size for file in old_graph.files_to_copy(data))
    copy_bytes = sum(file.stat().st_size for file in _copied_files(data))
    # The tables need about twice the size of the graph file (measured), and the same again in the
    # log of their transaction.
    needed = copy_bytes + 4 * graph_bytes + _SPARE_BYTES
    free = shutil.disk_usage(data).free
    if free < needed:
        raise StoreUnavailable(
            f"{name}: upgrading its graph needs {needed >> 20:,} MiB of free disk, "
            f"and there are {free >> 20:,}; free some, then try again (nothing was changed)"
        )


def _copy_files(data: Path) -> Path:
    """Copy ``memory.db`` and the graph file into a new folder; return it once it is on disk."""
    part = old_graph.new_copy_folder(data, now())
    try:
        for file in _copied_files(data):
            if file.suffix == ".db":
                _back_up(file, part / file.name)
            elif not file.name.startswith(f"{old_graph.SQL}-"):  # the backup includes its log
                _copy_file(file, part / file.name)
    except OSError as error:
        old_graph.drop_copies(data)
        raise StoreUnavailable(f"{part} cannot be written: {error.strerror}") from error
    except BaseException:
        old_graph.drop_copies(data)
        raise
    return old_graph.finish_copy(part)


def _back_up(source: Path, target: Path) -> None:
    _make_private(target)
    with (
        mapping_errors(source),
        closing(open_untouched(source)) as reader,
        closing(sqlite3.connect(target)) as copy,
    ):
        reader.backup(copy)
        problems = damage(copy, "quick_check")
        if problems:
            raise StoreError(f"{source} is damaged ({problems[0]}): restore a backup")
    _sync(target)


def _copy_file(source: Path, target: Path) -> None:
    _make_private(target)
    shutil.copyfile(source, target)
    _sync(target)


def _make_private(file: Path) -> None:
    os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def _sync(file: Path) -> None:
    with file.open("rb") as stream:
        os.fsync(stream.fileno())


def _move_graph(
    memory: Path, copy: Path, source: str, group: str, name: str, progress: Progress
) -> _Tally:
    """Write the graph of a copy into ``memory.db`` in one transaction; return the rows read."""
    read_rows = _Tally()

    def fill(connection: Connection) -> None:
        session = SqlSession(connection, group)
        known_nodes = set[str]()
        with _opened(copy / source, group, name) as graph:
            for page in graph.pages():
                complete = _with_ends(page, known_nodes)
                _put(session, complete)
                read_rows.add_page(complete, left_out=page.rows - complete.rows)
                progress(page.section, read_rows.sections[page.section], page.total)
        progress("comparing", 0, 1)
        _compare(connection, read_rows, name)
        meta.put(
            connection,
            old_graph.MARK,
            old_graph.mark_text(source, copy, read_rows.counts(), read_rows.left_out),
        )
        progress("comparing", 1, 1)

    migrate_and_fill(memory, group, fill)
    return read_rows


def _with_ends(page: OldPage, known_nodes: set[str]) -> OldPage:
    """Return a page without facts of unknown nodes; add the page's nodes to the known ones."""
    known_nodes.update(node.uuid for node in page.nodes)
    if not page.facts:
        return page
    facts = [
        stored
        for stored in page.facts
        if stored.fact.subject in known_nodes and stored.fact.object in known_nodes
    ]
    return replace(page, facts=facts)


def _put(session: SqlSession, page: OldPage) -> None:
    if page.nodes:
        put_nodes(session, page.nodes)
    if page.facts:
        put_facts(session, page.facts)
    if page.episodes:
        put_episodes(session, page.episodes)
    if page.mentions:
        put_mentions(session, page.mentions)
    if page.communities:
        put_communities(session, page.communities, page.vectors)
    if page.sagas:
        put_sagas(session, page.sagas)
    for table, links in page.links.items():
        put_links(session, table, links)


class _Tally:
    """The number of rows of each table, and a sum of their digests that ignores their order.

    Attributes:
        sections: Section of a page → number of rows that were read.
        left_out: Number of rows that were read but not written.
    """

    def __init__(self) -> None:
        self.sections: Counter[str] = Counter()
        self.left_out = 0
        self._rows: Counter[str] = Counter()
        self._sums: defaultdict[str, int] = defaultdict(int)

    def add_page(self, page: OldPage, *, left_out: int) -> None:
        """Add the rows that a page becomes in each table."""
        self.sections[page.section] += page.rows + left_out
        self.left_out += left_out
        for table, rows in _rows_of(page):
            self.add(table, rows)

    def add(self, table: str, rows: Iterable[Sequence[object]]) -> None:
        for row in rows:
            digest = hashlib.sha256(repr(tuple(row)).encode("utf-8", "surrogatepass")).digest()
            self._rows[table] += 1
            self._sums[table] = (self._sums[table] + int.from_bytes(digest)) % 2**256

    def counts(self) -> dict[str, int]:
        """Return table → number of rows, for tables that have any."""
        return {table: self._rows[table] for table in _TABLES if self._rows[table]}

    def of(self, table: str) -> tuple[int, int]:
        """Return the number of a table's rows and the sum of their digests."""
        return self._rows[table], self._sums[table]


def _rows_of(page: OldPage) -> Generator[tuple[str, list[Row]]]:
    """Yield (table, the rows that a page becomes in it), with the columns of ``_TABLES``."""
    yield "node", [node.columns() for node in page.nodes]
    yield "fact", [fact.columns() for fact in page.facts]
    yield "support", [row for fact in page.facts for row in _support_rows(fact)]
    yield "episode", [episode.columns() for episode in page.episodes]
    yield "mention", [(*mention[:3], micros(mention[3])) for mention in page.mentions]
    communities = page.communities
    yield (
        "community",
        [community.columns(page.vectors.get(community.uuid)) for community in communities],
    )
    yield "saga", [saga.columns() for saga in page.sagas]
    for table, links in page.links.items():
        yield table, [link.columns() for link in links]


def _support_rows(fact: StoredFact) -> list[Row]:
    return [(fact.uuid, place, episode) for place, episode in enumerate(fact.fact.episodes)]


def _compare(connection: Connection, read_rows: _Tally, name: str) -> None:
    """Raise StoreError unless the tables equal the rows read and no foreign key is broken."""
    stored = _Tally()
    for table, columns in _TABLES.items():
        cursor = connection.execute(f"SELECT {columns} FROM {table}")
        stored.add(table, cursor)
        if stored.of(table) != read_rows.of(table):
            expected = read_rows.of(table)[0]
            actual = stored.of(table)[0]
            raise StoreError(
                f"{name}: the upgrade of its graph would be incomplete: {expected:,} rows of the "
                f"table {table} were read and {actual:,} are stored, or they differ; "
                "nothing was changed: please report it"
            )
        if connection.execute(f"PRAGMA foreign_key_check({table})").fetchone():
            raise StoreError(
                f"{name}: rows of the table {table} would reference missing rows; "
                "nothing was changed: please report it"
            )
