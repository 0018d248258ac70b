"""Answers as they are shown: in pages of bounded size, with times on the reader's clock.

A page bounds how much of an answer a model gets, and says where the next one begins. Sizes are
characters of the JSON that a client shows its model. An answer's data keeps its times in UTC. An
empty answer says what to do next, as a tool and a command.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter

from pps.core.errors import InvalidRequest
from pps.core.model_text import escape_all
from pps.core.time import CoarseTime
from pps.core.values import JSON

Value = TypeVar("Value")

PAGE_CHARACTERS = 20_000
"""Most characters of a page: some 6,000 tokens of English and 20,000 of Chinese.

Common clients cut at 25,000.
"""
FOLLOWING = 300
"""Characters kept free for what stands around the items: the cursor, the entity, brackets."""
_LEAST_PIECE = 500
"""A text is not begun on a page with less room than that."""
_NEAR_END = 0.75
_MOST_WORD = 200
_CURSOR = re.compile(r"(\d{1,4})\.(\d{1,9})\.([0-9a-f]{12})", re.ASCII)
_VERSION_CURSOR = re.compile(r"(\d{1,9})\.(\d{1,9})", re.ASCII)


NOTHING_CHANGED = "Nothing was changed: this was a dry run."
"""How the text of a dry run ends; an interface adds how it is carried out there."""

EMPTY: Mapping[str, str] = {
    "recall": (
        "Keep a text with `remember` (`pps remember NAME TEXT`), see all with `turns_list` (`pps "
        "turns NAME`)."
    ),
    "timeline": "No facts. `remember` takes them with a text (`pps remember NAME TEXT`); "
    "`jobs_list` shows texts that wait (`pps jobs list NAME`).",
    "turns_list": "Nothing was said. `remember` keeps a text (`pps remember NAME TEXT`), "
    "hooks keep sessions (`pps hooks install`).",
    "anchor_search": "No anchor found. `anchor_list` shows all (`pps anchors list NAME`).",
    "anchor_list": "No anchors. `anchor_save` writes one (`pps anchors save NAME`), "
    "`pps anchors import NAME FOLDER` takes in a folder.",
    "forgotten": "Nothing that could be restored. What `forget` takes softly (`pps forget NAME ID "
    "--soft`) is here for 30 days.",
    "edits": "Nothing was changed by hand. What `fact_correct` (`pps correct NAME ID`), `update` "
    "(`pps update NAME ID`) and soft forgetting do is here.",
    "find_duplicates": (
        "No duplicates found. `merge_nodes` makes two nodes one (`pps merges apply NAME KEEP "
        "DROP`)."
    ),
    "record_list": "No records. `record_save` makes one (`pps records save NAME`), "
    "`schema_inventory` shows which kinds there are (`pps schema NAME`).",
    "schema_inventory": "No kinds of its own: `pps pack enable NAME PACK` gives a memory a pack, "
    "`pps pack list` shows which there are.",
    "session_context": "This memory has no pack with layers that are always loaded: `pps pack "
    "enable NAME constitution` gives it one.",
    "jobs_list": "No such jobs: nothing waits and nothing has failed. `turns_list` shows what was "
    "kept (`pps turns NAME`).",
    "costs": (
        "No language model has read anything: `pps hooks install --entity NAME --extract claude` "
        "sets one."
    ),
    "injected": (
        "Nothing was put before an agent: `pps hooks install --entity NAME` gives sessions their "
        "memory."
    ),
    "context_usage": "Nothing was given to this session. `pps injected NAME` lists the sessions.",
    "fact_histogram": "`remember` takes facts with their times (`pps remember NAME TEXT`).",
}
"""Operation → its text. ``NAME`` is the entity's."""


def with_next_page(text: str, cursor: str | None) -> str:
    """Return a page's text for a model, with the cursor that asks for the next page."""
    return f"{text}\nMore: cursor={cursor}" if cursor else text


@lru_cache
def adapter(kind: type[Value]) -> TypeAdapter[Value]:
    """Return the adapter of a type, made once: what turns its values into JSON."""
    return TypeAdapter(kind)


def as_json(view: object) -> Any:
    """Return a dataclass as JSON data, without the fields that are None."""
    return adapter(type(view)).dump_python(view, mode="json", exclude_none=True)


def json_size(value: JSON) -> int:
    """Return how many characters a value has as JSON, as a model is shown it."""
    return len(json.dumps(escape_all(value), ensure_ascii=False))


def fitting(sizes: Iterable[int], room: int = PAGE_CHARACTERS - FOLLOWING) -> int:
    """Return how many items fit on a page, in order, at least one."""
    count = 0
    used = 0
    for size in sizes:
        used += size + 2  # the comma between two
        if count and used > room:
            break
        count += 1
    return count


class Room:
    """What is left of a page while items are put on it."""

    def __init__(self, characters: int = PAGE_CHARACTERS - FOLLOWING) -> None:
        self._left = characters
        self._empty = True

    def take(self, size: int) -> bool:
        """Put an item on the page; False when it does not fit. The first one always does."""
        if size + 2 > self._left and not self._empty:
            return False
        self._left -= size + 2
        self._empty = False
        return True

    def piece(self, text: str, beside: int) -> int:
        """Return how many characters of a text fit, with ``beside`` characters around it.

        A piece ends after a line where one ends in its last quarter, else after a word. 0 when too
        little fits; a page that is empty takes some of every text.
        """
        room = self._left - beside - 2
        # Nothing gets shorter as JSON or by escaping: a long text need not be measured whole.
        if len(text) <= room and json_size(text) <= room:
            return len(text)
        if room < _LEAST_PIECE:
            if not self._empty:
                return 0
            room = _LEAST_PIECE
        return _cut(text, room)


def _cut(text: str, room: int) -> int:
    """Return where to cut a text so that its beginning has at most ``room`` characters as JSON."""
    end = min(len(text), room)
    while end > 1:
        size = json_size(text[:end])
        if size <= room:
            break
        end = max(1, min(end - 1, end * room // size))
    line = text.rfind("\n", int(end * _NEAR_END), end) + 1
    if line:
        return line
    word = max(text.rfind(space, max(0, end - _MOST_WORD), end) for space in " \t\n") + 1
    return word or end


@dataclass(frozen=True, slots=True)
class TextPart:
    """The part of a text in an answer: characters ``begins`` to ``ends`` (excluded), of ``of``."""

    begins: int
    ends: int
    of: int

    @property
    def is_last(self) -> bool:
        return self.ends == self.of

    @property
    def unless_whole(self) -> TextPart | None:
        """Return the part; None when it is the whole text."""
        return None if self.begins == 0 and self.is_last else self

    def words(self) -> str:
        """Return the part to read."""
        return f"characters {self.begins + 1:,} to {self.ends:,} of {self.of:,}"


@dataclass(frozen=True, slots=True)
class Layout:
    """What of a list of texts is on a page.

    Attributes:
        parts: Of the first texts, one each.
        next_index, next_begins: The text, and its character, that the next page begins with; None
            on the last page.
    """

    parts: tuple[TextPart, ...]
    next_index: int | None = None
    next_begins: int = 0


def lay_out(bodies: Sequence[str], begins: int, size_of: Callable[[int, TextPart], int]) -> Layout:
    """Return how much of the texts has room on a page.

    Args:
        bodies: The texts in order; the first is what is left of one from the character ``begins``
            on.
        begins: 0 unless the page continues a text.
        size_of: Returns the characters that the item of an index has as JSON with a part of its
            text.
    """
    room = Room()
    parts = list[TextPart]()
    for index, body in enumerate(bodies):
        first = 0 if index else begins
        whole = first + len(body)
        count = room.piece(body, size_of(index, TextPart(first, first, whole)))
        part = TextPart(first, first + count, whole)
        if (body and not count) or not room.take(size_of(index, part)):
            return Layout(tuple(parts), index, first)
        parts.append(part)
        if not part.is_last:
            return Layout(tuple(parts), index, part.ends)
    return Layout(tuple(parts))


@dataclass(frozen=True, slots=True)
class ItemCursor:
    """Where a page of items that were asked for by their ids begins.

    Attributes:
        index: Of the item among those asked for.
        begins: Character of its text.
        digest: Of the item's id and whole text, so that no page continues another text.
    """

    index: int = 0
    begins: int = 0
    digest: str = ""

    def __str__(self) -> str:
        return f"{self.index}.{self.begins}.{self.digest}"

    def check(self, id_: str, text: str) -> None:
        """Raise InvalidRequest unless the item is the one of the last page's end, unchanged."""
        if self.digest != digest(id_, text) or self.begins > len(text):
            raise InvalidRequest(
                "cursor",
                "the ids are others than those of the page before, or the item changed since; call "
                "again without it",
            )


def item_cursor(cursor: str, items: int) -> ItemCursor | None:
    """Return what a cursor says; None for an empty one.

    Raises:
        InvalidRequest: It is none that a page of so many items gave.
    """
    if not cursor:
        return None
    parts = _CURSOR.fullmatch(cursor)
    if parts is None or int(parts[1]) >= items:
        raise InvalidRequest(
            "cursor", "give the 'next_cursor' of a page before as it is, with the same ids"
        )
    return ItemCursor(int(parts[1]), int(parts[2]), parts[3])


def version_cursor(cursor: str) -> tuple[int, int] | None:
    """Return the number of the version that a page begins with, and the character of it.

    None for an empty one.

    Raises:
        InvalidRequest: It is none that a page gave.
    """
    if not cursor:
        return None
    parts = _VERSION_CURSOR.fullmatch(cursor)
    if parts is None:
        raise InvalidRequest("cursor", "give the 'next_cursor' of a page before, as it is")
    return int(parts[1]), int(parts[2])


def digest(id_: str, text: str) -> str:
    """Return what tells an item's text from another, and from what it was before."""
    return hashlib.sha256(f"{id_}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()[:12]


def on_clock(value: Value, zone: tzinfo) -> Value:
    """Return a value whose instants in UTC, at any depth, are those of a zone.

    Dates and other zones stay.
    """
    return value if zone is UTC else cast("Value", _moved(value, zone))


def _moved(value: Any, zone: tzinfo) -> Any:
    if isinstance(value, datetime):
        if isinstance(value, CoarseTime) or value.tzinfo is not UTC:
            return value
        try:
            return value.astimezone(zone)
        except OverflowError:  # at the ends of the calendar
            return value
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    if isinstance(value, tuple | list):
        items = cast("tuple[Any, ...] | list[Any]", value)
        moved = [_moved(item, zone) for item in items]
        if all(new is old for new, old in zip(moved, items, strict=True)):
            return items
        return moved if isinstance(items, list) else tuple(moved)
    if isinstance(value, Mapping):
        pairs = cast("Mapping[Any, Any]", value)
        return {key: _moved(item, zone) for key, item in pairs.items()}
    if is_dataclass(value) and not isinstance(value, type):
        changed: dict[str, Any] = {}
        for field in fields(value):
            old = getattr(value, field.name)
            moved = _moved(old, zone) if field.init else old
            if moved is not old:
                changed[field.name] = moved
        return replace(value, **changed) if changed else value
    return value
