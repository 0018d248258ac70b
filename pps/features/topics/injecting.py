"""What an injected pack tells beyond what was found: its topics, a session that digresses, and what else there is."""

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

_TOLD = 5
_LOOKBACK_H = 2
_SESSION = 200
_EXPLORED = 3


class Injecting:
    """Makes the sections of a pack that topics are needed for.

    ``chance`` draws what is explored.
    """

    def __init__(self, sources: Sources, portfolio: Callable[[], Awaitable[Portfolio]]) -> None:
        self._sources = sources
        self._portfolio = portfolio
        self.chance = random.Random()  # noqa: S311 - it chooses among a memory's own topics

    async def about(
        self, recall: Recall, session: str, wanted: Sequence[str]
    ) -> tuple[Recall, Mapping[str, Sequence[tuple[str, Line]]]]:
        """Return what was found, the most relevant first, and ids and lines of the wanted sections."""
        limits = await limits_of(self._sources)
        moment = now()

        def worth(hit: Hit) -> float:
            return relevance(hit, limits) * recency_factor(_at(hit), moment)

        channels = {  # stable: what is equally relevant keeps the order of its ranks
            name: replace(channel, hits=tuple(sorted(channel.hits, key=worth, reverse=True)))
            for name, channel in recall.channels.items()
        }
        recall = replace(recall, channels=channels)
        hits = {hit.id: worth(hit) for channel in channels.values() for hit in channel.hits}
        topics = (await self._portfolio()).topics if {"topics", "explored"} & {*wanted} else ()
        lines: dict[str, Sequence[tuple[str, Line]]] = {}
        if "alerts" in wanted and session:
            lines["alerts"] = await self._alerts(session)
        if "topics" in wanted:
            lines["topics"] = _told(topics, hits)
        if "explored" in wanted:
            lines["explored"] = await self._explored(
                topics, {*hits} | await self._seen(session), moment
            )
        if "badges" in wanted and session:
            lines["badges"] = await self._badges(session, hits)
        return recall, lines

    async def _seen(self, session: str) -> frozenset[str]:
        return (await self._sources.journal.given.seen(session)).ids if session else frozenset()

    async def _alerts(self, session: str) -> list[tuple[str, Line]]:
        report = await divergence(self._sources, _LOOKBACK_H, session)
        return [
            _line(f"{alert.severity} ({alert.space}): {alert.summary}", alert.turn)
            for alert in report.alerts
        ]

    async def _explored(
        self, topics: Sequence[Topic], known: Container[str], moment: datetime
    ) -> list[tuple[str, Line]]:
        """Return the most important unknown memory of topics drawn by how often their memories were really shown.

        Source: Thompson 1933, with Beta(1 + shown, 1 + not shown) for each topic.
        """
        uses = (
            {use.turn: use for use in await self._sources.journal.topics.uses()} if topics else {}
        )
        drawn: list[tuple[float, str]] = []
        for topic in topics:
            members = [uses[member] for member in topic.members if member in uses]
            shown_count = sum(member.shown > 0 for member in members)
            draw = self.chance.betavariate(1 + shown_count, 1 + len(members) - shown_count)
            if left := [member for member in members if member.turn not in known]:
                best = max(
                    left, key=lambda use: importance(use.shown, use.at, moment, use.importance)
                )
                drawn.append((draw, best.turn))
        zone = self._sources.journal.zone
        ids = [turn for _, turn in sorted(drawn, reverse=True)[:_EXPLORED]]
        turns = {turn.uuid: turn for turn in await self._sources.journal.turns(ids)}
        return [
            (turn_id, trusted(turn_line(turns[turn_id], zone=zone), trust_of(turns[turn_id])))
            for turn_id in ids
            if turn_id in turns
        ]

    async def _badges(self, session: str, hits: Mapping[str, float]) -> list[tuple[str, Line]]:
        turns = await self._sources.journal.recent(_SESSION, session=session)
        if not turns:
            return []
        zone = self._sources.journal.zone
        own = sum(turn.uuid in hits for turn in turns)
        since = f"{counted(len(turns), 'turn')} since {shown(turns[-1].occurred_at, zone)}"
        return [_line(f"{since}, {own} of what was found is of it")]


def _line(text: str, of: str = "") -> tuple[str, Line]:
    return of, Line(bullet(text, of), "")


def _told(topics: Sequence[Topic], hits: Mapping[str, float]) -> list[tuple[str, Line]]:
    """Return a line for each topic of what was found, by how relevant that is, then by how much of it was found."""
    ranked = [
        (sum(hits[member] for member in members), len(members), topic)
        for topic in topics
        if (members := [member for member in topic.members if member in hits])
    ]
    best = sorted(ranked, key=lambda entry: (-entry[0], -entry[1], entry[2].id))[:_TOLD]
    return [
        _line(f"{topic.name}: {topic.size} memories, {topic.phase}; {', '.join(topic.terms)}")
        for _, _, topic in best
    ]


def _at(hit: Hit) -> datetime | None:
    item = hit.item
    if isinstance(item, Turn):
        return item.occurred_at
    if isinstance(item, AnchorPassage):
        return None
    return item.valid_at or item.created_at if isinstance(item, Fact | Episode) else item.created_at
