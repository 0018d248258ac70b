"""What reading a file for import yields, and what the readers share: an object of JSON, its texts and times."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeAlias, cast

from pps.core.errors import InvalidRequest
from pps.core.time import parse
from pps.core.values import JSON, RESERVED_KINDS
from pps.ingest.drafts import RememberOptions
from pps.ingest.redact import cut, whole

if TYPE_CHECKING:
    from pps.ingest.importing.files import Source

LONGEST = 60_000
"""Characters of one turn that an import writes; a longer message becomes several turns, in order."""

_NOT_LABEL = re.compile(r"[^A-Za-z0-9_]+")
_NOT_TAG = re.compile(r"[^\w-]+")


@dataclass(frozen=True, slots=True)
class Item:
    """One message, ready for ``remember``; ``where`` names its file and line or id."""

    content: str
    options: RememberOptions
    where: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Something that should have been read and could not be: it is reported, and the rest goes on."""

    where: str
    why: str


@dataclass(frozen=True, slots=True)
class Passed:
    """Something that is no memory, such as bookkeeping of the program that wrote it; counted by ``why``."""

    why: str


Read: TypeAlias = Item | Unreadable | Passed
Reader: TypeAlias = "Callable[[Source], Iterator[Read]]"


@dataclass(frozen=True, slots=True)
class Entry:
    """A JSON object that another program wrote: what is missing, or of another type, is read as empty."""

    fields: Mapping[str, JSON]

    @staticmethod
    def of(value: object) -> Entry:
        return Entry(cast("Mapping[str, JSON]", value) if isinstance(value, dict) else {})

    def __bool__(self) -> bool:
        return bool(self.fields)

    def get(self, name: str) -> JSON:
        return self.fields.get(name)

    def has(self, *names: str) -> bool:
        return self.fields.keys() >= set(names)

    def text(self, *names: str) -> str:
        """Return the first of some fields that is a text and not empty."""
        return next((text for name in names if (text := string(self.fields.get(name)))), "")

    def entry(self, name: str) -> Entry:
        return Entry.of(self.fields.get(name))

    def values(self, *names: str) -> Sequence[JSON]:
        """Return the first of some fields that is a list and not empty."""
        return next((found for name in names if (found := _sequence(self.fields.get(name)))), ())

    def entries(self, *names: str) -> list[Entry]:
        return [Entry.of(one) for one in self.values(*names)]

    def texts(self) -> dict[str, str]:
        """Return the fields that are texts."""
        return {name: value for name, value in self.fields.items() if isinstance(value, str)}

    def moment(self, *names: str) -> datetime | None:
        """Return the first of some fields that is a time."""
        return next((at for name in names if (at := moment(self.fields.get(name)))), None)


def joined(texts: Iterable[str]) -> str:
    """Return texts as paragraphs of one, without those that are blank."""
    return "\n\n".join(text for text in texts if text.strip())


def pieces(content: str, options: RememberOptions, where: str) -> Iterator[Read]:
    """Yield a message as one item, or as several when it is longer than a turn; nothing of it is lost."""
    if not content.strip():
        yield Passed("empty messages")
        return
    if len(content) <= LONGEST:
        yield Item(content, options, where)
        return
    ref = options.get("source_ref", where)
    for number, piece in enumerate(cut(content.strip(), LONGEST), 1):
        given: RememberOptions = {**options, "source_ref": short(f"{ref}/{number}")}
        if number > 1:  # what was read in it belongs to its beginning
            given = {**given, "nodes": (), "facts": ()}
        yield Item(piece, given, where)


def short(text: str, most: int = 200) -> str:
    """Return a text, or its beginning and a digest of all of it when it is longer than ``most``."""
    text = text.replace("\0", "")
    if len(text) <= most:
        return text
    return f"{text[: whole(text, most - 17)]}~{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:16]}"


def label(text: str, otherwise: str) -> str:
    """Return a relation's or kind's name made of a text's ASCII letters and digits, else ``otherwise``."""
    found = _NOT_LABEL.sub("_", text).strip("_")
    return found[: whole(found, 64)] if found[:1].isalpha() else otherwise


def kind(text: str, otherwise: str) -> str:
    """Return a node's kind made of a text as ``label`` does; ``otherwise`` too for what Graphiti uses itself."""
    found = label(text, otherwise)
    return otherwise if found in RESERVED_KINDS else found


def tags(texts: Iterable[str]) -> tuple[str, ...]:
    """Return texts as tags (a letter, then letters, digits, ``_`` or ``-``), once each; what cannot be one is left."""
    found = (_NOT_TAG.sub("-", text.strip().removeprefix("#").lower()).strip("-_0123456789") for text in texts)
    return tuple(dict.fromkeys(one[: whole(one, 64)] for one in found if one[:1].isalpha()))[:50]


def moment(value: JSON) -> datetime | None:
    """Return the instant of an ISO 8601 text or of Unix seconds; None when it is neither."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return datetime.fromtimestamp(value, UTC)
        except (ValueError, OverflowError, OSError):
            return None
    if not isinstance(value, str) or not value.strip():
        return None
    try:
        return parse(value)
    except InvalidRequest:
        pass
    try:  # without a zone: it says no more, and most programs write UTC
        return datetime.fromisoformat(value.strip()).replace(tzinfo=UTC)
    except ValueError:
        return None


def string(value: object) -> str:
    """Return a text, or an empty one when the value is something else; a lone surrogate becomes U+FFFD."""
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if isinstance(value, str) else ""


def _sequence(value: object) -> Sequence[JSON]:
    return cast("Sequence[JSON]", value) if isinstance(value, list) else ()
