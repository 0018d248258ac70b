"""How much of a long proof a run does: a seeded sample, or all with PPS_LONG=1, which ``scripts/test --long`` sets."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from typing import TypeVar

LONG = os.environ.get("PPS_LONG", "") == "1"  # read before any test cleans the environment
SEED = int(os.environ.get("PPS_SEED", "24"))

Case = TypeVar("Case")
Size = TypeVar("Size", int, float)


def sized(short: Size, long: Size) -> Size:
    """Return how many of something this run does."""
    return long if LONG else short


def sample(cases: Iterable[Case], most: int, also: str = "") -> list[Case]:
    """Return some of the cases, in their order, the same each time; all of them in the long form.

    Args:
        cases: What the whole proof goes through.
        most: How many the short form takes.
        also: What the choice depends on besides the seed, such as a store: each takes others.
    """
    every = list(cases)
    if LONG or len(every) <= most:
        return every
    chosen = random.Random(f"{SEED} {also}").sample(range(len(every)), most)  # noqa: S311 - the same each time
    return [every[at] for at in sorted(chosen)]
