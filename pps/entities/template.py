"""An entity's folder: made from the shipped template, and known by its ``entity.toml``."""

from __future__ import annotations

import os
import secrets
import tomllib
from dataclasses import dataclass
from datetime import datetime
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template

from pps.config import shipped
from pps.core import time
from pps.core.errors import IsolationError, PPSError, StoreError
from pps.core.ids import EntityId

_CARD = "entity.toml"


@dataclass(frozen=True, slots=True)
class Card:
    """What ``entity.toml`` says: whose folder this is."""

    entity: EntityId
    store: str
    created_at: datetime


def make(folder: Path, card: Card) -> None:
    """Make an entity's folder from the template, or finish one that was cut off.

    ``entity.toml`` is written last and marks the folder as whole; what is there already stays as it
    is. Folders get mode 0700, files 0600.

    Raises:
        IsolationError: The folder belongs to another entity.
        StoreError: It cannot be written.
    """
    if (folder / _CARD).exists():
        check(folder, card.entity)
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
        write(folder / _CARD, Template(text).substitute(words))
    except OSError as error:
        raise StoreError(f"{folder}: cannot be written ({error.strerror})") from None


def read(folder: Path) -> Card:
    """Return what a folder says of itself.

    Raises:
        StoreError: There is no ``entity.toml``, or it cannot be understood.
    """
    path = folder / _CARD
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
        entity = EntityId(str(values["name"]), str(values["group"]))
        return Card(entity, str(values["store"]), time.parse(str(values["created_at"])))
    except OSError as error:
        raise StoreError(f"{path}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, KeyError, PPSError):
        raise StoreError(f"{path}: not an entity's card; restore it from a backup") from None


def cards(entities: Path) -> list[tuple[Path, Card]]:
    """Return the folders of entities that lie in a folder, with their cards; raises as ``read``."""
    return [(one.parent, read(one.parent)) for one in sorted(entities.glob(f"*/{_CARD}"))]


def check(folder: Path, entity: EntityId) -> Card:
    """Return the folder's card if it is this entity's.

    Raises:
        IsolationError: The folder is another entity's (a wrong mount, or copied data).
        StoreError: It says nothing readable of itself.
    """
    card = read(folder)
    if card.entity != entity:
        raise IsolationError(f"{folder} holds another entity's data, not {entity.name}'s; nothing was opened")
    return card


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
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
