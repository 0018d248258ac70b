"""What the client is asked for and what it answers, beside the values of ``pps.core``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias, TypedDict

from pydantic import BaseModel

from pps.core.errors import InvalidRequest
from pps.core.ids import are_uuids, check_uuid
from pps.core.values import Community, Episode, Fact, Node

EntityTypes: TypeAlias = "Mapping[str, type[BaseModel]]"

ALL_TIMES: tuple[None, None] = (None, None)


@dataclass(frozen=True, slots=True)
class GraphFilters:
    """Which nodes and facts a search may bring back; an empty part does not restrict.

    Attributes:
        kinds: Labels; a node needs one of them, a fact needs both its ends to have one.
        relations: Names of facts, exact.
        facts: Uuids of facts.
        subjects, objects: Uuids of nodes that a fact starts from, leads to.
        valid, created: Half-open spans ``(from, until)`` of ``valid_at`` and ``created_at``; None is open.
        past: Also facts that hold no longer (with ``as_of``: no difference).
        typed_links: Also facts of the kind ``relation``.
    """

    kinds: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    valid: tuple[datetime | None, datetime | None] = ALL_TIMES
    created: tuple[datetime | None, datetime | None] = ALL_TIMES
    past: bool = False
    typed_links: bool = False


@dataclass(frozen=True, slots=True)
class GraphitiResults:
    """What a recipe found, channel by channel, best first, each with a score.

    Attributes:
        notes: Where a step of the recipe could not be done and what was done instead.
    """

    nodes: tuple[tuple[Node, float], ...] = ()
    facts: tuple[tuple[Fact, float], ...] = ()
    episodes: tuple[tuple[Episode, float], ...] = ()
    communities: tuple[tuple[Community, float], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EpisodeInput:
    """A text for Graphiti's pipeline.

    Attributes:
        uuid: An episode that the entity owns already, to be worked on as it is stored; empty makes a new one.
            A new id is never taken from outside.
    """

    content: str
    reference_time: datetime
    name: str = ""
    source: Literal["message", "text", "json"] = "message"
    description: str = ""
    uuid: str = ""


class PipelineOptions(TypedDict, total=False):
    """How Graphiti's pipeline works on episodes.

    Attributes:
        previous: Uuids of owned episodes to read as context; by default the latest before the reference time.
        saga: Name of the saga that the episodes belong to; made when the entity has none of that name.
        after: Uuid of the owned episode that comes before in the saga.
        entity_types, edge_types: Pydantic models by label, for Graphiti to extract attributes into.
        edge_type_map: Which edge types may join which labels.
        instructions: Further instructions for the extraction.
        update_communities: Bring the communities of the touched nodes up to date too.
    """

    previous: Sequence[str] | None
    saga: str
    after: str
    entity_types: EntityTypes
    edge_types: EntityTypes
    edge_type_map: Mapping[tuple[str, str], Sequence[str]]
    instructions: str
    update_communities: bool


@dataclass(frozen=True, slots=True)
class Changes:
    """Uuids of everything that a call of Graphiti's pipeline made, changed or deleted."""

    nodes: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    episodes: tuple[str, ...] = ()
    communities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Saga:
    """A named run of episodes; Graphiti's SagaNode.

    Attributes:
        first, last: Uuids of its first and last episode, or empty.
        summarized_at: Until when (ingestion time) the summary covers its episodes; None without a summary.
    """

    uuid: str
    name: str
    created_at: datetime
    summary: str = ""
    first: str = ""
    last: str = ""
    summarized_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Exported:
    """One item of an export.

    Attributes:
        group: The group it was exported from.
        mentions: For an episode: uuids of the nodes it mentions.
    """

    group: str
    item: Node | Fact | Episode | Community
    mentions: tuple[str, ...] = field(default=())


def check_uuids(uuids: Sequence[str], what: str = "id") -> list[str]:
    """Return the ids without repeats, in order; raise InvalidRequest when one is not a canonical UUID."""
    if isinstance(uuids, str) or not isinstance(uuids, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidRequest(what, "must be a list of ids")
    given = list(uuids)
    if not are_uuids(given):
        for uuid in given:
            check_uuid(uuid, what)
    return list(dict.fromkeys(given))


def check_limit(limit: int, most: int = 10_000) -> int:
    """Return a limit of 1 to ``most`` unchanged, or raise InvalidRequest."""
    if isinstance(limit, bool) or not 1 <= limit <= most:
        raise InvalidRequest("limit", f"must be 1 to {most}")
    return limit
