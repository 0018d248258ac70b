"""Perspectives: retrievers, which find candidates for a channel, and rerankers, which order them.

Each function that is marked here as one, in any module of this folder, is a perspective of its
name: adding one is adding a function, in a file of its own or beside the others.
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
from pps.recall.search import Candidate, Scored, Search, Sources

Retrieve: TypeAlias = Callable[[Search, ChannelName, int], Awaitable[list[Scored]]]
Rerank: TypeAlias = Callable[
    [Search, ChannelName, Mapping[str, Candidate]], Awaitable[list[Scored]]
]
Score: TypeAlias = Callable[[Search, ChannelName, AbstractSet[str]], Awaitable[list[Scored]]]
Likeness: TypeAlias = NDArray[np.float32]
Alike: TypeAlias = Callable[[Sources, Sequence[str]], Awaitable[Likeness]]


@dataclass(frozen=True, slots=True)
class Perspective:
    """One way to rank. Lists are best first, every id once.

    Attributes:
        about: What it goes by: the first line of its docstring.
        retrieve: ``(search, channel, depth)``: at most ``depth`` ids; empty for a channel that it
            does not cover.
        rerank: ``(search, channel, candidates by id)``: those of the candidates that it has an
            opinion on.
        score: ``(search, channel, ids)``: those of the ids that it has a signal for, whatever their
            rank; a weighted sum needs the signal of candidates that only others found.
        recall_only: What it finds are candidates; its ranks count for nothing in their order.
        alike: ``(sources, ids of turns or nodes)``: their likeness, shape (n, n), symmetric, in
            [-1, 1]; NaN where one of two has no feature of this perspective. Topics and divergence
            are made of it.
    """

    name: str
    about: str
    retrieve: Retrieve | None = None
    rerank: Rerank | None = None
    score: Score | None = None
    alike: Alike | None = None
    recall_only: bool = False

    @property
    def finds(self) -> bool:
        """Whether it brings candidates, rather than only orders those of others."""
        return self.retrieve is not None


PERSPECTIVES: dict[str, Perspective] = {}


def retriever(
    *, score: Score | None = None, alike: Alike | None = None, recall_only: bool = False
) -> Callable[[Retrieve], Retrieve]:
    """Register a function as a perspective that brings candidates.

    Args:
        score: Gives its signal for candidates of others.
        alike: See ``Perspective``.
        recall_only: See ``Perspective``.
    """

    def register(retrieve: Retrieve) -> Retrieve:
        name = retrieve.__name__
        PERSPECTIVES[name] = Perspective(
            name,
            _first_line(retrieve),
            retrieve=retrieve,
            score=score,
            alike=alike,
            recall_only=recall_only,
        )
        return retrieve

    return register


def reranker(rerank: Rerank) -> Rerank:
    """Register a function as a perspective that only orders the candidates of others."""
    name = rerank.__name__
    PERSPECTIVES[name] = Perspective(name, _first_line(rerank), rerank=rerank)
    return rerank


def _first_line(function: Retrieve | Rerank) -> str:
    return (function.__doc__ or "").split("\n")[0]


def load() -> None:
    """Import every module of this folder, so that its perspectives are registered."""
    for module in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")


load()
