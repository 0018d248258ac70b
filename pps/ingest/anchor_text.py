"""The text of an anchor's file: a slug for its name, and Markdown with a little front matter."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pps.core.errors import InvalidRequest
from pps.core.text import fold, normalise
from pps.ingest.redact import whole

SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,79}")
_LONGEST = 80
_ROOM_FOR_SUFFIX = 6
_NOT_SLUG = re.compile(r"[^a-z0-9]+")
_FIELD = re.compile(r"(title|tags|source)\s*:\s*(.*)")
_ITEM = re.compile(r"\s*-\s+(.+)")
_HEADING = re.compile(r"#{1,6}\s+(.+?)\s*#*\s*")
_FRONT = re.compile(r"\s*$|\s+\S|#|- |[\w-]+\s*:(\s|$)")
_FENCE = "---"


@dataclass(frozen=True, slots=True)
class AnchorText:
    """An anchor as its file holds it.

    Attributes:
        title: From the front matter, else the first heading, else the slug.
        body: Markdown after the front matter, without blank lines at its ends.
        source: Where it was imported from: a path relative to the imported folder; else empty.
        others: Lines of the front matter that PPS does not read; they are kept.
    """

    title: str
    body: str
    tags: tuple[str, ...] = ()
    source: str = ""
    others: tuple[str, ...] = ()


def check_slug(slug: str) -> str:
    """Return a slug unchanged; raise InvalidRequest for anything else, a path above all."""
    if not SLUG.fullmatch(slug):
        raise InvalidRequest("slug", "must be 1 to 80 of a-z, 0-9 and '-', not '-' first")
    return slug


def slug_of(title: str) -> str:
    """Return a slug for a title in any script; the same title always gives the same one.

    Accents are dropped. Where a script has no such letters, six digits of the title's digest stand
    for what was lost, so that two titles stay apart.
    """
    folded = unicodedata.normalize("NFKD", fold(title))
    plain = "".join(letter for letter in folded if not unicodedata.combining(letter))
    words = _NOT_SLUG.sub("-", plain).strip("-")[: _LONGEST - _ROOM_FOR_SUFFIX - 7].strip("-")
    if not any(letter.isalnum() and not letter.isascii() for letter in plain) and words:
        return words
    digest = hashlib.sha256(fold(title).encode()).hexdigest()[:6]
    return f"{words or 'anchor'}-{digest}"


def free_slug(wanted: str, taken: set[str]) -> str:
    """Return the slug, or the first of ``slug-2``, ``slug-3``, … that is free."""
    if wanted not in taken:
        return wanted
    number = 2
    while f"{wanted}-{number}" in taken:
        number += 1
    return f"{wanted}-{number}"


def parse(text: str, slug: str) -> AnchorText:
    """Read a file's text; nothing in it is an error."""
    lines = normalise(text.removeprefix("\ufeff")).split("\n")
    front, body = _divided(lines)
    fields: dict[str, list[str]] = {}
    others: list[str] = []
    current: list[str] | None = None
    for line in front:
        if found := _FIELD.fullmatch(line):
            current = fields.setdefault(found[1], [])
            current += _values(found[2])
        elif current is not None and (item := _ITEM.fullmatch(line)):
            current += _values(item[1])
        else:
            current = None
            others.append(line)
    tags = tuple(dict.fromkeys(tag.removeprefix("#").lower() for tag in fields.get("tags", []) if tag))
    title = " ".join(", ".join(fields.get("title", [])).split()) or _heading(body) or slug
    return AnchorText(title[: whole(title, 200)], body, tags, ", ".join(fields.get("source", [])), tuple(others))


def compose(anchor: AnchorText) -> str:
    """Return the file's text; ``parse`` gives the same value back."""
    front = [f"title: {_quoted(anchor.title)}"]
    if anchor.tags:
        front.append(f"tags: [{', '.join(_quoted(tag) for tag in anchor.tags)}]")
    if anchor.source:
        front.append(f"source: {_quoted(anchor.source)}")
    return "\n".join([_FENCE, *front, *anchor.others, _FENCE, "", anchor.body, ""])


def tidy(text: str) -> str:
    """Return a body as it is kept: NFC, without blank lines at its ends."""
    return normalise(text).strip("\n").rstrip()


def _divided(lines: Sequence[str]) -> tuple[Sequence[str], str]:
    if lines and lines[0].rstrip() == _FENCE:
        end = next((at for at in range(1, len(lines)) if lines[at].rstrip() == _FENCE), 0)
        if all(_FRONT.match(line) for line in lines[1:end]) and end > 0:  # else the first line is a rule
            return lines[1:end], tidy("\n".join(lines[end + 1 :]))
    return (), tidy("\n".join(lines))


def _heading(body: str) -> str:
    first = next((line for line in body.split("\n") if line.strip()), "")
    found = _HEADING.fullmatch(first)
    return found[1] if found else ""


def _values(text: str) -> Iterator[str]:
    """Yield the values of ``one``, ``"one"``, ``[one, "two"]``; the YAML that note programs write."""
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        for part in re.findall(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'|[^,\[\]]+', text[1:-1]):
            if part.strip():
                yield _unquoted(part.strip())
    elif text:
        yield _unquoted(text)


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] == '"':
        try:
            return str(json.loads(text))
        except ValueError:
            return text[1:-1]
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == "'" else text


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
