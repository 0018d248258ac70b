"""The steps that a text goes through before it is written, each a pure function of the text: any script is safe.

Normalising and hashing are in ``core.text``, redaction in ``redact``; deduplication is decided by the journal,
inside the write transaction.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from pps.core.bounds import in_tag, is_tag, tag_of
from pps.core.text import fold

MAX_TITLE = 80
MAX_SUMMARY = 200

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_LINK = re.compile(r"\[\[([^\[\]\n|]{1,200})(?:\|[^\[\]\n]*)?\]\]")
_BEFORE_TAG = re.compile(r"[\w#/&]")
_SPACE = re.compile(r"\s+")
# A full stop of a script with spaces ends a sentence before white space; one of a script without, at once.
_END = re.compile(r"[.!?…؟।۔։]+[\"'”’»)\]]*(?=\s|$)|[。！？]+[」』”’）]*|\n\s*\n")
_ABBREVIATED = re.compile(
    r"(?:^|\W)(?:[^\W\d_]|mr|mrs|ms|dr|prof|st|vs|no|etc|e\.g|i\.e|z\.B|ca|bzw|p|pp|fig)\.$", re.IGNORECASE
)
_NUMBERED = re.compile(r"^[ \t]*\d{1,3}\.$", re.MULTILINE)
_AFTER_ORDINAL = ("Jan", "Feb", "Mär", "Apr", "Mai", "Jun", "Jul", "Aug", "Sep", "Okt", "Nov", "Dez")
_KINDS = {"whisper": "voice", "screenpipe": "ambient", "mcp": "agent"}


@dataclass(frozen=True, slots=True)
class Automatic:
    """What is read out of a text without being asked: ``#tags``, and relations by ``[[links]]``."""

    tags: bool = True
    relations: bool = True


def without_code(text: str) -> str:
    """Return a Markdown text with a space for each piece of code."""
    return _CODE.sub(" ", text)


def with_plain_links(text: str) -> str:
    """Return a text with the titles of its ``[[links]]`` alone."""
    return _LINK.sub(r"\1", text)


def classify(source: str, kind: str = "") -> str:
    """Return a record's kind: the one given, else by its source: voice, ambient, agent, or manual."""
    return kind or _KINDS.get(source.strip().lower(), "manual")


def tags_in(text: str) -> tuple[str, ...]:
    """Return the ``#tags`` of a text, lower-case, once each, in order; code is not read."""
    if "#" not in text:
        return ()
    prose = _CODE.sub(" ", text)
    found: dict[str, None] = {}
    at = prose.find("#")
    while at >= 0:
        end = at + 1
        while end < len(prose) and in_tag(prose[end]):
            end += 1
        tag = tag_of(prose[at + 1 : end])
        if is_tag(tag) and not (at and _BEFORE_TAG.match(prose[at - 1])):
            found[tag] = None
        at = prose.find("#", end)
    return tuple(found)


def merged_tags(given: tuple[str, ...], found: tuple[str, ...], most: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the given tags with those that were found, at most ``most`` of them, and what there was no room for."""
    merged = tuple(dict.fromkeys((*given, *found)))
    return merged[:most], merged[most:]


def links_in(text: str) -> tuple[str, ...]:
    """Return the titles of ``[[links]]``, in order; equal titles (case and space folded) once; code is not read."""
    if "[[" not in text:
        return ()
    found: dict[str, str] = {}
    for match in _LINK.findall(_CODE.sub(" ", text)):
        title = " ".join(match.split())
        found.setdefault(fold(title), title)
    found.pop("", None)
    return tuple(found.values())


def summary_of(content: str) -> str:
    """Return the first sentence if it has at most 200 characters, else the first 200 and ``…``."""
    text = content.strip()
    sentence = _SPACE.sub(" ", text[: _sentence_end(text)]).strip()
    if len(sentence) <= MAX_SUMMARY:
        return sentence
    return _cut(sentence, MAX_SUMMARY).rstrip() + "…"


def title_of(content: str) -> str:
    """Return what a record without a title is called: its first 80 characters, white space folded, any script."""
    text = _SPACE.sub(" ", content[: MAX_TITLE * 8].strip())
    return _cut(text, MAX_TITLE).strip() if len(text) > MAX_TITLE else text


def _sentence_end(text: str) -> int:
    for match in _END.finditer(text):
        before = (text, max(0, match.start() - 8), match.start() + 1)
        if not (_ABBREVIATED.search(*before) or _NUMBERED.search(*before) or _is_ordinal(text, match.start())):
            return match.end()
    return len(text)


def _is_ordinal(text: str, stop: int) -> bool:
    """Tell whether a full stop makes the number before it a third, as in "am 3. Mai"."""
    rest = text[stop + 1 : stop + 8].lstrip(" ")
    return text[stop - 1 : stop].isdigit() and (rest[:1].islower() or rest.startswith(_AFTER_ORDINAL))


def _cut(text: str, size: int) -> str:
    """Return at most ``size`` characters, without tearing an accent or a joined sign from its letter."""
    end = min(size, len(text))
    while 1 < end < len(text) and (unicodedata.category(text[end])[0] == "M" or text[end - 1] == "\u200d" == text[end]):
        end -= 1
    return text[:end]
