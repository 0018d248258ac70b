"""The results of reading a file for import; how readers make turns, labels and tags of texts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from pps.core.values import RESERVED_KINDS
from pps.ingest.drafts import RememberOptions
from pps.ingest.redact import cut, whole

LONGEST = 60_000
"""Most characters of an imported turn; a longer message becomes several turns, in order."""

_NOT_LABEL = re.compile(r"[^A-Za-z0-9_]+")
_NOT_TAG = re.compile(r"[^\w-]+")


@dataclass(frozen=True, slots=True)
class Item:
    """One message, ready for ``remember``; ``where`` names its file and line or id."""

    content: str
    options: RememberOptions
    where: str

    @property
    def arguments(self) -> tuple[str, RememberOptions]:
        """Content and options, as ``remember`` takes them."""
        return self.content, self.options


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An element that could not be read: it is reported, and the rest goes on."""

    where: str
    why: str


@dataclass(frozen=True, slots=True)
class Passed:
    """An element that is no memory, such as bookkeeping of its program; counted by ``why``."""

    why: str


Read: TypeAlias = Item | Unreadable | Passed


def joined(texts: Iterable[str]) -> str:
    """Return texts as paragraphs of one, without those that are blank."""
    return "\n\n".join(text for text in texts if text.strip())


def pieces(content: str, options: RememberOptions, where: str) -> Iterator[Item | Passed]:
    """Yield a message as one item, or as several if it is longer than a turn, without loss."""
    if not content.strip():
        yield Passed("empty messages")
        return
    if len(content) <= LONGEST:
        yield Item(content, options, where)
        return
    ref = options.get("source_ref", where)
    for number, piece in enumerate(filter(str.strip, cut(content, LONGEST)), 1):
        own = options | RememberOptions(source_ref=short(f"{ref}/{number}"))
        if number > 1:  # its nodes and facts belong to its beginning
            own = own | RememberOptions(nodes=(), facts=())
        yield Item(piece, own, where)


def short(text: str, most: int = 200) -> str:
    """Return a text, or its beginning and a digest of all of it when it is longer than ``most``."""
    text = text.replace("\0", "")
    if len(text) <= most:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
    return f"{text[: whole(text, most - 17)]}~{digest}"


def label(text: str, otherwise: str) -> str:
    """Return the ASCII letters and digits of a text as a relation or kind, else ``otherwise``."""
    name = _NOT_LABEL.sub("_", text).strip("_")
    return name[: whole(name, 64)] if name[:1].isalpha() else otherwise


def kind(text: str, otherwise: str) -> str:
    """Return a node's kind for a text as ``label``; ``otherwise`` also for Graphiti's own kinds."""
    name = label(text, otherwise)
    return otherwise if name in RESERVED_KINDS else name


def tags(texts: Iterable[str]) -> tuple[str, ...]:
    """Return texts as tags (a letter, then letters, digits, ``_`` or ``-``), without duplicates.

    A text that makes no tag is left out.
    """
    distinct: dict[str, None] = {}
    for text in texts:
        tag = _NOT_TAG.sub("-", text.strip().removeprefix("#").lower()).strip("-_0123456789")
        if tag[:1].isalpha():
            distinct[tag[: whole(tag, 64)]] = None
    return tuple(distinct)[:50]
