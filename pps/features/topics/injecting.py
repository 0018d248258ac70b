"""Sections of an injected context pack: topics of the hits, alerts, exploration and badges."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from pps.context.lines import Line, bullet, trusted, turn_line
from pps.core.recalled import Hit, Recall
from pps.core.text import counted
from pps.core.time import now, shown
from pps.core.trust import trust_of
from pps.core.values import AnchorPassage, Episode, Fact, Turn
from pps.features.topics.divergence import divergence
from pps.features.topics.topic_values import Portfolio, Topic, importance
from pps.recall.search import Sources
from pps.recall.thresholds import limits_of, recency_factor, relevance

_MOST_TOPICS = 5
_LOOKBACK_H = 2
_SESSION_TURNS = 200
_MOST_EXPLORED = 3


class Injecting:
    """Builds the sections of a context pack that need topics.

    Attributes:
        chance: Draws the memories of the section ``explored``; tests give it a seed.
    """

    def __init__(self, sources: Sources, portfolio: Callable[[], Awaitable[Portfolio]]) -> None:
        self._sources = sources
        self._portfolio = portfolio
        self.chance = random.Random()  # noqa: S311 - it chooses among a memory's own topics

    async def about(
        self, recall: Recall, session: str, wanted: Sequence[str]
    ) -> tuple[Recall, Mapping[str, Sequence[tuple[str, Line]]]]:
        """Sort the hits of a recall by relevance and build the wanted sections.

        Returns:
            The sorted recall, and by section the ids and lines in it.
        """
        limits = await limits_of(self._sources)
        moment = now()

        def worth(hit: Hit) -> float:
            return relevance(hit, limits) * recency_factor(_time_of(hit), moment)

        channels = {  # a stable sort: equally relevant hits keep their ranks
            name: replace(channel, hits=tuple(sorted(channel.hits, key=worth, reverse=True)))
            for name, channel in recall.channels.items()
        }
        recall = replace(recall, channels=channels)
        hits = {hit.id: worth(hit) for channel in channels.values() for hit in channel.hits}
        topics = (await self._portfolio()).topics if {"topics", "explored"} & {*wanted} else ()
        lines: dict[str, Sequence[tuple[str, Line]]] = {}
        if "alerts" in wanted and session:
            report = await divergence(self._sources, _LOOKBACK_H, session)
            lines["alerts"] = [
                _line(f"{alert.severity} ({alert.space}): {alert.summary}", alert.turn)
                for alert in report.alerts
            ]
        if "topics" in wanted:
            lines["topics"] = _topic_lines(topics, hits)
        if "explored" in wanted:
            known = set(hits)
            if session:
                known |= (await self._sources.journal.given.seen(session)).ids
            lines["explored"] = await self._explored_lines(topics, known, moment)
        if "badges" in wanted and session:
            lines["badges"] = await self._badge_lines(session, hits)
        return recall, lines

    async def _explored_lines(
        self, topics: Sequence[Topic], known: Container[str], moment: datetime
    ) -> list[tuple[str, Line]]:
        """Return lines for the most important unknown memories of a few topics drawn at random.

        Topics whose memories were shown more often are drawn more often.
        Source: Thompson 1933, with Beta(1 + shown, 1 + not shown) for each topic.
        """
        if not topics:
            return []
        uses = {use.turn: use for use in await self._sources.journal.topics.uses()}
        drawn: list[tuple[float, str]] = []
        for topic in topics:
            members = [uses[member] for member in topic.members if member in uses]
            shown_count = sum(member.shown > 0 for member in members)
            draw = self.chance.betavariate(1 + shown_count, 1 + len(members) - shown_count)
            unknown = [member for member in members if member.turn not in known]
            if unknown:
                best = max(
                    unknown, key=lambda use: importance(use.shown, use.at, moment, use.importance)
                )
                drawn.append((draw, best.turn))
        zone = self._sources.journal.zone
        ids = [turn for _, turn in sorted(drawn, reverse=True)[:_MOST_EXPLORED]]
        turns = {turn.uuid: turn for turn in await self._sources.journal.turns(ids)}
        return [
            (turn_id, trusted(turn_line(turns[turn_id], zone=zone), trust_of(turns[turn_id])))
            for turn_id in ids
            if turn_id in turns
        ]

    async def _badge_lines(self, session: str, hits: Mapping[str, float]) -> list[tuple[str, Line]]:
        turns = await self._sources.journal.recent(_SESSION_TURNS, session=session)
        if not turns:
            return []
        zone = self._sources.journal.zone
        own = sum(turn.uuid in hits for turn in turns)
        since = f"{counted(len(turns), 'turn')} since {shown(turns[-1].occurred_at, zone)}"
        return [_line(f"{since}, {own} of what was found is of it")]


def _line(text: str, of: str = "") -> tuple[str, Line]:
    return of, Line(bullet(text, of), "")


def _topic_lines(topics: Sequence[Topic], hits: Mapping[str, float]) -> list[tuple[str, Line]]:
    """Return a line for each of the best topics among the hits.

    Topics are ranked by the total relevance of their hits, then by the number of their hits.

    Args:
        topics: All topics of the memory.
        hits: Id of a hit → its relevance.
    """
    ranked: list[tuple[float, int, Topic]] = []
    for topic in topics:
        members = [member for member in topic.members if member in hits]
        if members:
            ranked.append((sum(hits[member] for member in members), len(members), topic))
    best = sorted(ranked, key=lambda entry: (-entry[0], -entry[1], entry[2].id))[:_MOST_TOPICS]
    return [
        _line(f"{topic.name}: {topic.size} memories, {topic.phase}; {', '.join(topic.terms)}")
        for _, _, topic in best
    ]


def _time_of(hit: Hit) -> datetime | None:
    item = hit.item
    if isinstance(item, Turn):
        return item.occurred_at
    if isinstance(item, AnchorPassage):
        return None
    return item.valid_at or item.created_at if isinstance(item, Fact | Episode) else item.created_at
