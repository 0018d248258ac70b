"""The lists of one channel: every finding perspective asked side by side, failures told apart from nothing."""

from __future__ import annotations

import asyncio
import time as clock
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pps.core.errors import IsolationError, PPSError
from pps.core.values import ChannelName
from pps.recall.perspectives import PERSPECTIVES
from pps.recall.profiles import ChannelProfile
from pps.recall.query import Ask, Candidate, Scored


@dataclass(slots=True)
class Lists:
    """What the perspectives said, by name, and what kept one from saying it; ``sums`` when signals are added."""

    sums: bool = False
    said: dict[str, list[Scored]] = field(default_factory=dict[str, list[Scored]])
    failed: dict[str, PPSError] = field(default_factory=dict[str, PPSError])

    def size(self) -> int:
        """Return how many different candidates they have."""
        return len({one.id for entries in self.said.values() for one in entries})

    def cut_short(self, depth: int) -> bool:
        """Tell whether asking deeper could bring something new."""
        return any(len(entries) >= depth for entries in self.said.values())


async def find(ask: Ask, channel: ChannelName, profile: ChannelProfile, depth: int) -> Lists:
    """Return the lists of the finding perspectives, at most ``depth`` long each.

    Raises:
        PPSError: All of them failed; the first one's error.
        IsolationError: One of them met a foreign row.
    """
    started, embedding = clock.perf_counter(), ask.took_s("embed")
    finders = {name: weight for name, weight in profile.perspectives.items() if PERSPECTIVES[name].finds}
    # Where only what orders has a weight, the others bring the candidates and count nothing.
    names = [name for name, weight in finders.items() if weight > 0] or list(finders)
    slowest_first = sorted(names, key=lambda name: not name.startswith("dense"))  # the embedding begins at once
    results = await asyncio.gather(*(_ask(ask, name, channel, depth) for name in slowest_first), return_exceptions=True)
    by_name = dict(zip(slowest_first, results, strict=True))
    lists = _told_apart(names, [by_name[name] for name in names])
    if profile.min_similarity is not None:
        least = profile.min_similarity
        lists.said.update(
            (name, [one for one in lists.said[name] if one.score >= least])
            for name in ("dense", "dense_names", "dense_windows")
            if name in lists.said
        )
    waited = ask.took_s("embed") - embedding
    ask.spent("retrieve", channel, clock.perf_counter() - started - waited)
    return lists


async def complete(ask: Ask, channel: ChannelName, lists: Lists) -> None:
    """Add to each list, with their own signals, the candidates that only others found: what a weighted sum needs."""
    lists.sums = True
    candidates = {one.id for entries in lists.said.values() for one in entries}
    for name, entries in lists.said.items():
        score = PERSPECTIVES[name].score
        missing = candidates - {one.id for one in entries}
        if score is not None and missing:
            lists.said[name] = [*entries, *await score(ask, channel, missing)]


async def weigh(
    ask: Ask, channel: ChannelName, profile: ChannelProfile, items: Mapping[str, Candidate], lists: Lists
) -> bool:
    """Add the lists of the weighing perspectives over the candidates, and tell whether one says anything.

    One that fails is noted.
    """
    spoke = False
    for name, weight in profile.perspectives.items():
        opinion = PERSPECTIVES[name].weigh
        if opinion is None or weight <= 0:
            continue
        try:
            lists.said[name] = await opinion(ask, channel, items)
            spoke = spoke or bool(lists.said[name])
        except IsolationError:
            raise
        except PPSError as error:
            lists.failed[name] = error
    return spoke


async def _ask(ask: Ask, name: str, channel: ChannelName, depth: int) -> list[Scored]:
    finder = PERSPECTIVES[name].find
    return await finder(ask, channel, depth) if finder else []


def _told_apart(names: Sequence[str], results: Sequence[list[Scored] | BaseException]) -> Lists:
    lists = Lists()
    for name, result in zip(names, results, strict=True):
        if isinstance(result, PPSError) and not isinstance(result, IsolationError):
            lists.failed[name] = result
        elif isinstance(result, BaseException):
            raise result
        else:
            lists.said[name] = result
    if lists.failed and not any(lists.said.values()):
        raise next(iter(lists.failed.values()))
    return lists
