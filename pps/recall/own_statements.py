"""The person's own statements beside the hits: preferences for advice, standing instructions.

Ranking and the floor go by nearness to the query. A preference is often far from the prompt that
needs it ("I have a severe tree nut allergy", "suggest classic Italian desserts"), so statements are
chosen separately, whatever the floor. Which turns hold statements is perspective data
(``index.personal``); this module picks the nearest.
"""

from __future__ import annotations

from collections.abc import Sequence

from pps.core.recalled import Hit
from pps.core.text import fold
from pps.core.values import Turn
from pps.index.prompts import PromptKind, Statement
from pps.journal.journal import Journal
from pps.journal.perspective_rows import ids_of
from pps.recall.hits import fetch, text_of
from pps.recall.search import Scored, Search

MAX_PREFERENCES = 3
"""Preferences of a prompt's pack.

On held-out data three raise packs with the right one from 48 to 86 %.
"""
MAX_ANSWERS = 5
"""Statements that answer a question about the person."""
MAX_STANDING_INSTRUCTIONS = 5
"""Standing instructions of a session's start pack."""
_MAX_FITTING_INSTRUCTIONS = 2
_SPARE = 4
"""Statements looked at beyond those wanted: some say the same or are gone."""
FITTING_DEVIATIONS = 3.5
"""Standard deviations above unrelated pairs from which an instruction fits a prompt."""


async def own_statements(
    search: Search, kind: PromptKind, scale: tuple[float, float] | None
) -> dict[str, tuple[Hit, ...]]:
    """Return kind of statement → the person's statements that bear on a prompt, nearest first.

    Args:
        search: The recall in progress; ids that it is to leave out, and its filters, hold here too.
        kind: An idle prompt gets nothing; preferences are for advice.
        scale: Mean and deviation of the cosines of unrelated pairs; None if there is no model of
            meaning: then words decide.
    """
    if kind == "idle":
        return {}
    if search.about_the_person:
        statement = search.about_the_person.statement
        nearest = await _nearest(search, statement, MAX_ANSWERS + _SPARE)
        return {statement: await _distinct_hits(search, nearest, MAX_ANSWERS)}
    statements: dict[str, tuple[Hit, ...]] = {}
    if kind == "advice":
        nearest = await _nearest(search, "preference", MAX_PREFERENCES + _SPARE)
        statements["preference"] = await _distinct_hits(search, nearest, MAX_PREFERENCES)
    instructions = await _nearest(search, "instruction", _MAX_FITTING_INSTRUCTIONS + _SPARE)
    if scale is not None:
        mean, deviation = scale
        least = mean + FITTING_DEVIATIONS * deviation
        instructions = [entry for entry in instructions if entry.score >= least]
    statements["instruction"] = await _distinct_hits(
        search, instructions, _MAX_FITTING_INSTRUCTIONS
    )
    return {statement: hits for statement, hits in statements.items() if hits}


async def standing_instructions(journal: Journal) -> list[Turn]:
    """Return the latest standing instructions, newest first, each once, at most five."""
    ids = await journal.perspective_data.every("instruction", "episode", ids_of)
    distinct: dict[str, Turn] = {}
    for turn in _latest_first(await journal.turns(list(ids))):
        distinct.setdefault(fold(turn.content), turn)
    return list(distinct.values())[:MAX_STANDING_INSTRUCTIONS]


async def _nearest(search: Search, statement: Statement, depth: int) -> Sequence[Scored]:
    """Return the statements nearest in meaning, or in words without a model of meaning."""
    journal = search.sources.journal
    ids = await journal.perspective_data.every(statement, "episode", ids_of)
    permitted = set(await search.permitted("episode", list(ids))) - search.request.without
    if not permitted:
        return []
    embedder = search.sources.embedder
    if embedder is not None and embedder.fingerprint.pooling != "hash":
        return await search.vector_matches_among("episodes", permitted, depth)
    matches = await search.text_matches_among("episodes", search.words, permitted, depth)
    if statement == "instruction":
        return matches
    # A preference and the advice that it bears on share few words: the latest ones fill the list.
    others = await journal.turns(list(permitted - {entry.id for entry in matches}))
    latest = [Scored(turn.uuid, 0.0, 0.0) for turn in _latest_first(others)]
    return [*matches, *latest][:depth]


async def _distinct_hits(search: Search, nearest: Sequence[Scored], limit: int) -> tuple[Hit, ...]:
    items = await fetch(search, "episodes", [entry.id for entry in nearest])
    scores = {entry.id: entry.score for entry in nearest}
    distinct: dict[str, Hit] = {}
    for id_, item in items.items():
        text = text_of(item)
        distinct.setdefault(fold(text), Hit(id_, scores[id_], text, item))
    return tuple(distinct.values())[:limit]


def _latest_first(turns: Sequence[Turn]) -> list[Turn]:
    return sorted(turns, key=lambda turn: (turn.occurred_at, turn.seq), reverse=True)
