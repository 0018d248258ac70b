"""A quoted phrase is a phrase: its words side by side, in their order."""

from __future__ import annotations

from pps.core.text import fold
from pps.core.values import ChannelName
from pps.recall.hits import fetch, text_of
from pps.recall.perspectives import finds
from pps.recall.query import Ask, Scored
from pps.recall.question import quoted_phrases
from pps.recall.ranking import best_of


@finds()
async def phrase(ask: Ask, channel: ChannelName, depth: int) -> list[Scored]:
    """Phrase: what has the words that the query puts in quotation marks, side by side and in their order.

    Return what has most of the quoted phrases; of equals, the better match by words first. Empty without a quotation.
    """
    phrases = [" ".join(fold(text).split()) for text in quoted_phrases(ask.text)]
    if not phrases:
        return []
    lists = [
        await ask.matches(collection, text, depth)
        for collection in ask.collections(channel)
        for text in phrases
    ]
    candidates = best_of(lists, len(phrases) * depth)
    items = await fetch(ask, channel, [scored.id for scored in candidates])
    texts = {id_: " ".join(fold(text_of(item)).split()) for id_, item in items.items()}
    had = {id_: sum(each in text for each in phrases) for id_, text in texts.items()}
    best = [scored for scored in candidates if had.get(scored.id)]
    best.sort(key=lambda scored: (-had[scored.id], -scored.score))
    return [
        Scored(scored.id, had[scored.id] + 1 / (2 + rank), had[scored.id] / len(phrases))
        for rank, scored in enumerate(best[:depth])
    ]
