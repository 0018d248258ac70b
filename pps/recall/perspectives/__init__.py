"""Perspectives: each module here is one way to rank a channel, found by its file's name.

A module has exactly one of two public functions. ``find`` brings a list of its own; ``weigh`` puts in order
what the finding perspectives brought. A finder may also ``score`` given candidates: a weighted sum needs the
signal of what only others found. Adding a perspective is adding a file (and a test).
"""

from __future__ import annotations

import pkgutil
from collections.abc import Awaitable, Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from importlib import import_module
from typing import TypeAlias, cast

from pps.core.values import ChannelName
from pps.recall.query import Ask, Candidate, Scored

Find: TypeAlias = Callable[[Ask, ChannelName, int], Awaitable[list[Scored]]]
Weigh: TypeAlias = Callable[[Ask, ChannelName, Mapping[str, Candidate]], Awaitable[list[Scored]]]
Score: TypeAlias = Callable[[Ask, ChannelName, AbstractSet[str]], Awaitable[list[Scored]]]


@dataclass(frozen=True, slots=True)
class Perspective:
    """One way to rank. Lists are best first, every id once.

    Attributes:
        finds: True when it brings candidates, False when it only orders those of others.
        find: ``(ask, channel, depth)``: at most ``depth`` ids; empty for a channel it knows nothing of.
        weigh: ``(ask, channel, items by id)``: those of the candidates that it has an opinion on.
        score: ``(ask, channel, ids)``: those of the ids that it has a signal for, whatever their rank.
        about: The first line of its module's docstring.
    """

    name: str
    about: str
    find: Find | None = None
    weigh: Weigh | None = None
    score: Score | None = None

    @property
    def finds(self) -> bool:
        """Whether it brings candidates."""
        return self.find is not None


def _discovered() -> dict[str, Perspective]:
    found: dict[str, Perspective] = {}
    for one in pkgutil.iter_modules(__path__):
        module = import_module(f"{__name__}.{one.name}")
        found[one.name] = Perspective(
            one.name,
            (module.__doc__ or "").strip().split("\n")[0],
            cast("Find | None", getattr(module, "find", None)),
            cast("Weigh | None", getattr(module, "weigh", None)),
            cast("Score | None", getattr(module, "score", None)),
        )
    return found


PERSPECTIVES: Mapping[str, Perspective] = _discovered()
