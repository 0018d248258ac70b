"""What each section of a pack says of an item.

One bullet with date, speaker and a short id, no longer than a bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from pps.context.fence import escaped
from pps.core.ids import short_id
from pps.core.recalled import Hit, Successor
from pps.core.text import fold, one_line
from pps.core.time import shown_day
from pps.core.values import AnchorPassage, Episode, Fact, Node, Turn, spoken

LONGEST = 600
"""Characters of one line; longer ones are cut and end with ``…``."""
LONGEST_PASSAGE = 1_000
"""Characters of an anchor's passage: it is shown whole."""
LONGEST_MARK = 240
"""Characters of what took the place of a line."""
_SAME_SHARE = 0.6
"""Least length of the text that the other holds, as a share of the other's."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a pack as it is shown, and its folded words, by which repetitions are found."""

    text: str
    words: str

    def says_the_same(self, other: Line) -> bool:
        """Tell whether one line's folded text is in the other's and nearly as long."""
        short, long = sorted((self.words, other.words), key=len)
        return bool(short) and short in long and len(short) >= _SAME_SHARE * len(long)


def trusted(line: Line, trust: str) -> Line:
    """Return a line with the trust in its sources, if known, behind its id."""
    if not trust or not line.text.endswith("]"):
        return line
    return Line(f"{line.text[:-1]}, {trust}]", line.words)


def marked(line: Line, successor: Successor | None, zone: tzinfo = UTC) -> Line:
    """Return a line with its successor, if any, before its id."""
    if successor is None:
        return line
    mark = escaped(one_line(successor.mark(zone), LONGEST_MARK))
    text, bracket, id_ = line.text.rpartition(" [")
    return Line(f"{text} ({mark}){bracket}{id_}", line.words)


def line_of(hit: Hit, zone: tzinfo = UTC) -> Line:
    """Return the line of a hit, with days of a zone.

    One that is superseded says what took its place.
    """
    return marked(_line_of(hit, zone), hit.superseded_by, zone)


def _line_of(hit: Hit, zone: tzinfo) -> Line:
    item = hit.item
    if isinstance(item, Fact):
        return Line(
            bullet(f"{item.text}{span(item.valid_at, item.invalid_at, zone)}", item.uuid),
            _folded(item.text),
        )
    if isinstance(item, Node):
        kind = f" ({item.kind})" if item.kind not in ("", "Thing") else ""
        text = hit.passage or item.summary
        colon = ": " if text else ""
        return Line(bullet(f"{item.name}{kind}{colon}{text}", item.uuid), _folded(hit.passage))
    if isinstance(item, AnchorPassage):
        return Line(
            bullet(f"[{item.title}] {item.text}", item.slug, LONGEST_PASSAGE), _folded(item.text)
        )
    if isinstance(item, Episode):
        text = hit.passage or item.content
        return Line(bullet(f"{shown_day(item.valid_at, zone)} {text}", item.uuid), _folded(text))
    return turn_line(item, hit.passage, zone)


def turn_line(turn: Turn, passage: str = "", zone: tzinfo = UTC) -> Line:
    """Return the line of a turn: the day in a zone, who, what.

    The passage, with its speaker, in place of a long text.
    """
    speaker = f"{turn.actor or turn.role}: "
    text = passage or spoken(turn)
    if passage and not passage.startswith(speaker):
        text = f"{speaker}… {passage}"
    words = (passage or turn.content).removeprefix(speaker)
    return Line(bullet(f"{shown_day(turn.occurred_at, zone)} {text}", turn.uuid), _folded(words))


def bullet(text: str, of: str = "", longest: int = LONGEST) -> str:
    """Return a text as one Markdown bullet.

    Further lines of it are indented, so that none begins a section.

    Args:
        text: Any text; escaped here.
        of: The id that it goes by, shown short behind it.
        longest: Most characters of the text.
    """
    text = escaped(text.strip())
    if len(text) > longest:
        text = text[: longest - 1].rstrip() + "…"
    return "- " + "\n  ".join(text.splitlines()) + (f" [{short_id(of)}]" if of else "")


def _folded(text: str) -> str:
    return fold(text).strip(" .!?…\"'")


def span(start: datetime | None, end: datetime | None, zone: tzinfo | None = None) -> str:
    """Return in brackets since when and until when something holds; nothing when neither is known.

    Days are those of a zone; without one, each of the time's own.
    """
    since = _day(start, zone) if start else ""
    until = _day(end, zone) if end else ""
    if since and until:
        return f" ({since} to {until})"
    if since:
        return f" (since {since})"
    return f" (until {until})" if until else ""


def _day(moment: datetime, zone: tzinfo | None) -> str:
    return shown_day(moment, zone or moment.tzinfo or UTC)
