"""The graph file that an earlier PPS left in a memory's folder, and the copies of its upgrade.

Until its upgrade the graph of a memory lies in a file of its own: ``graph.lbug`` (LadybugDB), or
``graph.db`` (the SQL tables before they moved into ``memory.db``). Afterwards the file lies in a
copy only: a folder ``before-upgrade-TIME`` with ``memory.db`` as it was. The copy holds what the
memory held, so whoever erases something erases the copy.
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
"""Key of ``meta``: set in the transaction that brings the graph into ``memory.db``."""
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
        made_at: When it was begun.
        is_whole: False while it is being made, and of one whose making was cut short.
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
    """Return the graph file that must still be brought into ``memory.db``; None for none. Blocks.

    A file beside tables that hold a graph already is not waiting: an upgrade that was killed at its
    end left it, or somebody put it there.

    Args:
        data: The folder with ``memory.db``, which nobody changes meanwhile.
        group: Whose it must be.
        name: The entity's, for errors.

    Raises:
        IsolationError: ``memory.db`` belongs to another group.
        StoreError: Two such files lie there.
        StoreConflict, StoreUnavailable: ``memory.db`` cannot be read.
    """
    files = [data / old for old in OLD_GRAPHS if (data / old).is_file()]
    if not files or _holds_graph(data / "memory.db", group):
        return None
    if len(files) > 1:
        raise StoreError(
            f"{name}: {LADYBUG} and {SQL} both lie in {data}, so it is unknown which is its graph; move the other away"
        )
    return files[0]


def is_upgraded(memory: Path) -> bool:
    """Tell whether an upgrade brought a graph into a ``memory.db``."""
    if not _has_bytes(memory):
        return False
    with mapping_errors(memory), closing(open_untouched(memory)) as db:
        return bool(db.execute("SELECT 1 FROM meta WHERE key = ?", (MARK,)).fetchone())


def _holds_graph(memory: Path, group: str) -> bool:
    if not _has_bytes(memory):
        return False
    with mapping_errors(memory), closing(open_untouched(memory)) as db:
        if db.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
            return False  # opening it says what is wrong
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
    """Raise ConfigError where a graph file needs a library that is not installed."""
    if file.name == LADYBUG and importlib.util.find_spec("ladybug") is None:
        raise ConfigError(
            f"{name}: its graph lies in {LADYBUG}, which an earlier PPS wrote. Install what reads it (`scripts/setup "
            f"migrate`, or `pip install 'pps[migrate]'`), then run `pps upgrade {name}`; nothing was opened or changed"
        )


def old_files(data: Path) -> list[Path]:
    """Return the graph files of an earlier PPS in a folder, with their logs and locks."""
    return sorted(file for old in OLD_GRAPHS for file in data.glob(f"{old}*") if file.is_file())


def remove_old_files(data: Path) -> None:
    """Remove graph files of an earlier PPS, with logs and locks. StoreError when one stays."""
    try:
        files = old_files(data)
        for file in sorted(
            files, key=lambda file: file.name in OLD_GRAPHS
        ):  # last: it tells that there are others
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
    """Make the folder, mode 0700, in which a copy is made; ``finish_copy`` makes it one."""
    folder = data / f"{_COPY}{at.astimezone(UTC):%Y%m%dT%H%M%S%f}Z{_PART}"
    folder.mkdir(mode=0o700)
    return folder


def finish_copy(part: Path) -> Path:
    """Name a copy whose files are all on disk, remove earlier copies; return its folder."""
    sync_folder(part)
    whole = part.with_name(part.name.removesuffix(_PART))
    part.rename(whole)
    sync_folder(whole.parent)
    for copy in copies(whole.parent):
        if copy.path != whole:
            _remove(copy.path)
    return whole


def copies(data: Path) -> list[Copy]:
    """Return the copies from before upgrades in a folder, oldest first, with unfinished ones."""
    copies: list[Copy] = []
    for path in sorted(data.glob(f"{_COPY}*")):
        if path.is_dir() and not path.is_symlink() and (match := _COPY_NAME.fullmatch(path.name)):
            made_at = datetime.strptime(match[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
            copies.append(Copy(path, made_at, not path.name.endswith(_PART)))
    return copies


def drop_copies(data: Path, *, made_before: datetime | None = None) -> list[Copy]:
    """Erase the copies from before upgrades, or those made before a time; return them. Blocks.

    StoreError: One cannot be removed whole; the next call goes on.
    """
    dropped = [copy for copy in copies(data) if made_before is None or copy.made_at < made_before]
    for copy in dropped:
        _remove(copy.path)
    return dropped


def drop_all_of_old(data: Path) -> None:
    """Erase the copies and old graph files. Blocks; StoreError when one stays."""
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
    """Wait until the names in a folder are on disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def mark_text(source: str, copy: Path, counts: Mapping[str, int], left_out: int) -> str:
    """Return what ``MARK`` says of an upgrade."""
    return json.dumps(
        {"from": source, "copy": copy.name, "rows": dict(counts), "left_out": left_out}
    )


def _has_bytes(file: Path) -> bool:
    try:
        return file.stat().st_size > 0
    except OSError:
        return False
