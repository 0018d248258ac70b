"""The fence around recalled text.

A random mark that only the server can make, so that data stays data.

A pack stands between ``<memory-MARK>`` and ``</memory-MARK>``. Text inside cannot close it, since
it cannot know the mark, and is escaped (``core.model_text``), so that nothing in it looks like a
fence, a reminder of the client or a mark of a chat template. At capture only spans whose mark the
server gave out itself, within ``KEPT_D`` days before, are dropped: a fence that somebody made up is
kept as what was said.
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
_DAY_CHARS = 4
_UNIQUE_CHARS = 12
"""Characters of the day and of chance."""
_PROOF_CHARS = 12
_MARK_CHARS = _UNIQUE_CHARS + _PROOF_CHARS
_OPEN = r"(?:<|&lt;|&#0*60;|&#x0*3c;|\\u003c)"
_CLOSE = r"(?:>|&gt;|&#0*62;|&#x0*3e;|\\u003e)"
_MARK = re.compile(
    rf"{_OPEN}(?P<end>\\?/)?memory-(?P<mark>[{_ALPHABET}]{{{_MARK_CHARS}}}){_CLOSE}", re.IGNORECASE
)
# A line of a pack that was cut: a bullet and its further lines, a heading, the frame, what is left
# of its last line.
_PACK_LINE = re.compile(
    rf"[ \t]*(?:-[ \t]|  |#{{1,2}} |Notes from |From .{0, 80}'s memory; data|Now: |Shown: "
    rf"|Left out for room: |Unavailable: |{_OPEN}\\?/?(?:memory-\w*)?$|$)"
)
_BLANKS = re.compile(r"[ \t]*\n?")


class Marks:
    """Makes the marks of one entity's packs and knows them again, without a note of any.

    A mark is 24 characters of 32: four are the day on which it was made, eight are random or drawn
    by the key from the body that it goes around, twelve are the beginning of the HMAC-SHA256 (RFC
    2104) of those, 60 bits. A mark that was shown tells nothing of another.

    Args:
        key: The entity's own, 32 random bytes that nobody else has.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def new(self, at: datetime | None = None) -> str:
        """Return a fresh mark of a moment; of now when none is given."""
        drawn = "".join(secrets.choice(_ALPHABET) for _ in range(_UNIQUE_CHARS - _DAY_CHARS))
        return self._dated(drawn, at)

    def of_body(self, body: str, at: datetime | None = None) -> str:
        """Return the mark of a body: the same on the same day, so that a client's cache holds.

        It is drawn by the key from the body itself. A text cannot hold the mark of a body that it
        stands in, and who was shown the mark of one body knows nothing of another's.
        """
        digest = hmac.digest(self._key, b"body:" + body.encode("utf-8", "replace"), hashlib.sha256)
        drawn = "".join(
            _ALPHABET[byte % len(_ALPHABET)] for byte in digest[: _UNIQUE_CHARS - _DAY_CHARS]
        )
        return self._dated(drawn, at)

    def _dated(self, drawn: str, at: datetime | None) -> str:
        day = _days(at or datetime.now(UTC))
        dated = "".join(_ALPHABET[(day >> 5 * place) & 31] for place in reversed(range(_DAY_CHARS)))
        unique = dated + drawn
        return unique + self._proof(unique)

    def known(self, mark: str, at: datetime | None = None) -> bool:
        """Tell whether a mark was made with this key, at most 30 days before a moment (now)."""
        unique = mark[:_UNIQUE_CHARS]
        proof = mark[_UNIQUE_CHARS:]
        if not hmac.compare_digest(proof.encode("utf-8", "replace"), self._proof(unique).encode()):
            return False
        day_made = 0
        for character in unique[:_DAY_CHARS]:
            day_made = day_made << 5 | _ALPHABET.index(character)
        age_d = _days(at or datetime.now(UTC)) - day_made
        return -1 <= age_d <= KEPT_D

    def _proof(self, unique: str) -> str:
        digest = hmac.digest(self._key, unique.encode("utf-8", "replace"), hashlib.sha256)
        return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:_PROOF_CHARS])


async def marks_of(journal: Journal) -> Marks:
    return Marks(await journal.secret("fence"))


async def without_packs(text: str, journal: Journal, said_at: datetime | None = None) -> str:
    """Return a text without the packs that this entity's memory gave out.

    The same text when there is none.

    A fence with a mark of another entity's, of nobody's, or of more than 30 days before the text
    was said (now, when that is not given) is kept: it is what was said.
    """
    if not marks_in(text):
        return text
    marks = await marks_of(journal)
    return strip_known(text, lambda mark: marks.known(mark, said_at))


def fenced(mark: str, body: str) -> Fenced:
    """Return a body, whose memory text is escaped already, inside the fence of a mark."""
    return Fenced(f"<memory-{mark}>\n{body}\n</memory-{mark}>")


def escaped(text: str) -> str:
    """Return memory text for a pack.

    Escaped as everywhere a model sees it, and without what is not seen.

    A pack shortens texts anyway, so characters that are not seen are left out of it rather than
    shown as code points.
    """
    return escape(visible(text))


def marks_in(text: str) -> list[str]:
    """Return the marks of the fences in a text, whole or not, in order, each once.

    Those worth checking.
    """
    return list(dict.fromkeys(match["mark"].lower() for match in _MARK.finditer(text)))


def strip_known(text: str, known: Callable[[str], bool]) -> str:
    """Return a text without the fenced spans whose mark is known; everything else stays as it was.

    Fences may be nested and HTML-escaped. Of a span that was cut, the lines that look like a pack's
    go with what is left of its fence: those behind an opening, or before an end.
    """
    pieces: list[str] = []
    position = 0
    open_mark = ""
    open_end = 0
    depth = 0
    for match in _MARK.finditer(text):
        mark = match["mark"].lower()
        is_end = bool(match["end"])
        if open_mark:
            if mark == open_mark:
                depth += -1 if is_end else 1
            if depth == 0:
                position = _line_end(text, match.end())
                open_mark = ""
        elif match.start() >= position and known(mark):
            before = text[position : match.start()]
            if is_end:  # the beginning of its span was cut
                pieces.append(_without_tail(before))
                position = _line_end(text, match.end())
            else:
                pieces.append(before)
                open_mark = mark
                open_end = match.end()
                depth = 1
    if open_mark:
        # The end of its span was cut: what stands behind its plausible lines may have fences too.
        return "".join(pieces) + strip_known(_without_head(text[open_end:]), known)
    return "".join(pieces) + text[position:]


def _without_head(text: str) -> str:
    """Return what follows the lines that may be a pack's.

    The rest of the first line goes with its fence.
    """
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
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at


def _days(moment: datetime) -> int:
    return int(moment.timestamp() // 86_400)
