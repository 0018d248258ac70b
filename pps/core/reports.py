"""What a memory says about itself and about what it did: frozen values for every surface."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pps.core.values import Fact


@dataclass(frozen=True, slots=True)
class TimelinePage:
    """Facts in order of world time; ``next_cursor`` is empty on the last page."""

    facts: tuple[Fact, ...]
    names: Mapping[str, str]
    next_cursor: str


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What ``forget`` removed, or would remove when ``dry_run``.

    Attributes:
        facts: Facts that lose their last support or an end; facts_kept: those that lose one of several.
        nodes: Nodes named, and nodes that nothing mentions any more.
    """

    dry_run: bool
    turns: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    facts_kept: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    anchors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stats:
    """How much a memory holds. ``indexed`` counts documents by collection in text and vector index."""

    entity: str
    store: str
    turns: int
    nodes: int
    facts: int
    episodes: int
    communities: int
    anchors: int
    unfinished_jobs: int
    index_lag: int
    text_indexed: Mapping[str, int]
    vector_indexed: Mapping[str, int]
    fingerprint: str
    first_turn_at: datetime | None = None
    last_turn_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Health:
    """Whether a memory can do its work. ``problems`` are one line each and say what to do next."""

    ok: bool
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
