"""An entity's folder: made from a template, known by its ``entity.toml``, held by one process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import tomllib
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import datetime
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template

from pps.config import shipped
from pps.config.toml_lines import syntax_mistake
from pps.core import time
from pps.core.errors import IsolationError, PPSError, StoreConflict, StoreError
from pps.core.file_lock import FileLock
from pps.core.ids import EntityId
from pps.core.user_files import open_regular, parse_toml, read_text

JOURNAL = "memory.db"
_SQLITE_HEAD = b"SQLite format 3\0"
_CARD = "entity.toml"
_ZONE = re.compile(r"(?m)^# time_zone = .*$")


@dataclass(frozen=True, slots=True)
class Card:
    """What ``entity.toml`` says: whose folder this is."""

    entity: EntityId
    store: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Entry:
    """One registered entity.

    Attributes:
        archived: It keeps its data and refuses every token.
        made: All its files were made once: one that is missing is gone.
        is_published: Its graph is published on Neo4j.
    """

    entity: EntityId
    folder: Path
    store: str
    created_at: datetime
    archived: bool
    made: bool
    is_published: bool = False


def make(folder: Path, card: Card, time_zone: str = "") -> None:
    """Make an entity's folder from the template, or finish one that was cut off.

    Without a ``time_zone`` its ``entity.toml`` names none, and the installation's setting holds.

    ``entity.toml`` is written last and marks the folder as whole; what is there already stays as it
    is. Folders get mode 0700, files 0600.

    Raises:
        IsolationError: The folder belongs to another entity.
        StoreError: It cannot be written.
    """
    if (folder / _CARD).exists():
        check_card(folder, card.entity)
        return
    words = {
        "name": card.entity.name,
        "group": card.entity.group,
        "store": card.store,
        "created_at": time.iso(card.created_at),
    }
    try:
        _copy(shipped("entities/_template"), folder, words, last=_CARD)
        (folder / "data").mkdir(mode=0o700, exist_ok=True)
        text = shipped(f"entities/_template/{_CARD}").read_text(encoding="utf-8")
        text = Template(text).substitute(words)
        if time_zone:
            text = _ZONE.sub(f'time_zone = "{time_zone}"', text)
        write(folder / _CARD, text)
    except OSError as error:
        raise StoreError(f"{folder}: cannot be written ({error.strerror})") from None


def complete(folder: Path) -> None:
    """Make again what was deleted from an entity's folder: its folders and the template's files.

    StoreError.
    """
    try:
        _copy(shipped("entities/_template"), folder, {"name": folder.name}, last=_CARD)
    except OSError as error:
        raise StoreError(f"{folder}: cannot be written ({error.strerror})") from None


def _copy(source: Traversable, target: Path, words: dict[str, str], *, last: str) -> None:
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    for item in source.iterdir():
        place = target / item.name
        if item.is_dir():
            _copy(item, place, words, last="")
        elif item.name not in (last, ".gitkeep") and not place.exists():
            write(place, Template(item.read_text(encoding="utf-8")).safe_substitute(words))


def write(path: Path, text: str) -> None:
    """Replace a file of an entity in one step, mode 0600; what was written is on disk."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    with os.fdopen(
        os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
    ) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def card_of(folder: Path) -> Card:
    """Return what a folder says of itself.

    StoreError when it has no ``entity.toml`` that can be understood.
    """
    path = folder / _CARD
    try:
        text = read_text(path)
    except OSError as error:
        raise StoreError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise StoreError(f"{path}: not an entity's card; restore it from a backup") from None
    try:
        values = parse_toml(text)
        entity = EntityId(str(values["name"]), str(values["group"]))
        return Card(
            entity, store_named(str(values["store"])), time.parse(str(values["created_at"]))
        )
    except tomllib.TOMLDecodeError as error:
        line, problem = syntax_mistake(text, error)
        remedy = "mend it, or restore the file from a backup"
        raise StoreError(f"{path}: not valid TOML: {problem} (line {line}); {remedy}") from None
    except (KeyError, PPSError):
        raise StoreError(f"{path}: not an entity's card; restore it from a backup") from None


def card_stamp(folder: Path) -> tuple[int, int, int] | None:
    """Return what changes whenever ``entity.toml`` is written: its file, time and size.

    None where there is none.
    """
    try:
        status = (folder / _CARD).stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def cards(entities: Path) -> list[tuple[Path, Card]]:
    """Return the folders of entities that lie in a folder, with their cards.

    Raises as ``card_of``.
    """
    return [(card.parent, card_of(card.parent)) for card in sorted(entities.glob(f"*/{_CARD}"))]


def check_card(folder: Path, entity: EntityId) -> Card:
    """Return the folder's card if it is this entity's.

    Raises:
        IsolationError: The folder is another entity's (a wrong mount, or copied data).
        StoreError: It says nothing readable of itself.
    """
    card = card_of(folder)
    if card.entity != entity:
        raise IsolationError(
            f"{folder} holds another entity's data, not {entity.name}'s; nothing was opened"
        )
    return card


def store_named(name: str) -> str:
    """Return the store that a card or the registry names.

    ``sqlite`` is the old name of ``embedded``.
    """
    return "embedded" if name == "sqlite" else name


@contextlib.asynccontextmanager
async def held(entry: Entry) -> AsyncGenerator[None]:
    """Hold an entity's files alone; the lock dies with the process.

    Raises:
        StoreConflict: Another process holds them; the message names it.
        StoreError: The folder is gone.
    """
    data = entry.folder / "data"
    if not data.is_dir():
        raise StoreError(f"{data} is gone; restore the entity's folder from a backup")
    lock = FileLock(data / "lock", whose=f"{entry.entity.name}'s memory")
    try:
        await asyncio.to_thread(lock.acquire)
    except StoreConflict as error:
        raise StoreConflict(
            f"{error.message}; ask it (`pps …` does) or stop it (`pps serve --stop`)"
        ) from None
    try:
        yield
    finally:
        lock.release()


def check_files(entry: Entry) -> None:
    """Raise StoreError if an entity's file is gone, IsolationError if the folder is another's."""
    # Again, now that it is held: it may have been deleted before that.
    check_card(entry.folder, entry.entity)
    lost = gone(entry)
    if lost:
        raise StoreError(lost)


def gone(entry: Entry) -> str:
    """Return what is to be said of a file that was made once and is gone or empty.

    An empty text when none is.

    Such a file is never made anew by itself: its memory would look empty, and take in what it is
    told.
    """
    if not entry.made or entry.store == "postgresql":
        return ""  # of a database, opening it tells
    if _has_bytes(entry.folder / "data" / JOURNAL):
        return ""
    return (
        f"{entry.entity.name}: {JOURNAL} is gone or empty, so nothing was opened; restore "
        f"{entry.folder} from a "
        "backup: no command can make the journal anew"
    )


def unusable(entry: Entry) -> str:
    """Return why an entity cannot be opened, as far as its files tell that nobody has open.

    Empty when they do not.
    """
    lost = gone(entry)
    if lost:
        return lost
    try:
        check_card(entry.folder, entry.entity)
    except PPSError as error:
        return error.message
    if not entry.made:
        return ""
    name = entry.entity.name
    data = entry.folder / "data"
    if entry.store != "postgresql" and not _begins_with(data / JOURNAL, _SQLITE_HEAD):
        return f"{name}: {JOURNAL} is damaged; restore {entry.folder} from a backup"
    if not _begins_with(data / "vectors.db", _SQLITE_HEAD):
        return f"{name}: its vectors are damaged; run `pps reindex {name}`"
    if entry.store == "embedded" and any(data.glob("graph.*")):
        return _unreadable_graph(entry)
    return ""


def _unreadable_graph(entry: Entry) -> str:
    """Return why the graph file that an earlier PPS left cannot be brought into ``memory.db``.

    Else an empty text.
    """
    from pps.journal import old_graph  # not at the top: few entities have one

    name = entry.entity.name
    try:
        graph = old_graph.waiting(entry.folder / "data", entry.entity.group, name)
        if graph is not None:
            old_graph.check_readable(graph, name)
    except PPSError as error:
        return error.message
    return ""


def _begins_with(file: Path, head: bytes) -> bool:
    """Tell whether a file begins as its kind does; one that is not there yet is no damage."""
    try:
        with open_regular(file) as opened:
            return opened.read(len(head)) == head
    except FileNotFoundError:
        return True
    except OSError:
        return False


def graph_gone(name: str) -> str:
    return (
        f"{name}: its graph is gone or empty, so nothing was opened; restore it from a backup, or "
        "run `pps rebuild "
        f"{name}`, which makes it anew from the journal and says what cannot come back"
    )


def _has_bytes(file: Path) -> bool:
    try:
        return file.stat().st_size > 0
    except OSError:
        return False
