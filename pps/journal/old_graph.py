"""The graph file of an earlier PPS in a memory's folder, and the copies that upgrades make.

Before the upgrade the graph of a memory is in a file of its own: ``graph.lbug`` (LadybugDB), or
``graph.db`` (the SQL tables before they moved into ``memory.db``). The upgrade leaves it in a copy
only: a folder ``before-upgrade-TIME``, with ``memory.db`` as it was. The copy holds text of the
memory, so erasing something from the memory also erases the copy.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from pps.core.errors import ConfigError, IsolationError, StoreError
from pps.journal.db import APPLICATION_ID, mapping_errors, open_untouched

LADYBUG: Final = "graph.lbug"
SQL: Final = "graph.db"
OLD_GRAPHS: Final = (LADYBUG, SQL)
MARK: Final = "graph upgrade"
"""Key in ``meta``, set by the transaction that moves the graph into ``memory.db``."""
COPY_KEPT: Final = timedelta(days=30)
_COPY = "before-upgrade-"
_PART = ".part"
_COPY_NAME = re.compile(rf"{_COPY}(\d{{8}}T\d{{6}})\d{{6}}Z(?:{re.escape(_PART)})?")
_LOCK = ".lock"


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy from before an upgrade.

    Attributes:
        path: Its folder.
        made_at: Time at which the copying began.
        is_whole: False while it is being made, and after an interruption.
    """

    path: Path
    made_at: datetime
    is_whole: bool

    @property
    def kept_until(self) -> datetime:
        return self.made_at + COPY_KEPT

    @property
    def size_bytes(self) -> int:
        return sum(file.stat().st_size for file in self.path.rglob("*") if file.is_file())


def waiting(data: Path, group: str, name: str) -> Path | None:
    """Return the graph file that waits for its upgrade; None if there is none. Blocks.

    If ``memory.db`` already holds a graph, a graph file beside it does not wait: an upgrade that
    was killed at its end left it, or somebody put it there.

    Args:
        data: The folder with ``memory.db``; nobody may change it meanwhile.
        group: The group that must own ``memory.db``.
        name: The entity's name, for errors.

    Raises:
        IsolationError: ``memory.db`` belongs to another group.
        StoreError: Both ``graph.lbug`` and ``graph.db`` exist.
        StoreConflict, StoreUnavailable: ``memory.db`` cannot be read.
    """
    files = [data / old for old in OLD_GRAPHS if (data / old).is_file()]
    if not files or _holds_graph(data / "memory.db", group):
        return None
    if len(files) > 1:
        raise StoreError(
            f"{name}: {LADYBUG} and {SQL} both lie in {data}, so it is unknown which is its graph; "
            "move the other away"
        )
    return files[0]


def is_upgraded(memory: Path) -> bool:
    """Return whether an upgrade moved a graph into this ``memory.db``."""
    if not _has_bytes(memory):
        return False
    with mapping_errors(memory), closing(open_untouched(memory)) as db:
        return bool(db.execute("SELECT 1 FROM meta WHERE key = ?", (MARK,)).fetchone())


def _holds_graph(memory: Path, group: str) -> bool:
    if not _has_bytes(memory):
        return False
    with mapping_errors(memory), closing(open_untouched(memory)) as db:
        if db.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
            return False  # opening the memory raises the error
        tables = {
            row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        owner = db.execute("SELECT value FROM meta WHERE key = 'group'").fetchone()
        if owner is not None and owner[0] != group:
            raise IsolationError(f"{memory.name} belongs to another entity: nothing was read")
        if db.execute("SELECT 1 FROM meta WHERE key = ?", (MARK,)).fetchone():
            return True
        return "node" in tables and db.execute("SELECT 1 FROM node LIMIT 1").fetchone() is not None


def check_readable(file: Path, name: str) -> None:
    """Raise ConfigError if the library that reads this graph file is not installed."""
    if file.name == LADYBUG and importlib.util.find_spec("ladybug") is None:
        raise ConfigError(
            f"{name}: its graph lies in {LADYBUG}, which an earlier PPS wrote. Install the extra "
            "`migrate` (`scripts/setup migrate`, or `pip install 'pps[migrate]'`), "
            f"then run `pps upgrade {name}`; nothing was opened or changed"
        )


def old_files(data: Path) -> list[Path]:
    """Return the graph files of an earlier PPS in a folder, including logs and locks."""
    return sorted(file for old in OLD_GRAPHS for file in data.glob(f"{old}*") if file.is_file())


def remove_old_files(data: Path) -> None:
    """Remove the graph files of an earlier PPS, including logs and locks.

    Raises:
        StoreError: A file cannot be removed.
    """
    try:
        files = old_files(data)
        # The graph itself goes last: while it exists, the next call finds the others.
        for file in sorted(files, key=lambda file: file.name in OLD_GRAPHS):
            file.unlink(missing_ok=True)
        if files:
            sync_folder(data)
    except OSError as error:
        raise StoreError(
            f"{data}: a graph file of an earlier PPS cannot be removed ({error.strerror})"
        ) from None


def files_to_copy(data: Path) -> list[Path]:
    """Return the graph files of an earlier PPS without their locks."""
    return [file for file in old_files(data) if not file.name.endswith(_LOCK)]


def new_copy_folder(data: Path, at: datetime) -> Path:
    """Create the folder of an unfinished copy, mode 0700; ``finish_copy`` gives it its name."""
    folder = data / f"{_COPY}{at.astimezone(UTC):%Y%m%dT%H%M%S%f}Z{_PART}"
    folder.mkdir(mode=0o700)
    return folder


def finish_copy(part: Path) -> Path:
    """Give a complete copy its final name, remove earlier copies, and return its folder.

    All files of the copy must be on disk.
    """
    sync_folder(part)
    whole = part.with_name(part.name.removesuffix(_PART))
    part.rename(whole)
    sync_folder(whole.parent)
    for copy in copies(whole.parent):
        if copy.path != whole:
            _remove(copy.path)
    return whole


def copies(data: Path) -> list[Copy]:
    """Return the copies from before upgrades in a folder, also unfinished ones, oldest first."""
    copies: list[Copy] = []
    for path in sorted(data.glob(f"{_COPY}*")):
        match = _COPY_NAME.fullmatch(path.name)
        if match is None or not path.is_dir() or path.is_symlink():
            continue
        made_at = datetime.strptime(match[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
        copies.append(Copy(path, made_at, not path.name.endswith(_PART)))
    return copies


def drop_copies(data: Path, *, made_before: datetime | None = None) -> list[Copy]:
    """Remove the copies from before upgrades, or those made before a time; return them. Blocks.

    Raises:
        StoreError: A copy cannot be removed completely; the next call continues.
    """
    dropped = [copy for copy in copies(data) if made_before is None or copy.made_at < made_before]
    for copy in dropped:
        _remove(copy.path)
    return dropped


def drop_all_of_old(data: Path) -> None:
    """Remove all copies and old graph files. Blocks; StoreError if one cannot be removed."""
    drop_copies(data)
    remove_old_files(data)


def _remove(folder: Path) -> None:
    try:
        shutil.rmtree(folder)
        sync_folder(folder.parent)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"{folder}: cannot be removed whole ({error.strerror})") from None


def sync_folder(folder: Path) -> None:
    """Wait until the folder's entries (names of files) are on disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def mark_text(source: str, copy: Path, counts: Mapping[str, int], left_out: int) -> str:
    """Return the value of ``MARK`` for an upgrade, as JSON."""
    return json.dumps(
        {"from": source, "copy": copy.name, "rows": dict(counts), "left_out": left_out}
    )


def _has_bytes(file: Path) -> bool:
    try:
        return file.stat().st_size > 0
    except OSError:
        return False
