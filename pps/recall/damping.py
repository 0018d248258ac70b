"""Factors on fused scores: freshness, novelty, substance, answers. Each is 1 for what it has nothing to say of."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import timedelta
from statistics import median
from typing import TYPE_CHECKING

from pps.core.time import now
from pps.core.values import AnchorPassage, Turn
from pps.journal.links import FactOutline
from pps.recall.ages import age_d, times_of
from pps.recall.ask import Ask, Candidate, Item
from pps.recall.query import is_question

if TYPE_CHECKING:
    from pps.recall.profiles import Substance

_SENTENCES = re.compile(r"[^.!?…。！？\n]+[.!?…。！？]*")
_WORDS = re.compile(r"\w+")


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


def substance(items: Mapping[str, Candidate], shape: Substance) -> dict[str, float]:
    """Return id → ``floor + (1 - floor) * (1 - e ** (-words / shape.words))`` for turns.

    ``words`` counts what a turn states: the words of its sentences that are not questions. "Wow! And
    then?" answers nothing, whatever it shares with the query.
    """
    return {
        one: shape.floor + (1 - shape.floor) * -math.expm1(-stated_words(item.content) / shape.words)
        for one, item in items.items()
        if isinstance(item, Turn)
    }


async def answers(ask: Ask, items: Mapping[str, Candidate], factor: float) -> dict[str, float]:
    """Return id → ``factor`` for turns after a question in their session: what was asked is asked again.

    The one factor that lifts; it leaves the rest as it is.
    """
    turns = [one for one, item in items.items() if isinstance(item, Turn)]
    before = await ask.sources.journal.said_before(turns) if turns else {}
    return {one: factor for one, ending in before.items() if is_question(ending)}


def stated_words(text: str) -> float:
    """Return the number of words outside questions; two characters without spaces between count as one."""
    stated = [word for one in _SENTENCES.findall(text) if not is_question(one) for word in _WORDS.findall(one)]
    return sum(_weight(word) for word in stated)


def _weight(word: str) -> float:
    # Han, kana and the like: `\w+` takes a whole clause for one word.
    return len(word) / 2 if word[0] >= "\u0e00" else 1.0
