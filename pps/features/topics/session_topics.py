"""Topics in a session: whether it left its subject, and the sections of its injected context packs.

The newest turn of a session is compared with those before it. The sections are the topics of the
hits, alerts, exploration and badges.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

import numpy as np

from pps.config.spaces import Thresholds, spaces
from pps.context.lines import Line, bullet, trusted, turn_line
from pps.core.recalled import Hit, Recall
from pps.core.text import counted
from pps.core.time import now, shown
from pps.core.trust import trust_of
from pps.core.values import AnchorPassage, Episode, Fact, Turn
from pps.features.topics.topic_values import (
    IN_COMMON,
    Portfolio,
    Topic,
    centred,
    importance,
    to_middle,
)
from pps.recall.perspectives import PERSPECTIVES
from pps.recall.question import content_words
from pps.recall.search import Sources
from pps.recall.thresholds import limits_of, recency_factor, relevance, thresholds

_SPACES = ("E1", "E6", "E7", "E10", "E12", "E13")
"""Spaces that are compared.

Cause is not: its likeness ignores direction here, so each turn is far from all others.
"""
_FEWEST_WORDS = 5
_FEWEST_TURNS = 3
_LOOKED_AT = 50
_HIGH_BELOW = 0.1
_MEDIUM_BELOW = 0.2
_SUMMARY_LENGTH = 100
_MIDDLE_TURNS = 10
"""Number of earlier turns of the session whose mean vector is compared."""
_LATEST_TURNS = 200
"""Number of the memory's latest turns whose mean is subtracted, as common to all turns."""
_ALONE_MARGIN = 0.1

_MOST_TOPICS = 5
_LOOKBACK_H = 2
_SESSION_TURNS = 200
_MOST_EXPLORED = 3


@dataclass(frozen=True, slots=True)
class Alert:
    """A space in which the newest turn is unlike all earlier turns of its session.

    Attributes:
        similarity: To the nearest earlier turn, in [-1, 1]; below ``threshold``.
        turn: Id of the newest turn.
        summary: The beginning of its text, at most 100 characters.
    """

    space: str
    severity: Literal["high", "medium", "low"]
    similarity: float
    threshold: float
    turn: str
    summary: str


@dataclass(frozen=True, slots=True)
class Divergence:
    """Whether the newest turn left the session's subject.

    Attributes:
        alerts: The gravest first.
        turns: Number of earlier turns that the newest was compared with.
        spaces: Number of spaces in which it was compared.
    """

    alerts: tuple[Alert, ...] = ()
    turns: int = 0
    spaces: int = 0


async def divergence(sources: Sources, hours: int, session: str = "") -> Divergence:
    """Compare the newest user turn of a session with its earlier user turns of the last hours.

    Short turns, and sessions of fewer than three earlier turns, raise no alert. If the embedding
    model has the threshold ``left``, meaning alone decides, by the two newest turns. Otherwise a
    turn that is near in meaning, or in half of the spaces, raises none: other words for the same
    subject are no new subject.

    Args:
        sources: The entity's own.
        hours: How far back, 1 to 48.
        session: Id of the session; the newest turn's if empty.
    """
    latest = await sources.journal.recent(1, session=session or None)
    if not latest:
        return Divergence()
    turns = [
        turn
        for turn in await sources.journal.recent(_LOOKED_AT, session=latest[0].session)
        if _is_comparable(turn)
    ]
    since = now() - timedelta(hours=hours)
    before = [turn for turn in turns[1:] if turn.occurred_at >= since]
    if not turns or turns[0].occurred_at < since or len(before) < _FEWEST_TURNS:
        return Divergence(turns=len(before))
    limits = await thresholds(sources)
    alerts, compared = await _alerts(sources, turns[0], [turn.uuid for turn in before], limits)
    left = limits["E1"].left
    middle = (
        None if left is None else await _nearness_to_session(sources, [turns[0], *before], left)
    )
    if left is None or middle is None:
        if not compared.get("E1", True) or 2 * len(alerts) < len(compared):
            alerts = []
    elif middle >= left:
        alerts = []
    else:
        others = [alert for alert in alerts if alert.space != "E1"]
        alerts = [_alert("E1", middle, left, turns[0]), *others]
    return Divergence(
        tuple(sorted(alerts, key=lambda alert: alert.similarity)), len(before), len(compared)
    )


async def _alerts(
    sources: Sources, new: Turn, before: list[str], limits: Mapping[str, Thresholds]
) -> tuple[list[Alert], dict[str, bool]]:
    """Return an alert for each space in which the turn is far from all earlier ones.

    Also return, for each space that was compared, whether the turn is far in it.
    """
    alerts: list[Alert] = []
    compared: dict[str, bool] = {}
    for id_ in _SPACES:
        low = limits[id_].low if id_ in limits else None
        perspective = PERSPECTIVES.get(spaces()[id_].perspective)
        if low is None or perspective is None or perspective.alike is None:
            continue
        near = (await perspective.alike(sources, [new.uuid, *before]))[0, 1:]
        near = near[~np.isnan(near)]
        if len(near):
            best = float(near.max())
            compared[id_] = best < low
            if compared[id_]:
                alerts.append(_alert(id_, best, low, new))
    return alerts, compared


def _alert(space: str, similarity: float, threshold: float, turn: Turn) -> Alert:
    severity = (
        "high" if similarity < _HIGH_BELOW else "medium" if similarity < _MEDIUM_BELOW else "low"
    )
    summary = " ".join(turn.content.split())[:_SUMMARY_LENGTH]
    return Alert(space, severity, round(similarity, 3), threshold, turn.uuid, summary)


async def _nearness_to_session(
    sources: Sources, turns: Sequence[Turn], left: float
) -> float | None:
    """Return the cosine between the newest turns of a session and the mean of those before them.

    The two newest turns count together. The newest counts alone if it is ``_ALONE_MARGIN`` below
    ``left``.

    Args:
        sources: The entity's own.
        turns: Of one session, the newest first.
        left: The threshold below which the turns have left the subject.

    Returns:
        A cosine of vectors without the mean of this memory's latest turns; None if there are too
        few of those.
    """
    alike = PERSPECTIVES[spaces()["E1"].perspective].alike
    own = [turn.uuid for turn in turns[: _MIDDLE_TURNS + 2]]
    among = [
        turn.uuid for turn in await sources.journal.recent(_LATEST_TURNS) if turn.uuid not in own
    ]
    if alike is None or len(own) + len(among) < IN_COMMON:
        return None
    likeness = await alike(sources, [*own, *among])
    known = ~np.isnan(np.diagonal(likeness))
    if known.sum() < IN_COMMON or not known[: len(own)].all():
        return None
    products = centred(np.nan_to_num(likeness, nan=0.0), known)
    alone = to_middle(products, [0], range(1, len(own)))
    return (
        alone if alone < left - _ALONE_MARGIN else to_middle(products, [0, 1], range(2, len(own)))
    )


def _is_comparable(turn: Turn) -> bool:
    return turn.role == "user" and len(content_words(turn.content).split()) >= _FEWEST_WORDS


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
