"""What is asked of the engine, already checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from pps.core.values import ChannelName
from pps.journal.values import ItemFilter

Channels: TypeAlias = "tuple[ChannelName, ...] | Literal['auto'] | None"

DEFAULT_PROFILE = "default"
"""The profile of a deliberate recall that names none."""


@dataclass(frozen=True, slots=True)
class RecallRequest:
    """One question to one entity's memory.

    Attributes:
        query: Free text, not blank; what exceeds the engine's bound is condensed.
        profile: A profile's or a Graphiti recipe's name.
        limit: Most results in each channel, 1 to 100, or to the profile's ``max_limit``.
        as_of: Aware instant of world time for facts (and what they vote for); None is now.
        session: What this session was shown lately is damped, where the profile says so.
        center: Uuid of the node that graph perspectives start from; None is the entity's own.
        channels: Only these of the profile's; ``auto`` routes by the kind of query; None is all.
        weights: Perspective → weight in place of the profile's, in every channel that has it; 0 leaves it out.
        min_similarity: Raw cosine in place of the profile's; None is the profile's.
        max_hops: How far from the centre ``structural`` reaches, 1 to 4.
        include_relationships: Whether nodes come with what joins them.
        filters: Applied before ranking in every perspective, beside the profile's own: both must hold.
    """

    query: str
    profile: str = DEFAULT_PROFILE
    limit: int = 10
    as_of: datetime | None = None
    session: str | None = None
    center: str | None = None
    channels: Channels = None
    weights: Mapping[str, float] = field(default_factory=dict[str, float])
    min_similarity: float | None = None
    max_hops: int = 2
    include_relationships: bool = False
    filters: ItemFilter = field(default_factory=ItemFilter)
