"""What every part of the client shares: one entity's store, guard and models, and the first lock's checks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from graphiti_core import Graphiti

from pps.core.errors import InvalidRequest, IsolationError, NotFound
from pps.core.ids import EntityId
from pps.core.values import Community, Episode, Fact, Node
from pps.graph.protocol import GraphStore
from pps.index.entity import EntityIndexes
from pps.isolation.counters import IsolationCounters, NoBreach
from pps.isolation.guard import GuardedDriver
from pps.isolation.objects import GroupObjects
from pps.isolation.requests import check_uuids
from pps.models.protocols import Embedder, ExtractorModel, Reranker

Label: TypeAlias = Literal["Entity", "Episodic", "Saga"]


@dataclass(frozen=True, slots=True)
class Models:
    """The models that a client may use; each may be absent."""

    embedder: Embedder | None = None
    reranker: Reranker | None = None
    extractor: ExtractorModel | None = None
    rerank_deadline_s: float = 0.5


@dataclass(frozen=True, slots=True)
class Inside:
    """All that is bound to one entity. Never leaves this package."""

    entity: EntityId
    guard: GuardedDriver
    store: GraphStore
    objects: GroupObjects
    indexes: EntityIndexes
    graphiti: Graphiti
    models: Models
    counters: IsolationCounters


class Bound:
    """Base of the client's parts. Holds the checks of the first lock: what an id from outside may do."""

    def __init__(self, inside: Inside) -> None:
        self._inside = inside

    @property
    def entity(self) -> EntityId:
        """Whose memory this is, for life."""
        return self._inside.entity

    @property
    def counters(self) -> IsolationCounters:
        """What was refused so far."""
        return self._inside.counters

    @property
    def _store(self) -> GraphStore:
        return self._inside.store

    async def _owned(self, label: Label, uuids: Sequence[str]) -> list[str]:
        """Return the ids when each is one of the entity's own; an absent and a foreign one raise the same.

        Raises:
            InvalidRequest: One is not a canonical UUID.
            NotFound: One is not the entity's.
        """
        wanted = check_uuids(uuids)
        if len(await self._inside.objects.present(label, wanted)) != len(wanted):
            raise NotFound()
        return wanted

    async def _owned_facts(self, uuids: Sequence[str]) -> list[str]:
        wanted = check_uuids(uuids)
        if len(await self._store.facts(wanted)) != len(wanted):
            raise NotFound()
        return wanted

    async def _owned_origins(self, uuids: Sequence[str]) -> list[str]:
        """Return ids that are each a node's or an episode's of the entity."""
        wanted = check_uuids(uuids)
        nodes = await self._inside.objects.present("Entity", wanted)
        episodes = await self._inside.objects.present("Episodic", wanted)
        if len(nodes | episodes) != len(wanted):
            raise NotFound()
        return wanted

    async def _free(self, ids: Sequence[str]) -> None:
        """Raise NotFound when something of another entity, of whatever kind, has one of the ids already."""
        if not await self._inside.guard.free(ids):
            raise NotFound()

    def _asked(
        self, items: Sequence[Node] | Sequence[Fact] | Sequence[Episode] | Sequence[Community], wanted: Sequence[str]
    ) -> None:
        """Refuse an answer that holds what was not asked for."""
        if not {item.uuid for item in items} <= set(wanted):
            raise self._refuse("an answer held something that was not asked for")

    def _own_groups(self, groups: Iterable[str | None]) -> None:
        """Refuse results of Graphiti's that are of another group."""
        if any(group != self.entity.group for group in groups):
            raise self._refuse("a result of another group came back")

    def _refuse(self, why: str) -> IsolationError:
        return self.counters.refuse(self.entity, "row", why)

    def _no_breach(self) -> NoBreach:
        return NoBreach(self.entity)


def strictly(found: int, wanted: int, *, strict: bool) -> None:
    """Raise NotFound when a strict read did not find everything."""
    if strict and found != wanted:
        raise NotFound()


def check_text(text: str, field: str, most: int) -> str:
    """Return a text of 1 to ``most`` characters unchanged, or raise InvalidRequest."""
    if not text.strip() or len(text) > most:
        raise InvalidRequest(field, f"must be 1 to {most} characters")
    return text
