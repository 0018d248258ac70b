"""Ranking one channel: lists joined by ranks or signals, scores boosted, and what stands out chosen among them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence, Set
from datetime import datetime, timedelta
from operator import itemgetter
from statistics import median
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from pps.core.text import fold, is_question, sentences_of
from pps.core.time import now
from pps.core.values import Episode, Fact, Turn, speaker_of
from pps.journal.links import FactOutline
from pps.models.protocols import Vector
from pps.recall.hits import age_d, shown_id, times_of
from pps.recall.query import Ask, Candidate, Item, Scored
from pps.recall.query_words import STOP_WORDS, grams

if TYPE_CHECKING:
    from pps.recall.profiles import ChannelProfile, Substance

T = TypeVar("T")

_WORDS = re.compile(r"\w+")
_SPOKEN = re.compile(r"\w+(?:'\w+)*")
_ASKED = 10
_READ = 1_000
"""Characters of a turn that its factors are read from: by then it has told enough."""
_STANDING = re.compile(
    r"(?:^|[.!?\n:]\s+)(?:please )?(?:always|never|from now on|whenever|do not ever|don't ever)\b(?:\W+\w+){3}",
    re.I,
)
_HOW_TO_ACT = re.compile(
    r"\b(?:should|shall|may|can|could|would|must|do|help|let) (?:i|we|me|you)\b"
    r"|\bhow (?:to|should|must|fast)\b|\b(?:what|which) .*\b(?:should|must)\b"
    r"|^(?:write|draft|plan|make|show|give|help|book|explain)\b",
    re.I,
)
NEAREST = 3
"""How many of the first by meaning are not damped for being short."""
_STATES = 2
"""Words of its own that a turn has to have to say something."""
STRONG, WEAK = 0.8, 0.4
"""Cosines of meaning from which other perspectives only refine it, and below which they broaden it."""
_REFINES, _BROADENS = 0.5, 2.0
_MATCHED = 3.0
"""BM25 for each word of a query from which on a match is taken to have all of them."""
_SHARED, _LEAST_SHARED = 0.4, 3
"""Share of their words that two turns have in common, and words at least, that state one thing."""
WEAK_BM25 = 8.0
"""A best match below this BM25 score does not get the full signal of 1: one weak hit is not a good one."""


def fused(
    lists: Mapping[str, Sequence[Scored]], weights: Mapping[str, float], *, k: float
) -> dict[str, float]:
    """Return id → score, best first: the sum over lists of ``weight / (k + rank)``, ranks from 1.

    Equal values of a list share the mean of their ranks, so that equal memories give equal orders whatever
    their ids are; what is equal in the end keeps the order of the lists.

    Source: reciprocal rank fusion, Cormack, Clarke and Büttcher 2009.
    """
    scores: dict[str, float] = {}
    for name, entries in lists.items():
        start, size, weight = 0, len(entries), weights[name]
        while start < size:
            end, value = start + 1, entries[start].score
            while end < size and entries[end].score == value:
                end += 1
            share = weight / (k + (start + 1 + end) / 2)  # the mean of the ranks start + 1 to end
            for one in entries[start:end]:
                scores[one.id] = scores.get(one.id, 0.0) + share
            start = end
    return _best_first(scores)


def led(
    lists: Mapping[str, Sequence[Scored]], weights: Mapping[str, float], words: int
) -> Mapping[str, float]:
    """Return the weights by how sure meaning is: above .8 the others count half and refine, below .4 twice and broaden.

    Full text counts less the fewer of the query's ``words`` its best match seems to have: one word in six says little.

    Source: acceptance row S4-17, the rule ARCH-17.
    """
    best = max(
        (
            entries[0].score
            for name, entries in lists.items()
            if name.startswith("dense") and entries
        ),
        default=0.0,
    )
    factor = _REFINES if best > STRONG else _BROADENS if best < WEAK else 1.0
    found = {
        name: weight if name.startswith("dense") else factor * weight
        for name, weight in weights.items()
    }
    for name, entries in lists.items():
        if name.startswith("bm25") and entries:
            found[name] *= min(1.0, entries[0].score / (_MATCHED * max(1, words)))
    return found


def unanimous(lists: Iterable[Sequence[Scored]], among: Container[str]) -> set[str]:
    """Return the ids that come first in every list that has any of ``among``; equals of a list share its first rank."""
    found: set[str] | None = None
    for entries in lists:
        if known := [one for one in entries if one.id in among]:
            firsts = {one.id for one in known if one.score == known[0].score}
            found = firsts if found is None else found & firsts
    return found or set()


def summed(lists: Mapping[str, Sequence[Scored]], weights: Mapping[str, float]) -> dict[str, float]:
    """Return id → weighted mean of its signals in [0, 1], best first.

    Weights are renormalised over the lists that say anything at all; an id that a list leaves out has
    signal 0 there.
    """
    applying = {name: entries for name, entries in lists.items() if entries and weights[name] > 0}
    total = sum(weights[name] for name in applying) or 1.0
    scores = dict.fromkeys((one.id for entries in lists.values() for one in entries), 0.0)
    for name, entries in applying.items():
        for one in entries:
            scores[one.id] = scores.get(one.id, 0.0) + weights[name] / total * one.signal
    return _best_first(scores)


def _best_first(scores: Mapping[str, float]) -> dict[str, float]:
    return dict(sorted(scores.items(), key=itemgetter(1), reverse=True))


def best_of(lists: Sequence[Sequence[Scored]], depth: int) -> list[Scored]:
    """Return the best ``depth`` of lists that share a unit; an id keeps its best score."""
    best: dict[str, Scored] = {}
    for one in (scored for entries in lists for scored in entries):
        if one.id not in best or one.score > best[one.id].score:
            best[one.id] = one
    return sorted(best.values(), key=lambda one: -one.score)[:depth]


def textual(entries: Sequence[Scored]) -> list[Scored]:
    """Return BM25 entries with their signal: the score over the best one, or over ``WEAK_BM25`` if that is more."""
    most = max((one.score for one in entries), default=0.0)
    return [Scored(one.id, one.score, one.score / max(most, WEAK_BM25)) for one in entries]


def in_order(ids: Sequence[str], depth: int) -> list[Scored]:
    """Return the first ``depth`` distinct ids as a list whose order is all that is known of it."""
    unique = list(dict.fromkeys(ids))[:depth]
    return [Scored(one, -float(rank), 1 / (1 + rank)) for rank, one in enumerate(unique)]


async def freshness(ask: Ask, items: Mapping[str, Candidate]) -> dict[str, float]:
    """Return id → ``(1 - w) + w * 2 ** (-age / half_life)`` for facts; undated ones get the dated ones' median.

    Source: acceptance row S2-07; a true half-life.
    """
    facts = {one: item for one, item in items.items() if isinstance(item, FactOutline)}
    times = await times_of(ask, facts)
    tuning = ask.sources.tuning
    weight, half_life = tuning.freshness_weight, tuning.freshness_half_life_d
    factors = {
        one: 1 - weight + weight * 2 ** (-age_d(ask, at) / half_life) for one, at in times.items()
    }
    usual = median(factors.values()) if factors else 1.0
    return {one: factors.get(one, usual) for one in facts}


async def novelty(ask: Ask, items: Mapping[str, Candidate]) -> dict[str, float]:
    """Return id → ``(1 - w) ** times`` for what the session was shown within the window."""
    tuning = ask.sources.tuning
    if not ask.request.session or not tuning.novelty_weight or not tuning.novelty_window_s:
        return {}
    session, since = ask.request.session, now() - timedelta(seconds=tuning.novelty_window_s)
    shown = await ask.once("shown", lambda: ask.sources.journal.given.times_shown(session, since))
    times = {one: shown.get(shown_id(one, item), 0) for one, item in items.items()}
    return {one: (1 - tuning.novelty_weight) ** count for one, count in times.items() if count}


def of_turns(
    query: str,
    items: Mapping[str, Candidate],
    profile: ChannelProfile,
    nearest: Container[str] = (),
) -> dict[str, float]:
    """Return id → what a turn's score is multiplied by, from its words and who said it: see ``ChannelProfile``.

    ``nearest`` are the first by meaning. A short note among them is the answer more often than a long text that shares
    chance words: substance damps none of them that says something.
    """
    asks_how = _HOW_TO_ACT.search(query) is not None
    words = frozenset(_WORDS.findall(fold(query))) - STOP_WORDS
    found: dict[str, float] = {}
    for one, item in items.items():
        if isinstance(item, Turn):
            found[one] = 1.0
            if profile.substance and not (one in nearest and states(item)):
                found[one] = substance(item, profile.substance)
            replies = (
                item.kind == "turn" and item.role != "user"
            )  # an event, a note or a summary is nobody's reply
            found[one] *= profile.assistant if replies else 1.0
            found[one] *= (
                profile.speaker if words.intersection(fold(item.actor).split()[:1]) else 1.0
            )
            found[one] *= (
                profile.standing if asks_how and _STANDING.search(item.content[:_READ]) else 1.0
            )
    return found


def states(turn: Turn) -> bool:
    """Tell whether a turn says something and asks nothing: "shoe size 38", not "Really?" nor "What size is it?"."""
    sentences = sentences_of(turn.content[:_READ].removeprefix(f"{turn.actor}:"))
    if any(is_question(sentence) for sentence in sentences if sentence.strip()):
        return False
    return stated_words(turn) >= _STATES


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
    return sum(
        len(word) / 2 if word[0] >= "\u0e00" else word.lower() not in STOP_WORDS for word in told
    )


def one_of_each_pair(
    order: Sequence[str], items: Mapping[str, Candidate]
) -> tuple[list[str], list[str]]:
    """Return the best fact of each unordered (subject, object) pair, and those that were passed over."""

    def pair(one: str) -> frozenset[str]:
        item = items[one]
        return (
            frozenset((item.subject, item.object))
            if isinstance(item, FactOutline)
            else frozenset((one,))
        )

    return _one_of_each(order, pair, set())


def one_of_each_text(
    order: Sequence[str], items: Mapping[str, Candidate], query: str
) -> tuple[list[str], list[str]]:
    """Return the best turn of those with the same words, and those that were passed over.

    A turn that only asks the query's question once more tells nothing: it is passed over too.
    """

    def text(one: str) -> str:
        item = items[one]
        return fold(item.content) if isinstance(item, (Episode, Turn)) else one

    return _one_of_each(order, text, {fold(query)} if is_question(query) else set())


def _one_of_each(
    order: Sequence[str], key: Callable[[str], T], seen: set[T]
) -> tuple[list[str], list[str]]:
    kept: list[str] = []
    passed: list[str] = []
    for one in order:
        value = key(one)
        (passed if value in seen else kept).append(one)
        seen.add(value)
    return kept, passed


def latest_first(
    order: Sequence[str], items: Mapping[str, Item], times: Mapping[str, datetime], wanted: Set[str]
) -> list[str]:
    """Return the order with the latest of several statements of one thing where the first of them was.

    One thing: facts of one subject and relation, or turns of one speaker that share most of their words. What has a
    word of the query that the later one lacks was asked for itself and keeps its place.

    ``times`` are when each was said; what has none moves nothing and is not moved. ``wanted`` are the folded words
    that the query is about.
    """
    left, found = list(order), list[str]()
    said = {one: _beginnings(grams(_words_of(items[one]))) for one in order}
    asked = _beginnings(wanted)
    while left:
        first = left[0]
        later = [
            one
            for one in left[1:]
            if first in times and times.get(one, times[first]) > times[first]
            if _one_thing(items[first], items[one]) and said[first] & asked <= said[one]
        ]
        left.remove(best := max(later, key=times.__getitem__, default=first))
        found.append(best)
    return found


def _one_thing(one: Item, other: Item) -> bool:
    if isinstance(one, Fact) and isinstance(other, Fact):
        return (one.subject, one.relation) == (other.subject, other.relation)
    if not (isinstance(one, Turn) and isinstance(other, Turn)) or speaker_of(one) != speaker_of(
        other
    ):
        return False
    mine, theirs = grams(_words_of(one)), grams(_words_of(other))
    both = len(mine & theirs)
    return both >= _LEAST_SHARED and both >= _SHARED * len(mine | theirs)


def _words_of(item: Item) -> str:
    if isinstance(item, Turn):
        return item.content[:_READ].removeprefix(f"{item.actor}:")
    return item.text if isinstance(item, Fact) else ""


def _beginnings(words: Set[str]) -> set[str]:
    """Return the first five letters of words: "lives" and "living" are one."""
    return {word[:5] for word in words}


def diverse(
    order: Sequence[str],
    query: Vector,
    vectors: Mapping[str, Vector],
    *,
    balance: float,
    limit: int,
) -> list[str]:
    """Return at most ``limit`` ids by maximal marginal relevance; those without a vector follow in order.

    Each step takes the id with the greatest ``balance * sim(query) - (1 - balance) * max sim(taken)``.

    Source: Carbonell and Goldstein 1998.
    """
    ids = [one for one in order if one in vectors]
    if not ids:
        return list(order[:limit])
    matrix = np.stack([vectors[one] for one in ids])
    relevance = matrix @ query
    nearest = np.full(len(ids), -1.0, dtype=np.float32)
    taken: list[int] = []
    while len(taken) < min(limit, len(ids)):
        worth = balance * relevance - (1 - balance) * (nearest if taken else np.zeros_like(nearest))
        worth[taken] = -np.inf
        taken.append(int(np.argmax(worth)))
        nearest = np.maximum(nearest, matrix @ matrix[taken[-1]])
    rest = [one for one in order if one not in vectors]
    return [*(ids[at] for at in taken), *rest][:limit]
