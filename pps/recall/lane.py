"""The person's own statements beside what was found: preferences for advice, standing instructions where they fit.

Ranking and the floor judge what a text is near to. A preference is often far from the prompt that needs it ("I have a
severe tree nut allergy", "suggest classic Italian desserts"), so statements have a lane of their own, whatever the
floor. Which turns hold statements is perspective data (``index.personal``); this module only picks the nearest.
"""

from __future__ import annotations

from collections.abc import Sequence

from pps.core.recalled import Hit
from pps.core.text import fold
from pps.core.values import Turn
from pps.index.personal import Statement
from pps.index.prompts import PromptKind
from pps.journal.journal import Journal
from pps.journal.perspective_rows import ids_of
from pps.recall.hits import fetch, text_of
from pps.recall.query import Ask, Scored

MOST_PREFERENCES = 3
"""Preferences of a prompt's pack; on held-out data three raise packs with the right one from 48 to 86 %."""
MOST_ANSWERS = 5
"""Statements that answer a question about the person."""
MOST_INSTRUCTIONS = 5
"""Standing instructions of a session's start pack."""
_MOST_FITTING = 2
_SPARE = 4
"""Statements looked at beyond those wanted: some say the same or are gone."""
FITTING_DEVIATIONS = 3.5
"""How many standard deviations above unrelated pairs an instruction must be near a prompt to fit it."""


async def own_statements(
    ask: Ask, kind: PromptKind, scale: tuple[float, float] | None
) -> dict[str, tuple[Hit, ...]]:
    """Return the person's statements that a prompt should be answered with, nearest first.

    Args:
        ask: The recall's own; ids it is to leave out, and its filters, hold here too.
        kind: An idle prompt gets nothing; preferences are for advice.
        scale: Mean and deviation of the cosines of unrelated pairs; None where no model says what texts mean: then
            words decide.
    """
    found: dict[str, tuple[Hit, ...]] = {}
    if kind == "idle":
        return found
    if ask.about_the_person:
        statement = ask.about_the_person.statement
        nearest = await _nearest(ask, statement, MOST_ANSWERS + _SPARE)
        return {statement: await _hits(ask, nearest, MOST_ANSWERS)}
    if kind == "advice":
        nearest = await _nearest(ask, "preference", MOST_PREFERENCES + _SPARE)
        found["preference"] = await _hits(ask, nearest, MOST_PREFERENCES)
    instructions = await _nearest(ask, "instruction", _MOST_FITTING + _SPARE)
    if scale is not None:
        mean, deviation = scale
        least = mean + FITTING_DEVIATIONS * deviation
        instructions = [one for one in instructions if one.score >= least]
    found["instruction"] = await _hits(ask, instructions, _MOST_FITTING)
    return {statement: hits for statement, hits in found.items() if hits}


async def standing_instructions(journal: Journal) -> list[Turn]:
    """Return the latest standing instructions, newest first, each once, at most ``MOST_INSTRUCTIONS``."""
    ids = await journal.perspective_data.every("instruction", "episode", ids_of)
    turns = await journal.turns(list(ids))
    turns.sort(key=lambda turn: (turn.occurred_at, turn.seq), reverse=True)
    distinct: dict[str, Turn] = {}
    for turn in turns:
        distinct.setdefault(fold(turn.content), turn)
    return list(distinct.values())[:MOST_INSTRUCTIONS]


async def _nearest(ask: Ask, statement: Statement, depth: int) -> Sequence[Scored]:
    """Return the statements nearest in meaning, best first; by words where no model says what texts mean."""
    ids = await ask.sources.journal.perspective_data.every(statement, "episode", ids_of)
    there = set(await ask.permitted("episode", list(ids))) - ask.request.without
    if not there:
        return []
    embedder = ask.sources.embedder
    if embedder is None or embedder.fingerprint.pooling == "hash":
        found = await ask.matches_among("episodes", ask.words, there, depth)
        if statement == "instruction":
            return found
        # Few words are shared by a preference and the advice that it is for: the latest ones have to do.
        turns = await ask.sources.journal.turns(list(there - {one.id for one in found}))
        turns.sort(key=lambda turn: (turn.occurred_at, turn.seq), reverse=True)
        return [*found, *(Scored(turn.uuid, 0.0, 0.0) for turn in turns)][:depth]
    return await ask.similar_among("episodes", there, depth)


async def _hits(ask: Ask, nearest: Sequence[Scored], most: int) -> tuple[Hit, ...]:
    items = await fetch(ask, "episodes", [one.id for one in nearest])
    scores = {one.id: one.score for one in nearest}
    distinct: dict[str, Hit] = {}
    for id_, item in items.items():
        text = text_of(item)
        distinct.setdefault(fold(text), Hit(id_, scores[id_], text, item))
    return tuple(distinct.values())[:most]
