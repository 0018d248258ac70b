"""Factors on fused scores: freshness, novelty, and those of turns. Each is 1 for what it has nothing to say of."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import timedelta
from statistics import median
from typing import TYPE_CHECKING

from pps.core.text import fold, is_question, sentences_of
from pps.core.time import now
from pps.core.values import AnchorPassage, Turn
from pps.journal.links import FactOutline
from pps.recall.ages import age_d, times_of
from pps.recall.query import Ask, Candidate, Item
from pps.recall.question import IDLE

if TYPE_CHECKING:
    from pps.recall.profiles import ChannelProfile, Substance

_WORDS = re.compile(r"\w+")
_SPOKEN = re.compile(r"\w+(?:'\w+)*")
_ASKED = 10
_READ = 1_000
"""Characters of a turn that its factors are read from: by then it has told enough."""
_STANDING = re.compile(
    r"(?:^|[.!?\n:]\s+)(?:please )?(?:always|never|from now on|whenever|do not ever|don't ever)\b(?:\W+\w+){3}", re.I
)
_HOW_TO_ACT = re.compile(
    r"\b(?:should|shall|may|can|could|would|must|do|help|let) (?:i|we|me|you)\b"
    r"|\bhow (?:to|should|must|fast)\b|\b(?:what|which) .*\b(?:should|must)\b"
    r"|^(?:write|draft|plan|make|show|give|help|book|explain)\b",
    re.I,
)


async def freshness(ask: Ask, items: Mapping[str, Candidate]) -> dict[str, float]:
    """Return id → ``(1 - w) + w * 2 ** (-age / half_life)`` for facts; undated ones get the dated ones' median.

    Source: acceptance row S2-07; a true half-life.
    """
    facts = {one: item for one, item in items.items() if isinstance(item, FactOutline)}
    times = await times_of(ask, facts)
    tuning = ask.sources.tuning
    weight, half_life = tuning.freshness_weight, tuning.freshness_half_life_d
    factors = {one: 1 - weight + weight * 2 ** (-age_d(ask, at) / half_life) for one, at in times.items()}
    usual = median(factors.values()) if factors else 1.0
    return {one: factors.get(one, usual) for one in facts}


async def novelty(ask: Ask, items: Mapping[str, Candidate]) -> dict[str, float]:
    """Return id → ``(1 - w) ** times`` for what the session was shown within the window."""
    tuning = ask.sources.tuning
    if not ask.request.session or not tuning.novelty_weight or not tuning.novelty_window_s:
        return {}
    shown = await ask.once("shown", lambda: _shown(ask, ask.request.session or ""))
    times = {one: shown.get(shown_id(one, item), 0) for one, item in items.items()}
    return {one: (1 - tuning.novelty_weight) ** count for one, count in times.items() if count}


async def _shown(ask: Ask, session: str) -> dict[str, int]:
    since = now() - timedelta(seconds=ask.sources.tuning.novelty_window_s)
    return await ask.sources.journal.shown(session, since)


def shown_id(one: str, item: Item | Candidate) -> str:
    """Return the id under which a hit is shown: an anchor's passage has one of its own."""
    return f"{item.slug}#{item.part}" if isinstance(item, AnchorPassage) else one


def of_turns(query: str, items: Mapping[str, Candidate], profile: ChannelProfile) -> dict[str, float]:
    """Return id → what a turn's score is multiplied by, from its words and who said it: see ``ChannelProfile``."""
    asks_how = _HOW_TO_ACT.search(query) is not None
    words = frozenset(_WORDS.findall(fold(query))) - IDLE
    found: dict[str, float] = {}
    for one, item in items.items():
        if isinstance(item, Turn):
            found[one] = substance(item, profile.substance) if profile.substance else 1.0
            replies = item.kind == "turn" and item.role != "user"  # an event, a note or a summary is nobody's reply
            found[one] *= profile.assistant if replies else 1.0
            found[one] *= profile.speaker if words.intersection(fold(item.actor).split()[:1]) else 1.0
            found[one] *= profile.standing if asks_how and _STANDING.search(item.content[:_READ]) else 1.0
    return found


def substance(turn: Turn, shape: Substance) -> float:
    """Return ``floor + (1 - floor) * (1 - e ** (-words / shape.words))``: "Wow! And then?" tells next to nothing."""
    return shape.floor + (1 - shape.floor) * -math.expm1(-stated_words(turn) / shape.words)


def stated_words(turn: Turn) -> float:
    """Return the number of words that tell something; two characters without spaces between count as one.

    A question tells only by its words beyond ten: "I have the report of May here, which ... could you check it?"
    """
    told: list[str] = []
    for one in sentences_of(turn.content[:_READ].removeprefix(f"{turn.actor}:")):
        words = _SPOKEN.findall(one.replace("’", "'"))
        told += words[_ASKED:] if is_question(one) else words
    return sum(len(word) / 2 if word[0] >= "\u0e00" else word.lower() not in IDLE for word in told)
