"""The objects that are bound to one entity, and the first lock: checks of ids from outside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from graphiti_core import Graphiti

from pps.core.errors import InvalidRequest, IsolationError, NotFound
from pps.core.ids import EntityId, are_uuids, check_uuid
from pps.graph.graph_store import GraphStore
from pps.index.indexes import EntityIndexes
from pps.isolation.counters import IsolationCounters
from pps.isolation.graphiti_objects import GraphitiObjects
from pps.isolation.guard import BoundDriver
from pps.models.protocols import Embedder, ExtractorModel, Reranker


@dataclass(frozen=True, slots=True)
class Models:
    """The models that a client may use; each may be absent."""

    embedder: Embedder | None = None
    reranker: Reranker | None = None
    extractor: ExtractorModel | None = None
    rerank_deadline_s: float = 0.5


class FirstLock:
    """Checks before a call and of its answer; an absent id and a foreign id raise the same."""

    def __init__(self, entity: EntityId, guard: BoundDriver, counters: IsolationCounters) -> None:
        self._entity = entity
        self._guard = guard
        self._counters = counters

    async def free(self, ids: Sequence[str]) -> None:
        """Raise NotFound when another entity has an item, of any kind, with one of the ids."""
        if not await self._guard.free(ids):
            raise NotFound()

    def only_requested(self, answered: Iterable[str], requested: Sequence[str]) -> None:
        """Refuse an answer with an id that was not requested."""
        if not set(answered) <= set(requested):
            raise self._refuse("an answer held something that was not asked for")

    def own_groups(self, groups: Iterable[str | None]) -> None:
        """Refuse results of Graphiti that are of another group."""
        if any(group != self._entity.group for group in groups):
            raise self._refuse("a result of another group came back")

    def all_answered(self, answered: int, requested: int) -> None:
        """Raise NotFound unless every requested id was answered."""
        if answered != requested:
            raise NotFound()

    def _refuse(self, why: str) -> IsolationError:
        return self._counters.refuse(self._entity, "row", why)


@dataclass(frozen=True, slots=True)
class Inside:
    """The objects bound to one entity; outside this package, only ``proof`` uses them."""

    entity: EntityId
    guard: BoundDriver
    lock: FirstLock
    store: GraphStore
    objects: GraphitiObjects
    indexes: EntityIndexes
    graphiti: Graphiti
    models: Models
    counters: IsolationCounters


def check_uuids(uuids: Sequence[str]) -> list[str]:
    """Return the ids without repeats, in order; InvalidRequest when one is no canonical UUID."""
    is_list = isinstance(uuids, Iterable)  # pyright: ignore[reportUnnecessaryIsInstance]
    if isinstance(uuids, str) or not is_list:
        raise InvalidRequest("id", "must be a list of ids")
    ids = list(uuids)
    if not are_uuids(ids):
        for uuid in ids:
            check_uuid(uuid)
    return list(dict.fromkeys(ids))


def check_limit(limit: int, most: int = 10_000) -> int:
    """Return a limit of 1 to ``most`` unchanged, or raise InvalidRequest."""
    if isinstance(limit, bool) or not 1 <= limit <= most:
        raise InvalidRequest("limit", f"must be 1 to {most}")
    return limit
