"""Perspectives: the ways to rank a channel. Some find candidates, others only put in order what those brought.

Each function that is marked here as one, in any module of this folder, is a perspective of its name: adding one is
adding a function, in a file of its own or beside the others.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from importlib import import_module
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pps.core.values import ChannelName
from pps.recall.query import Ask, Candidate, Scored, Sources

Find: TypeAlias = Callable[[Ask, ChannelName, int], Awaitable[list[Scored]]]
Weigh: TypeAlias = Callable[[Ask, ChannelName, Mapping[str, Candidate]], Awaitable[list[Scored]]]
Score: TypeAlias = Callable[[Ask, ChannelName, AbstractSet[str]], Awaitable[list[Scored]]]
Likeness: TypeAlias = NDArray[np.float32]
Alike: TypeAlias = Callable[[Sources, Sequence[str]], Awaitable[Likeness]]


@dataclass(frozen=True, slots=True)
class Perspective:
    """One way to rank. Lists are best first, every id once.

    Attributes:
        about: What it goes by: the first line of its docstring.
        find: ``(ask, channel, depth)``: at most ``depth`` ids; empty for a channel it knows nothing of.
        weigh: ``(ask, channel, items by id)``: those of the candidates that it has an opinion on.
        score: ``(ask, channel, ids)``: those of the ids that it has a signal for, whatever their rank; a weighted
            sum needs the signal of what only others found.
        recall_only: What it finds are candidates; its ranks count for nothing in their order.
        alike: ``(sources, ids of turns or nodes)``: how much alike they are, shape (n, n), symmetric, in [-1, 1]; NaN
            where one of two has no feature of this perspective. Topics and divergence are made of it.
    """

    name: str
    about: str
    find: Find | None = None
    weigh: Weigh | None = None
    score: Score | None = None
    alike: Alike | None = None
    recall_only: bool = False

    @property
    def finds(self) -> bool:
        """Whether it brings candidates, rather than only orders those of others."""
        return self.find is not None


PERSPECTIVES: dict[str, Perspective] = {}


def finds(
    *, score: Score | None = None, alike: Alike | None = None, recall_only: bool = False
) -> Callable[[Find], Find]:
    """Make a function a perspective that brings candidates; ``score`` has a signal for those of others."""

    def mark(find: Find) -> Find:
        name = find.__name__
        PERSPECTIVES[name] = Perspective(
            name, _about(find), find, score=score, alike=alike, recall_only=recall_only
        )
        return find

    return mark


def weighs(weigh: Weigh) -> Weigh:
    """Make a function a perspective that only orders the candidates of others."""
    PERSPECTIVES[weigh.__name__] = Perspective(weigh.__name__, _about(weigh), weigh=weigh)
    return weigh


def _about(function: Find | Weigh) -> str:
    return (function.__doc__ or "").split("\n")[0]


def load() -> None:
    """Import every module of this folder, so that what it marks is known."""
    for one in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{one.name}")


load()
