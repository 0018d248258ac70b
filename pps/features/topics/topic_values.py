"""Values of topics: a topic, the portfolio of all, their stability, and a memory's importance."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

PRIOR = 0.5
"""The importance of a memory without a stated one."""
_K1 = 1.2
_HALF_LIFE_D = 45.0
_DAY_S = 86_400.0

Phase: TypeAlias = Literal["emerging", "stable", "declining", "merging"]


@dataclass(frozen=True, slots=True)
class Topic:
    """A subject that several memories have in common.

    Attributes:
        id: Stays while most members stay.
        confidence: Mean agreement of its members, relative to agreement in all spaces, 0 to 1.
        churn: Share of members that came or went since an hour ago, 0 to 1; None without an earlier
            snapshot.
    """

    id: str
    name: str
    terms: tuple[str, ...]
    named: tuple[str, ...]
    size: int
    confidence: float
    phase: Phase
    age_h: float
    members: tuple[str, ...]
    churn: float | None = None


@dataclass(frozen=True, slots=True)
class Portfolio:
    """All topics of a memory, the largest first.

    Attributes:
        at: When they were looked for; None if never.
        churn: Share of all memberships that changed since an hour ago; None without an earlier
            snapshot.
        entropy: How evenly sizes are spread, 0 to 1; None for fewer than two topics.
        consolidate: Topics are many and unsteady, so merging repeated memories is worth a look.
    """

    topics: tuple[Topic, ...]
    at: datetime | None = None
    churn: float | None = None
    entropy: float | None = None
    consolidate: bool = False


@dataclass(frozen=True, slots=True)
class Stability:
    """How steady the topics were over some hours.

    Attributes:
        churn: Share of memberships that differ between the first and the last snapshot of these
            hours, 0 to 1; None with a single snapshot.
    """

    hours: int
    snapshots: int
    topics: int
    phases: Mapping[str, int]
    consolidate: bool
    at: datetime | None = None
    churn: float | None = None
    entropy: float | None = None


def importance(showings: int, at: datetime, moment: datetime, stored: float = PRIOR) -> float:
    """Return the importance of a memory, above 0 and at most ``stored * 3.2``.

    It is ``stored * (1 + log-saturated showings) * 2 ** (-age / 45 d)``.

    Args:
        showings: How often it was really shown in sessions; 0 takes nothing away.
        at: When it was said.
        moment: The time of the request; a time before ``at`` counts as ``at``.
        stored: The stated importance, 0 to 1.

    Source: the saturation of BM25's term frequency, Robertson et al. 1994.
    """
    times = math.log1p(showings)
    age_d = max(0.0, (moment - at).total_seconds() / _DAY_S)
    return stored * (1 + times * (_K1 + 1) / (times + _K1)) * 2 ** (-age_d / _HALF_LIFE_D)
