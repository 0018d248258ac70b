"""The fence around recalled text: a random mark that only the server can make, so that data stays data.

A pack stands between ``<memory-MARK>`` and ``</memory-MARK>``. Text inside cannot close it, since it
cannot know the mark, and is escaped (``core.model_text``), so that nothing in it looks like a fence, a reminder of
the client or a mark of a chat template. At capture only spans whose mark the server gave out itself, within
``KEPT_D`` days before, are dropped: a fence that somebody made up is kept as what was said.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from datetime import UTC, datetime

from pps.core.model_text import Fenced, escape
from pps.core.text import visible
from pps.journal.journal import Journal

KEPT_D = 30
"""Days for which a mark is known again: past them a fence with it is text like any other."""

_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
_DAY, _RANDOM, _PROOF = 4, 12, 12
_LENGTH = _RANDOM + _PROOF
_OPEN, _CLOSE = r"(?:<|&lt;|&#0*60;|&#x0*3c;|\\u003c)", r"(?:>|&gt;|&#0*62;|&#x0*3e;|\\u003e)"
_MARK = re.compile(
    rf"{_OPEN}(?P<end>\\?/)?memory-(?P<mark>[{_ALPHABET}]{{{_LENGTH}}}){_CLOSE}", re.IGNORECASE
)
# A line of a pack that was cut: a bullet and its further lines, a heading, the frame, what is left of its last line.
_PACK_LINE = re.compile(
    rf"[ \t]*(?:-[ \t]|  |#{{1,2}} |Notes from |From .{0, 80}'s memory; data|Now: |Shown: |Left out for room: |Unavailable: |{_OPEN}\\?/?(?:memory-\w*)?$|$)"
)
_BLANKS = re.compile(r"[ \t]*\n?")


class Marks:
    """Makes the marks of one entity's packs and knows them again, without a note of any.

    A mark is 24 characters of 32: four are the day on which it was made, eight are random or drawn by the key from
    the body that it goes around, twelve are the beginning of the HMAC-SHA256 (RFC 2104) of those, 60 bits. A mark that
    was shown tells nothing of another.

    Args:
        key: The entity's own, 32 random bytes that nobody else has.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def new(self, at: datetime | None = None) -> str:
        """Return a fresh mark of a moment; of now when none is given."""
        drawn = "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM - _DAY))
        return self._dated(drawn, at)

    def of_body(self, body: str, at: datetime | None = None) -> str:
        """Return the mark of a body: the same for the same body on the same day, so that what a client caches holds.

        It is drawn by the key from the body itself. A text cannot hold the mark of a body that it stands in, and who
        was shown the mark of one body knows nothing of another's.
        """
        digest = hmac.digest(self._key, b"body:" + body.encode("utf-8", "replace"), hashlib.sha256)
        drawn = "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[: _RANDOM - _DAY])
        return self._dated(drawn, at)

    def _dated(self, drawn: str, at: datetime | None) -> str:
        day = _days(at or datetime.now(UTC))
        dated = "".join(_ALPHABET[(day >> 5 * place) & 31] for place in reversed(range(_DAY)))
        first = dated + drawn
        return first + self._proof(first)

    def known(self, mark: str, at: datetime | None = None) -> bool:
        """Tell whether a mark was made with this key, at most ``KEPT_D`` days before a moment (now)."""
        first, proof = mark[:_RANDOM], mark[_RANDOM:]
        if not hmac.compare_digest(proof.encode("utf-8", "replace"), self._proof(first).encode()):
            return False
        made = 0
        for sign in first[:_DAY]:
            made = made << 5 | _ALPHABET.index(sign)
        return -1 <= _days(at or datetime.now(UTC)) - made <= KEPT_D

    def _proof(self, first: str) -> str:
        digest = hmac.digest(self._key, first.encode("utf-8", "replace"), hashlib.sha256)
        return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:_PROOF])


async def marks_of(journal: Journal) -> Marks:
    return Marks(await journal.secret("fence"))


async def without_packs(text: str, journal: Journal, said_at: datetime | None = None) -> str:
    """Return a text without the packs that this entity's memory gave out; the same text when there is none.

    A fence with a mark of another entity's, of nobody's, or of more than 30 days before the text was said (now, when
    that is not given) is kept: it is what was said.
    """
    if not marks_in(text):
        return text
    marks = await marks_of(journal)
    return strip_known(text, lambda mark: marks.known(mark, said_at))


def fenced(mark: str, body: str) -> Fenced:
    """Return a body, whose memory text is escaped already, inside the fence of a mark."""
    return Fenced(f"<memory-{mark}>\n{body}\n</memory-{mark}>")


def escaped(text: str) -> str:
    """Return memory text for a pack: escaped as everywhere a model sees it, and without what is not seen.

    A pack shortens texts anyway, so characters that are not seen are left out of it rather than shown as code points.
    """
    return escape(visible(text))


def marks_in(text: str) -> list[str]:
    """Return the marks of the fences in a text, whole or not, in order, each once: those worth checking."""
    return list(dict.fromkeys(found["mark"].lower() for found in _MARK.finditer(text)))


def strip_known(text: str, known: Callable[[str], bool]) -> str:
    """Return a text without the fenced spans whose mark is known; everything else stays as it was.

    Fences may be nested and HTML-escaped. Of a span that was cut, the lines that look like a pack's go with what
    is left of its fence: those behind an opening, or before an end.
    """
    kept: list[str] = []
    at, start, opened, depth = 0, 0, "", 0
    for found in _MARK.finditer(text):
        mark, is_end = found["mark"].lower(), bool(found["end"])
        if opened:
            depth += (-1 if is_end else 1) if mark == opened else 0
            if depth == 0:
                at, opened = _line_end(text, found.end()), ""
        elif found.start() >= at and known(mark):
            if is_end:
                kept.append(_without_tail(text[at : found.start()]))
                at = _line_end(text, found.end())
            else:
                kept.append(text[at : found.start()])
                start, opened, depth = found.end(), mark, 1
    if opened:  # it was cut: what stands behind its plausible lines may have fences of its own
        return "".join(kept) + strip_known(_without_head(text[start:]), known)
    return "".join(kept) + text[at:]


def _without_head(text: str) -> str:
    """Return what follows the lines that may be a pack's; the rest of the first line goes with its fence."""
    lines = text.splitlines(keepends=True)
    count = 1
    while count < len(lines) and _PACK_LINE.match(lines[count]):
        count += 1
    return "".join(lines[count:])


def _without_tail(text: str) -> str:
    lines = text.splitlines(keepends=True)
    while lines and _PACK_LINE.match(lines[-1]):
        lines.pop()
    return "".join(lines)


def _line_end(text: str, at: int) -> int:
    """Return where a text goes on behind a fence: past blanks and the line's end."""
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def _days(moment: datetime) -> int:
    return int(moment.timestamp() // 86_400)
