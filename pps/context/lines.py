"""What each section of a pack says of an item: one bullet, no longer than a bound."""

from __future__ import annotations

from datetime import datetime

from pps.context.fence import escaped
from pps.core.recalled import Hit
from pps.core.spoken import spoken
from pps.core.values import AnchorPassage, Community, Episode, Fact, Node, Turn

LONGEST = 600
"""Characters of one line; longer ones are cut and end with ``…``."""
LONGEST_PASSAGE = 1_000
"""Characters of an anchor's passage: it is shown whole."""


def line_of(hit: Hit) -> str:
    """Return the line of a hit."""
    item = hit.item
    if isinstance(item, Fact):
        return bullet(f"{item.text}{_span(item)}")
    if isinstance(item, Node):
        kind = f" ({item.kind})" if item.kind not in ("", "Thing") else ""
        said = hit.passage or item.summary
        return bullet(f"{item.name}{kind}{': ' if said else ''}{said}")
    if isinstance(item, AnchorPassage):
        return bullet(f"[{item.title}] {item.text}", LONGEST_PASSAGE)
    if isinstance(item, Community):
        return bullet(hit.text)
    if isinstance(item, Episode):
        return bullet(f"{_day(item.valid_at)} {hit.passage or item.content}")
    return turn_line(item, hit.passage)


def turn_line(turn: Turn, passage: str = "") -> str:
    """Return the line of a turn: when, who, what; the passage in place of a long text."""
    return bullet(f"{_minute(turn.occurred_at)} {passage or spoken(turn)}")


def bullet(text: str, longest: int = LONGEST) -> str:
    """Return a text as one Markdown bullet; further lines of it are indented, so that none begins a section."""
    text = escaped(text.strip())
    if len(text) > longest:
        text = text[: longest - 1].rstrip() + "…"
    return "- " + "\n  ".join(text.splitlines())


def _span(fact: Fact) -> str:
    if fact.valid_at and fact.invalid_at:
        return f" ({_day(fact.valid_at)} to {_day(fact.invalid_at)})"
    if fact.invalid_at:
        return f" (until {_day(fact.invalid_at)})"
    return f" (since {_day(fact.valid_at)})" if fact.valid_at else ""


def _day(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d")


def _minute(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M")
