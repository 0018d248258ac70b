"""Ranking of one channel: fusion of lists, boosts of scores, and choice among near duplicates."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence, Set
from datetime import datetime, timedelta
from operator import itemgetter
from statistics import median
from typing import TypeVar

import numpy as np

from pps.core.relation_table import Relations
from pps.core.text import fold, is_question, sentences_of
from pps.core.time import now
from pps.core.values import Episode, Fact, Turn, speaker_of
from pps.journal.links import FactOutline
from pps.models.protocols import Vector
from pps.recall.channel_profile import ChannelProfile, Substance
from pps.recall.hits import age_d, shown_id, times_of
from pps.recall.question import STOP_WORDS, grams
from pps.recall.search import Candidate, Item, Scored, Search

T = TypeVar("T")

NEAREST = 3
"""How many of the first by meaning are not damped for being short."""
STRONG = 0.8
"""Cosine above which other perspectives only refine the order by meaning."""
WEAK = 0.4
"""Cosine below which other perspectives broaden it."""
_REFINING_FACTOR = 0.5
_BROADENING_FACTOR = 2.0
_BM25_A_WORD = 3.0
"""BM25 for each word of a query from which on a match is taken to have all of them."""
WEAK_BM25 = 8.0
"""A best match below this BM25 score does not get the full signal of 1: one weak hit is no good
one."""
_CHARS_READ = 1_000
"""Characters of a turn that its factors are read from: by then it has told enough."""
_MIN_WORDS_OF_STATEMENT = 2
"""Words of its own that a turn needs to say something."""
_WORDS_OF_QUESTION = 10
"""Words of a question that tell nothing; those beyond are counted as told."""
_SAME_SHARE = 0.4
"""Share of their words that two turns have in common if they state one thing."""
_MIN_SAME_WORDS = 3
_COMPARABLE = 0.8
"""Share of an item's score from which a later one may take its place."""
_PREFIX_LETTERS = 5
"""Letters by which words are compared: "garden" and "gardening" are one."""
_SCRIPTS_WITHOUT_SPACES = "\u0e00"
"""The first character of scripts without spaces; two of their characters count as one word."""
_WORDS = re.compile(r"\w+")
_WORDS_WITH_APOSTROPHES = re.compile(r"\w+(?:'\w+)*")
_STANDING_RULE = re.compile(
    r"(?:^|[.!?\n:]\s+)(?:please )?(?:always|never|from now on|whenever|do not ever|don't ever)\b"
    r"(?:\W+\w+){3}",
    re.I,
)
_ASKS_HOW_TO_ACT = re.compile(
    r"\b(?:should|shall|may|can|could|would|must|do|help|let) (?:i|we|me|you)\b"
    r"|\bhow (?:to|should|must|fast)\b|\b(?:what|which) .*\b(?:should|must)\b"
    r"|^(?:write|draft|plan|make|show|give|help|book|explain)\b",
    re.I,
)


# ---- Fusion ----


def fused(
    lists: Mapping[str, Sequence[Scored]], weights: Mapping[str, float], *, k: float
) -> dict[str, float]:
    """Return id → score, best first: the sum over lists of ``weight / (k + rank)``, ranks from 1.

    Equal values of a list share the mean of their ranks, so that equal memories give equal orders
    whatever their ids are; entries with equal sums keep the order of the lists.

    Source: reciprocal rank fusion, Cormack, Clarke and Büttcher 2009.
    """
    scores: dict[str, float] = {}
    for name, entries in lists.items():
        weight = weights[name]
        values = [entry.score for entry in entries]
        count = len(values)
        start = 0
        while start < count:
            value = values[start]
            end = start + 1
            while end < count and values[end] == value:
                end += 1
            mean_rank = (start + 1 + end) / 2
            share = weight / (k + mean_rank)
            for place in range(start, end):
                id_ = entries[place].id
                scores[id_] = scores.get(id_, 0.0) + share
            start = end
    return _best_first(scores)


def summed(lists: Mapping[str, Sequence[Scored]], weights: Mapping[str, float]) -> dict[str, float]:
    """Return id → weighted mean of its signals in [0, 1], best first.

    Weights are renormalised over the lists that are not empty; an id that a list leaves out has
    signal 0 there.
    """
    scores: dict[str, float] = {}
    for entries in lists.values():
        scores.update((entry.id, 0.0) for entry in entries)
    applying = {name: entries for name, entries in lists.items() if entries and weights[name] > 0}
    total = sum(weights[name] for name in applying) or 1.0
    for name, entries in applying.items():
        for entry in entries:
            scores[entry.id] += weights[name] / total * entry.signal
    return _best_first(scores)


def led(
    lists: Mapping[str, Sequence[Scored]], weights: Mapping[str, float], words: int
) -> Mapping[str, float]:
    """Return the weights by how sure meaning is.

    Above a cosine of .8 the others count half and refine, below .4 twice and broaden. Full text
    counts less the fewer of the query's ``words`` its best match seems to have: one word in six
    says little.

    Source: acceptance row S4-17, the rule ARCH-17.
    """
    best = 0.0
    for name, entries in lists.items():
        if name.startswith("dense") and entries:
            best = max(best, entries[0].score)
    factor = 1.0
    if best > STRONG:
        factor = _REFINING_FACTOR
    elif best < WEAK:
        factor = _BROADENING_FACTOR
    led_weights = {
        name: weight if name.startswith("dense") else factor * weight
        for name, weight in weights.items()
    }
    for name, entries in lists.items():
        if name.startswith("bm25") and entries:
            led_weights[name] *= min(1.0, entries[0].score / (_BM25_A_WORD * max(1, words)))
    return led_weights


def unanimous(lists: Iterable[Sequence[Scored]], among: Container[str]) -> set[str]:
    """Return the ids that come first in every list that has any of ``among``.

    Equals of a list share its first rank.
    """
    agreed: set[str] | None = None
    for entries in lists:
        known = [entry for entry in entries if entry.id in among]
        if known:
            firsts = {entry.id for entry in known if entry.score == known[0].score}
            agreed = firsts if agreed is None else agreed & firsts
    return agreed or set()


def best_of(lists: Sequence[Sequence[Scored]], depth: int) -> list[Scored]:
    """Return the best ``depth`` of lists that share a unit; an id keeps its best score."""
    best: dict[str, Scored] = {}
    for entries in lists:
        for entry in entries:
            known = best.get(entry.id)
            if known is None or entry.score > known.score:
                best[entry.id] = entry
    return sorted(best.values(), key=lambda entry: -entry.score)[:depth]


def textual(entries: Sequence[Scored]) -> list[Scored]:
    """Return BM25 entries with their signal: the score over the best, or over ``WEAK_BM25``."""
    full_score = max(WEAK_BM25, *(entry.score for entry in entries)) if entries else WEAK_BM25
    return [Scored(entry.id, entry.score, entry.score / full_score) for entry in entries]


def in_order(ids: Sequence[str], depth: int) -> list[Scored]:
    """Return the first ``depth`` distinct ids as a list whose order is all that is known of it."""
    distinct = list(dict.fromkeys(ids))[:depth]
    return [Scored(id_, -float(rank), 1 / (1 + rank)) for rank, id_ in enumerate(distinct)]


def _best_first(scores: Mapping[str, float]) -> dict[str, float]:
    return dict(sorted(scores.items(), key=itemgetter(1), reverse=True))


# ---- Boosts ----


async def freshness(search: Search, candidates: Mapping[str, Candidate]) -> dict[str, float]:
    """Return id → ``(1 - w) + w * 2 ** (-age / half_life)`` for facts.

    Undated facts get the median of the dated ones.

    Source: acceptance row S2-07; a true half-life.
    """
    facts = {id_: item for id_, item in candidates.items() if isinstance(item, FactOutline)}
    times = await times_of(search, facts)
    weight = search.sources.tuning.freshness_weight
    half_life_d = search.sources.tuning.freshness_half_life_d
    factors = {
        id_: 1 - weight + weight * 2 ** (-age_d(search, at) / half_life_d)
        for id_, at in times.items()
    }
    usual = median(factors.values()) if factors else 1.0
    return {id_: factors.get(id_, usual) for id_ in facts}


async def novelty(search: Search, candidates: Mapping[str, Candidate]) -> dict[str, float]:
    """Return id → ``(1 - w) ** times`` for what the session was shown within the window."""
    tuning = search.sources.tuning
    session = search.request.session
    if not session or not tuning.novelty_weight or not tuning.novelty_window_s:
        return {}
    since = now() - timedelta(seconds=tuning.novelty_window_s)
    showings = await search.once(
        "times shown", lambda: search.sources.journal.given.times_shown(session, since)
    )
    factors: dict[str, float] = {}
    for id_, item in candidates.items():
        times = showings.get(shown_id(id_, item), 0)
        if times:
            factors[id_] = (1 - tuning.novelty_weight) ** times
    return factors


def of_turns(
    query: str,
    candidates: Mapping[str, Candidate],
    profile: ChannelProfile,
    nearest: Container[str] = (),
) -> dict[str, float]:
    """Return turn id → score factor: substance, assistant, speaker and standing rule of the profile.

    ``nearest`` are the first by meaning. A short note among them is the answer more often than a
    long text that shares chance words: substance damps none of them that says something.
    """
    asks_how_to_act = _ASKS_HOW_TO_ACT.search(query) is not None
    query_words = frozenset(_WORDS.findall(fold(query))) - STOP_WORDS
    factors: dict[str, float] = {}
    for id_, turn in candidates.items():
        if not isinstance(turn, Turn):
            continue
        factor = 1.0
        if profile.substance and not (id_ in nearest and states(turn)):
            factor = substance(turn, profile.substance)
        if is_reply(turn):
            factor *= profile.assistant
        if query_words.intersection(fold(turn.actor).split()[:1]):
            factor *= profile.speaker
        if asks_how_to_act and _STANDING_RULE.search(turn.content[:_CHARS_READ]):
            factor *= profile.standing
        factors[id_] = factor
    return factors


def is_reply(turn: Turn) -> bool:
    """Tell whether no person said a turn; an event, a note or a summary is nobody's reply."""
    return turn.kind == "turn" and turn.role != "user"


def states(turn: Turn) -> bool:
    """Tell whether a turn says something and asks nothing.

    "Shoe size 38" does; "Really?" and "What size is it?" do not.
    """
    sentences = sentences_of(_own_words(turn))
    if any(is_question(sentence) for sentence in sentences if sentence.strip()):
        return False
    return stated_words(turn) >= _MIN_WORDS_OF_STATEMENT


def substance(turn: Turn, shape: Substance) -> float:
    """Return ``floor + (1 - floor) * (1 - e ** (-words / shape.words))``.

    "Wow! And then?" tells next to nothing.
    """
    return shape.floor + (1 - shape.floor) * -math.expm1(-stated_words(turn) / shape.words)


def stated_words(turn: Turn) -> float:
    """Return the number of words that tell something.

    A question tells only by its words beyond ten: "I have the report of May here, which ... could
    you check it?" In scripts without spaces two characters count as one word.
    """
    stated: list[str] = []
    for sentence in sentences_of(_own_words(turn)):
        words = _WORDS_WITH_APOSTROPHES.findall(sentence.replace("’", "'"))
        stated += words[_WORDS_OF_QUESTION:] if is_question(sentence) else words
    total = 0.0
    for word in stated:
        if word[0] >= _SCRIPTS_WITHOUT_SPACES:
            total += len(word) / 2
        elif word.lower() not in STOP_WORDS:
            total += 1
    return total


def _own_words(turn: Turn) -> str:
    return turn.content[:_CHARS_READ].removeprefix(f"{turn.actor}:")


# ---- Near duplicates ----


def one_of_each_pair(
    order: Sequence[str], candidates: Mapping[str, Candidate]
) -> tuple[list[str], list[str]]:
    """Return the best fact of each unordered (subject, object) pair, and the others."""

    def pair(id_: str) -> frozenset[str]:
        fact = candidates[id_]
        if isinstance(fact, FactOutline):
            return frozenset((fact.subject, fact.object))
        return frozenset((id_,))

    return _first_of_each(order, pair, set())


def one_of_each_text(
    order: Sequence[str], candidates: Mapping[str, Candidate], query: str
) -> tuple[list[str], list[str]]:
    """Return the best turn of those with the same words, and the others.

    A turn that only repeats the query's question tells nothing: it is among the others.
    """

    def text(id_: str) -> str:
        item = candidates[id_]
        return fold(item.content) if isinstance(item, (Episode, Turn)) else id_

    return _first_of_each(order, text, {fold(query)} if is_question(query) else set())


def _first_of_each(
    order: Sequence[str], key: Callable[[str], T], seen: set[T]
) -> tuple[list[str], list[str]]:
    firsts: list[str] = []
    others: list[str] = []
    for id_ in order:
        value = key(id_)
        (others if value in seen else firsts).append(id_)
        seen.add(value)
    return firsts, others


def latest_first(
    order: Sequence[str],
    items: Mapping[str, Item],
    times: Mapping[str, datetime],
    scores: Mapping[str, float],
    query_words: Set[str],
    relations: Relations,
) -> list[str]:
    """Return the order with the latest of several statements of one thing in place of the first.

    One thing: facts of one subject in a single-valued relation, or turns of one speaker that share
    most of their words. A relation with several values, such as what Ana owns, has no such order.
    An item keeps its place if it has a word of the query that the later one lacks, or if it fits
    the query much better: "Ana owns a violin" for a question about instruments.

    Args:
        order: Ids, best first.
        items: Id → item.
        times: Id → when it was said; an item without a time moves nothing and is not moved.
        scores: Id → score of the order.
        query_words: The folded words that the query is about.
        relations: The table of relations.
    """
    words = {id_: _prefixes(grams(_words_of(items[id_]))) for id_ in order}
    wanted = _prefixes(query_words)
    remaining = list(order)
    reordered: list[str] = []
    while remaining:
        first = remaining[0]
        later = [
            id_
            for id_ in remaining[1:]
            if first in times
            and times.get(id_, times[first]) > times[first]
            and scores[id_] >= _COMPARABLE * scores[first]
            and _is_one_thing(items[first], items[id_], relations)
            and words[first] & wanted <= words[id_]
        ]
        best = max(later, key=times.__getitem__, default=first)
        remaining.remove(best)
        reordered.append(best)
    return reordered


def _is_one_thing(item: Item, other: Item, relations: Relations) -> bool:
    if isinstance(item, Fact) and isinstance(other, Fact):
        if (item.subject, item.relation) != (other.subject, other.relation):
            return False
        return relations.is_single(item.relation)
    if not (isinstance(item, Turn) and isinstance(other, Turn)):
        return False
    return speaker_of(item) == speaker_of(other) and _share_most_words(item, other)


def _share_most_words(item: Item, other: Item) -> bool:
    words = grams(_words_of(item))
    other_words = grams(_words_of(other))
    shared = len(words & other_words)
    return shared >= _MIN_SAME_WORDS and shared >= _SAME_SHARE * len(words | other_words)


def _words_of(item: Item) -> str:
    if isinstance(item, Turn):
        return _own_words(item)
    return item.text if isinstance(item, Fact) else ""


def _prefixes(words: Set[str]) -> set[str]:
    return {word[:_PREFIX_LETTERS] for word in words}


def diverse(
    order: Sequence[str],
    query: Vector,
    vectors: Mapping[str, Vector],
    *,
    balance: float,
    limit: int,
) -> list[str]:
    """Return at most ``limit`` ids by maximal marginal relevance; those without a vector follow.

    Each step takes the id with the greatest ``balance * sim(query) - (1 - balance) * max
    sim(taken)``.

    Source: Carbonell and Goldstein 1998.
    """
    ids = [id_ for id_ in order if id_ in vectors]
    if not ids:
        return list(order[:limit])
    matrix = np.stack([vectors[id_] for id_ in ids])
    relevance = matrix @ query
    nearest_taken = np.full(len(ids), -1.0, dtype=np.float32)
    taken: list[int] = []
    while len(taken) < min(limit, len(ids)):
        redundancy = nearest_taken if taken else np.zeros_like(nearest_taken)
        worth = balance * relevance - (1 - balance) * redundancy
        worth[taken] = -np.inf
        best = int(np.argmax(worth))
        taken.append(best)
        nearest_taken = np.maximum(nearest_taken, matrix @ matrix[best])
    without_vector = [id_ for id_ in order if id_ not in vectors]
    return [*(ids[place] for place in taken), *without_vector][:limit]
