"""The topics of one memory: detection, snapshots, names, and how topics change over time."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pps.config.spaces import Space, least_agreement, spaces
from pps.core.errors import PPSError
from pps.core.time import now
from pps.core.values import Turn
from pps.features.topics.session_topics import Injecting
from pps.features.topics.topic_names import TopicName, TopicTurn, name_topics, surface, title
from pps.features.topics.topic_values import (
    FEWEST,
    WHOLE_AGREEMENT,
    Group,
    Phase,
    Portfolio,
    Stability,
    Topic,
    churn,
    entropy,
    floor_of,
    groups,
    importance,
    in_context,
    kept_ids,
    shared_clusters,
)
from pps.ingest.indexer import Progress
from pps.journal.topic_rows import PhraseRole, Place, TopicMember, Use
from pps.recall.perspectives import PERSPECTIVES, Alike
from pps.recall.search import Sources
from pps.recall.thresholds import model_of, thresholds

MOST_CLUSTERED = 2_000
"""Number of memories that are clustered, the most important ones.

The rest is assigned to topics that they are near.
"""
_ASSIGNED_AGREEMENT = 4.0
"""Agreement of a memory that was assigned without clustering: less than clustered members have."""
_MOST_NODES = 40
"""Nodes whose names may be part of a topic's name."""
_TEXT_LENGTH = 8_000
"""Number of characters of a topic's turns that are searched for names of nodes."""
_LEAST_NEARNESS = 0.05
_SNAPSHOT_AGE = timedelta(hours=1)
_CONSOLIDATE_ENTROPY = 0.7
_CONSOLIDATE_CHURN = 0.5

_log = logging.getLogger(__name__)

Members: TypeAlias = Mapping[str, AbstractSet[str]]


class Topics:
    """One entity's topics."""

    def __init__(self, sources: Sources, group: str, in_hooks: tuple[str, ...] = ()) -> None:
        self.sources = sources
        self.in_hooks = in_hooks
        self.injecting = Injecting(sources, self.portfolio)
        self._rows = sources.journal.topics
        self._group = group
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Start detecting topics in the background unless it runs already; errors are logged."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._detect_and_log(), name=f"topics-{self._group}")

    async def stop(self) -> None:
        """Cancel the detection that ``begin`` started; it has then changed nothing."""
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _detect_and_log(self) -> None:
        try:
            await self.detect()
        except PPSError as error:
            _log.warning("topics were not looked for: %s", error.message)

    async def detect(
        self, progress: Progress | None = None, *, force: bool = False, max_memories: int = 10_000
    ) -> Portfolio:
        """Detect topics among the most important memories, store a snapshot, and return all topics.

        It can be cancelled between two spaces and has then changed nothing.

        Args:
            progress: Called with the space, the number of spaces done and the number of all.
            force: Detect even if no memory was added since the last time.
            max_memories: Number of memories read; at most ``MOST_CLUSTERED`` of them are clustered.
        """
        uses = await self._rows.uses()
        last = await self._rows.latest()
        mark = f"{len(uses)} {uses[0].turn}" if uses else ""
        journal = self.sources.journal
        if last and not force and await journal.get_meta("topics of") == mark:
            return await self.portfolio()
        moment = now()
        uses = sorted(uses, key=lambda use: -importance(use.shown, use.at, moment, use.importance))[
            :max_memories
        ]
        clusters = await self._cluster([use.turn for use in uses[:MOST_CLUSTERED]], progress)
        clusters = await self._assign_rest(clusters, uses[MOST_CLUSTERED:])
        before = await self._rows.snapshot(last) if last else []
        members = self._with_ids(clusters, before, moment)
        await self._rows.keep(moment, members, await self._phrases(_by_topic(members)))
        await journal.set_meta("topics of", mark)
        return await self.portfolio()

    async def portfolio(self) -> Portfolio:
        """Return the topics of the latest snapshot, without memories forgotten since."""
        at = await self._rows.latest()
        members = await self._rows.snapshot(at) if at else []
        current = _by_topic(members)
        if at is None or not current:
            return Portfolio((), at)
        earlier = await self._earlier_snapshot(at)
        before = _by_topic(await self._rows.snapshot(earlier)) if earlier else None
        names = await self._stored_names(current)
        since = {member.topic: member.since for member in members}
        topics: list[Topic] = []
        for id_, own in current.items():
            age_h = (now() - since[id_]).total_seconds() / 3600
            changed = None if before is None else churn(own, before.get(id_, frozenset()))
            agreed = float(np.mean([member.agreement for member in members if member.topic == id_]))
            name = names[id_]
            confidence = round(min(1.0, agreed / WHOLE_AGREEMENT), 3)
            phase = _phase(id_, own, age_h, changed, before or {})
            listed = tuple(member.turn for member in members if member.topic == id_)
            topics.append(
                Topic(
                    id=id_,
                    name=title(name["name"]),
                    terms=tuple(name["term"]),
                    named=tuple(name["named"]),
                    size=len(own),
                    confidence=confidence,
                    phase=phase,
                    age_h=age_h,
                    members=listed,
                    churn=changed,
                )
            )
        topics.sort(key=lambda topic: (-topic.size, topic.id))
        changed = None if before is None else churn(_memberships(current), _memberships(before))
        spread = entropy([topic.size for topic in topics])
        return Portfolio(tuple(topics), at, changed, spread, _should_consolidate(spread, changed))

    async def stability(self, hours: int) -> Stability:
        """Return how steady the topics were over the last ``hours``, 1 to 168."""
        portfolio = await self.portfolio()
        moments = await self._rows.moments(now() - timedelta(hours=hours))
        changed = None
        if len(moments) > 1:
            first = _by_topic(await self._rows.snapshot(moments[0]))
            latest = _by_topic(await self._rows.snapshot(moments[-1]))
            changed = churn(_memberships(latest), _memberships(first))
        phases = Counter(topic.phase for topic in portfolio.topics)
        return Stability(
            hours=hours,
            snapshots=len(moments),
            topics=len(portfolio.topics),
            phases=dict(phases),
            consolidate=_should_consolidate(portfolio.entropy, changed),
            at=portfolio.at,
            churn=changed,
            entropy=portfolio.entropy,
        )

    async def _cluster(
        self, turns: Sequence[str], progress: Progress | None
    ) -> list[tuple[list[str], list[float]]]:
        """Return the clusters of turns: their ids, and the agreement of each with the others."""
        compared = comparing()
        limits = await thresholds(self.sources)
        places = _places_in_sessions(await self.sources.journal.turns(turns), turns)
        agreement: NDArray[np.float32] = np.zeros((len(turns), len(turns)), dtype=np.float32)
        for done, (id_, space, alike) in enumerate(compared if len(turns) >= FEWEST else ()):
            if progress:
                progress(id_, done, len(compared))
            likeness = await alike(self.sources, turns)
            least = floor_of(limits.get(id_))
            context = (
                await asyncio.to_thread(in_context, likeness, places, least)
                if space.in_context
                else None
            )
            shared = await asyncio.to_thread(shared_clusters, likeness, least, context)
            agreement += np.float32(space.topic_weight) * shared
        grouped: list[Group] = await asyncio.to_thread(
            groups, agreement, least_agreement(model_of(self.sources))
        )
        clusters: list[tuple[list[str], list[float]]] = []
        for group in grouped:
            members = [turns[index] for index in group.members]
            clusters.append((members, list(group.agreements)))
        return clusters

    async def _assign_rest(
        self, clusters: list[tuple[list[str], list[float]]], rest: Sequence[Use]
    ) -> list[tuple[list[str], list[float]]]:
        """Add each remaining memory to the cluster with the nearest mean vector, if it is near."""
        limits = (await thresholds(self.sources)).get("E1")
        if not rest or not clusters or limits is None:
            return clusters
        vectors = await self.sources.indexes.vectors("episodes", [use.turn for use in rest])
        middles: list[NDArray[np.float32]] = []
        for members, _ in clusters:
            own = await self.sources.indexes.vectors("episodes", members)
            middle = np.mean([*own.values()], axis=0) if own else np.zeros(1, dtype=np.float32)
            middles.append(middle / (np.linalg.norm(middle) or 1.0))
        for turn, vector in vectors.items():
            cosines = [
                float(middle @ vector) if len(middle) == len(vector) else -1.0 for middle in middles
            ]
            best = int(np.argmax(cosines))
            if cosines[best] >= limits.high:
                clusters[best][0].append(turn)
                clusters[best][1].append(_ASSIGNED_AGREEMENT)
        return clusters

    def _with_ids(
        self,
        clusters: Sequence[tuple[list[str], list[float]]],
        before: Sequence[TopicMember],
        moment: datetime,
    ) -> list[TopicMember]:
        """Give each cluster the id of the earlier topic that it continues, or a new id."""
        sets = [frozenset(turns) for turns, _ in clusters]
        ids = kept_ids(sets, _by_topic(before))
        since = {member.topic: member.since for member in before}
        members: list[TopicMember] = []
        for index, (turns, agreements) in enumerate(clusters):
            seed = f"{self._group} {moment.isoformat()} {min(turns)}"
            id_ = ids.get(index, str(uuid.uuid5(uuid.NAMESPACE_URL, seed)))
            for turn, agreement in zip(turns, agreements, strict=True):
                members.append(TopicMember(id_, turn, agreement, since.get(id_, moment)))
        return members

    async def _earlier_snapshot(self, at: datetime) -> datetime | None:
        """Return the snapshot to compare the one ``at`` with, from the day before it.

        It is the latest that is an hour older, else the oldest; None if there is no earlier one.
        """
        moments = await self._rows.moments(at - timedelta(days=1))
        earlier = [moment for moment in moments if moment < at]
        old = [moment for moment in earlier if moment <= at - _SNAPSHOT_AGE]
        if old:
            return old[-1]
        return earlier[0] if earlier else None

    async def _phrases(self, topics: Members) -> dict[tuple[str, PhraseRole], Sequence[Place]]:
        """Return the places of topics' phrases; names that are still good enough stay."""
        phrases = await self._rows.phrases()
        before = {id_: phrases.get((id_, "name"), ()) for id_ in topics}
        return _by_role(await self._make_names(topics, before))

    async def _stored_names(self, topics: Members) -> dict[str, dict[PhraseRole, list[str]]]:
        """Return the stored phrases of each topic by role, without those of forgotten turns.

        All names are made anew in memory if a topic has no phrase of its name left.
        """
        places = await self._rows.phrases()
        if any((id_, "name") not in places for id_ in topics):
            places = {**_by_role(await self._make_names(topics, {})), **places}
        ids = sorted({place.turn for listed in places.values() for place in listed})
        texts = {turn.uuid: turn.content for turn in await self.sources.journal.turns(ids)}
        names: dict[str, dict[PhraseRole, list[str]]] = {
            id_: {"name": [], "term": [], "named": []} for id_ in topics
        }
        for (id_, role), listed in places.items():
            if id_ in names:
                names[id_][role] = [
                    surface(place, texts[place.turn]) for place in listed if place.turn in texts
                ]
        return names

    async def _make_names(
        self, topics: Members, earlier: Mapping[str, Sequence[Place]]
    ) -> dict[str, TopicName]:
        journal = self.sources.journal
        every = sorted({turn for own in topics.values() for turn in own})
        texts = {turn.uuid: turn.content for turn in await journal.turns(every)}
        vectors = await self.sources.indexes.vectors("episodes", every)
        turns_by_topic: dict[str, list[TopicTurn]] = {}
        nodes: dict[str, str] = {}
        for id_, own in topics.items():
            turns = sorted(turn for turn in own if turn in texts)
            near = _nearness([vectors.get(turn) for turn in turns])
            turns_by_topic[id_] = [
                TopicTurn(turn, texts[turn], nearness)
                for turn, nearness in zip(turns, near, strict=True)
            ]
            uuids = await journal.named_in(
                " ".join(texts[turn] for turn in turns)[:_TEXT_LENGTH], _MOST_NODES
            )
            uuids = [node for node in uuids if node != self.sources.self_node]
            kinds = await journal.kinds_of(uuids)
            for node, names in (await journal.names_of(uuids)).items():
                nodes.update((name, kinds.get(node, "")) for name in names)
        return await asyncio.to_thread(name_topics, turns_by_topic, nodes, earlier)


def _by_role(
    names: Mapping[str, TopicName],
) -> dict[tuple[str, PhraseRole], Sequence[Place]]:
    places: dict[tuple[str, PhraseRole], Sequence[Place]] = {}
    for id_, name in names.items():
        places[id_, "name"] = name.name
        places[id_, "term"] = name.terms
        places[id_, "named"] = name.named
    return places


def _nearness(vectors: Sequence[NDArray[np.float32] | None]) -> list[float]:
    """Return the cosine of each vector and the mean of all, at least ``_LEAST_NEARNESS``.

    1 for all if one of them is missing or has another length.
    """
    known = [vector for vector in vectors if vector is not None]
    if len(known) < len(vectors) or len({len(vector) for vector in known}) != 1:
        return [1.0] * len(vectors)
    matrix = np.stack(known)
    mean = matrix.mean(axis=0)
    cosines = matrix @ mean / (np.linalg.norm(mean) or 1.0)
    return [max(_LEAST_NEARNESS, float(cosine)) for cosine in cosines]


def comparing() -> list[tuple[str, Space, Alike]]:
    """Return the spaces that have a weight in topics and a measure of likeness.

    Temporal spaces are never among them.

    Returns:
        Id, space and measure of each.
    """
    compared: list[tuple[str, Space, Alike]] = []
    for id_, space in spaces().items():
        perspective = PERSPECTIVES.get(space.perspective)
        if (
            space.category != "temporal"
            and space.topic_weight > 0
            and perspective
            and perspective.alike
        ):
            compared.append((id_, space, perspective.alike))
    return compared


def _places_in_sessions(turns: Sequence[Turn], ids: Sequence[str]) -> list[tuple[str, int]]:
    """Return each id's session and its position in that session.

    An id that is no turn gets a session of its own.
    """
    counts = Counter[str]()
    places: dict[str, tuple[str, int]] = {}
    for turn in sorted(turns, key=lambda turn: (turn.occurred_at, turn.seq)):
        places[turn.uuid] = (turn.session, counts[turn.session])
        counts[turn.session] += 1
    return [places.get(id_, (id_, 0)) for id_ in ids]


def _by_topic(members: Sequence[TopicMember]) -> dict[str, frozenset[str]]:
    """Return topic → its turns, without topics that have become too small."""
    turns: dict[str, set[str]] = {}
    for member in members:
        turns.setdefault(member.topic, set()).add(member.turn)
    return {id_: frozenset(own) for id_, own in turns.items() if len(own) >= FEWEST}


def _memberships(topics: Members) -> frozenset[tuple[str, str]]:
    return frozenset((id_, turn) for id_, own in topics.items() for turn in own)


def _should_consolidate(spread: float | None, changed: float | None) -> bool:
    return (spread or 0.0) > _CONSOLIDATE_ENTROPY and (changed or 0.0) > _CONSOLIDATE_CHURN


def _phase(
    id_: str, own: AbstractSet[str], age_h: float, changed: float | None, before: Members
) -> Phase:
    took = [
        other for other, was in before.items() if other != id_ and 2 * len(was & own) > len(was)
    ]
    if took and id_ in before:
        return "merging"
    if age_h < 1:
        return "emerging" if changed is None or changed > 0.3 else "stable"
    if (changed or 0.0) >= 0.5:
        return "declining"
    return "stable" if age_h >= 24 or (changed or 0.0) < 0.1 else "emerging"
