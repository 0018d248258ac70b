"""The topics of one memory: found, kept from snapshot to snapshot, and read with how they change."""

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
from pps.features.topics.grouping import (
    FEWEST,
    WHOLE_AGREEMENT,
    Group,
    churn,
    entropy,
    floor_of,
    groups,
    in_context,
    kept_ids,
    shared_clusters,
)
from pps.features.topics.injecting import Injecting
from pps.features.topics.topic_names import TopicName, TopicTurn, name_topics, surface, title
from pps.features.topics.topic_values import (
    Phase,
    Portfolio,
    Stability,
    Topic,
    importance,
)
from pps.ingest.indexer import Progress
from pps.journal.topic_rows import PhraseRole, Place, TopicMember, Use
from pps.recall.perspectives import PERSPECTIVES, Alike
from pps.recall.search import Sources
from pps.recall.thresholds import model_of, thresholds

MOST_CLUSTERED = 2_000
"""Memories that are clustered, the newest and most important.

Others join a topic that they are near.
"""
_ASSIGNED = 4.0
"""The agreement of one that was not clustered: less than that of the members it is near."""
_NODES = 40
"""Nodes whose names may be part of a topic's name."""
_TEXT = 8_000
"""Characters of a topic's turns that are searched for names of nodes."""
_LEAST_NEARNESS = 0.05
_APART = timedelta(hours=1)
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
        """Look for topics beside all else, unless that is under way; what goes wrong is logged."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._looked(), name=f"topics-{self._group}")

    async def stop(self) -> None:
        """End what ``begin`` began; what it has not kept yet is lost, and nothing is half done."""
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _looked(self) -> None:
        try:
            await self.detect()
        except PPSError as error:
            _log.warning("topics were not looked for: %s", error.message)

    async def detect(
        self, progress: Progress | None = None, *, force: bool = False, max_memories: int = 10_000
    ) -> Portfolio:
        """Look for topics among the newest and most important memories, keep them and return all.

        It can be cancelled between two spaces and has then changed nothing.

        Args:
            progress: Is told the space, how many are done, and how many there are.
            force: Also where nothing came since they were looked for last.
            max_memories: Most that are looked at; of them at most ``MOST_CLUSTERED`` are clustered.
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
        clusters = await self._found([use.turn for use in uses[:MOST_CLUSTERED]], progress)
        clusters = await self._joined(clusters, uses[MOST_CLUSTERED:])
        before = await self._rows.snapshot(last) if last else []
        members = self._members(clusters, before, moment)
        await self._rows.keep(moment, members, await self._phrases(_by_topic(members)))
        await journal.set_meta("topics of", mark)
        return await self.portfolio()

    async def portfolio(self) -> Portfolio:
        """Return the topics that were found last, without what was forgotten since."""
        at = await self._rows.latest()
        members = await self._rows.snapshot(at) if at else []
        current = _by_topic(members)
        if at is None or not current:
            return Portfolio((), at)
        then = await self._before(at)
        before = _by_topic(await self._rows.snapshot(then)) if then else None
        names = await self._names(current)
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
        changed = None if before is None else churn(_pairs(current), _pairs(before))
        spread = entropy([topic.size for topic in topics])
        return Portfolio(tuple(topics), at, changed, spread, _restless(spread, changed))

    async def stability(self, hours: int) -> Stability:
        """Return how the topics held over so many hours, 1 to 168."""
        portfolio = await self.portfolio()
        moments = await self._rows.moments(now() - timedelta(hours=hours))
        changed = None
        if len(moments) > 1:
            first, latest = [
                _by_topic(await self._rows.snapshot(moment)) for moment in (moments[0], moments[-1])
            ]
            changed = churn(_pairs(latest), _pairs(first))
        phases = Counter(topic.phase for topic in portfolio.topics)
        restless = _restless(portfolio.entropy, changed)
        held = hours, len(moments), len(portfolio.topics), dict(phases), restless
        return Stability(*held, portfolio.at, changed, portfolio.entropy)

    async def _found(
        self, turns: Sequence[str], progress: Progress | None
    ) -> list[tuple[list[str], list[float]]]:
        compared = comparing()
        limits = await thresholds(self.sources)
        places = _places(await self.sources.journal.turns(turns), turns)
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
        return [([turns[at] for at in group.members], list(group.agreements)) for group in grouped]

    async def _joined(
        self, clusters: list[tuple[list[str], list[float]]], rest: Sequence[Use]
    ) -> list[tuple[list[str], list[float]]]:
        """Let those that were not clustered join the topic whose middle they are nearest to, if they are near."""
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
            near = [
                float(middle @ vector) if len(middle) == len(vector) else -1.0 for middle in middles
            ]
            best = int(np.argmax(near))
            if near[best] >= limits.high:
                clusters[best][0].append(turn)
                clusters[best][1].append(_ASSIGNED)
        return clusters

    def _members(
        self,
        clusters: Sequence[tuple[list[str], list[float]]],
        before: Sequence[TopicMember],
        moment: datetime,
    ) -> list[TopicMember]:
        sets = [frozenset(turns) for turns, _ in clusters]
        ids = kept_ids(sets, _by_topic(before))
        since = {topic_member.topic: topic_member.since for topic_member in before}
        members: list[TopicMember] = []
        for at, (turns, agreements) in enumerate(clusters):
            own = str(
                uuid.uuid5(uuid.NAMESPACE_URL, f"{self._group} {moment.isoformat()} {min(turns)}")
            )
            id_ = ids.get(at, own)
            pairs = zip(turns, agreements, strict=True)
            members += [
                TopicMember(id_, turn, agreed, since.get(id_, moment)) for turn, agreed in pairs
            ]
        return members

    async def _before(self, at: datetime) -> datetime | None:
        """Return the latest snapshot that is an hour older than one, else the oldest.

        None when there is no other.
        """
        earlier = [
            moment for moment in await self._rows.moments(at - timedelta(days=1)) if moment < at
        ]
        old = [snapshot for snapshot in earlier if snapshot <= at - _APART]
        return old[-1] if old else (earlier[0] if earlier else None)

    async def _phrases(self, topics: Members) -> dict[tuple[str, PhraseRole], Sequence[Place]]:
        """Return where the phrases of topics stand; a name that still says enough stays."""
        phrases = await self._rows.phrases()
        before = {id_: phrases.get((id_, "name"), ()) for id_ in topics}
        return _by_role(await self._named(topics, before))

    async def _names(self, topics: Members) -> dict[str, dict[PhraseRole, list[str]]]:
        """Return the phrases of each topic, by what they are for.

        Those that were kept, without what was forgotten since; found anew where no phrase of a name
        is left.
        """
        places = await self._rows.phrases()
        if any((id_, "name") not in places for id_ in topics):
            places = {**_by_role(await self._named(topics, {})), **places}
        ids = sorted({place.turn for some in places.values() for place in some})
        texts = {turn.uuid: turn.content for turn in await self.sources.journal.turns(ids)}
        names: dict[str, dict[PhraseRole, list[str]]] = {
            id_: {"name": [], "term": [], "named": []} for id_ in topics
        }
        for (id_, role), some in places.items():
            if id_ in names:
                names[id_][role] = [
                    surface(place, texts[place.turn]) for place in some if place.turn in texts
                ]
        return names

    async def _named(
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
            uuids = await journal.named_in(" ".join(texts[turn] for turn in turns)[:_TEXT], _NODES)
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
    """Return the cosine of each vector and the middle of all, at least a little.

    1 for all where one has none.
    """
    known = [vector for vector in vectors if vector is not None]
    if len(known) < len(vectors) or len({len(vector) for vector in known}) != 1:
        return [1.0] * len(vectors)
    matrix = np.stack(known)
    middle = matrix.mean(axis=0)
    cosines = matrix @ middle / (np.linalg.norm(middle) or 1.0)
    return [max(_LEAST_NEARNESS, float(cosine)) for cosine in cosines]


def comparing() -> list[tuple[str, Space, Alike]]:
    """Return the spaces that count for topics and can tell how much alike two memories are.

    Temporal ones never do.
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


def _places(turns: Sequence[Turn], ids: Sequence[str]) -> list[tuple[str, int]]:
    """Return session and place in it of each id; one that is no turn stands alone."""
    counts = Counter[str]()
    places: dict[str, tuple[str, int]] = {}
    for id_ in sorted(turns, key=lambda turn: (turn.occurred_at, turn.seq)):
        places[id_.uuid] = (id_.session, counts[id_.session])
        counts[id_.session] += 1
    return [places.get(id_, (id_, 0)) for id_ in ids]


def _by_topic(members: Sequence[TopicMember]) -> dict[str, frozenset[str]]:
    turns: dict[str, set[str]] = {}
    for member in members:
        turns.setdefault(member.topic, set()).add(member.turn)
    return {id_: frozenset(own) for id_, own in turns.items() if len(own) >= FEWEST}


def _pairs(topics: Members) -> frozenset[tuple[str, str]]:
    return frozenset((id_, turn) for id_, own in topics.items() for turn in own)


def _restless(spread: float | None, changed: float | None) -> bool:
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
