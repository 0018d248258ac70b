"""What reading a file for import yields: a message, something passed over on purpose, or something unreadable."""

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
    from pps.ingest.importing.sources import Source

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
        given: RememberOptions = {**options, "source_ref": short(f"{ref}/{number}", 200)}
        if number > 1:  # what was read in it belongs to its beginning
            given = {**given, "nodes": (), "facts": ()}
        yield Item(piece, given, where)


def short(text: str, most: int) -> str:
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


def tag(text: str) -> str:
    """Return a text as a tag (a letter, then letters, digits, ``_`` or ``-``), or an empty string."""
    found = _NOT_TAG.sub("-", text.strip().removeprefix("#").lower()).strip("-_0123456789")
    return found[: whole(found, 64)] if found[:1].isalpha() else ""


def tags(texts: Sequence[str]) -> tuple[str, ...]:
    """Return texts as tags, once each; what cannot be one is left out."""
    return tuple(dict.fromkeys(one for one in map(tag, texts) if one))[:50]


def moment(value: JSON) -> datetime | None:
    """Return the instant of an ISO 8601 text or of Unix seconds; None when it is neither."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
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


def mapping(value: object) -> Mapping[str, JSON]:
    """Return a JSON object, or an empty one when the value is something else."""
    return cast("Mapping[str, JSON]", value) if isinstance(value, dict) else {}


def sequence(value: object) -> Sequence[JSON]:
    """Return a JSON list, or an empty one when the value is something else."""
    return cast("Sequence[JSON]", value) if isinstance(value, list) else ()


def string(value: object) -> str:
    """Return a text, or an empty one when the value is something else; a lone surrogate becomes U+FFFD."""
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if isinstance(value, str) else ""
