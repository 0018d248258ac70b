"""One ledger: proves by their ids that journal, graph, filter columns and indexes of a memory agree."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from pps.core.reports import Agreement, Ledger
from pps.core.values import ItemKind
from pps.index.entity import EntityIndexes
from pps.ingest.indexer import Indexer
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.journal import Journal

_DAMAGED = "stop the server, keep a copy, restore a backup"
_PAGE = 1_000
_SAMPLES = 3
_LOOKS = 3
_PAUSE_S = 0.5


@dataclass(frozen=True, slots=True)
class _Compared:
    """What should hold the same ids. ``optional`` ids may be there or not."""

    what: str
    expected: AbstractSet[str]
    found: AbstractSet[str]
    optional: AbstractSet[str] = frozenset()

    @property
    def missing(self) -> AbstractSet[str]:
        return self.expected - self.found - self.optional

    @property
    def extra(self) -> AbstractSet[str]:
        return self.found - self.expected - self.optional


class Bookkeeper:
    """Compares the stores of one entity; reads all of its ids, 50,000 facts in a few seconds."""

    def __init__(
        self,
        name: str,
        client: IsolatedGraphitiClient,
        journal: Journal,
        indexes: EntityIndexes,
        indexer: Indexer,
        surroundings: Callable[[], Awaitable[tuple[str, ...]]],
    ) -> None:
        self._name = name
        self._client = client
        self._journal = journal
        self._indexes = indexes
        self._indexer = indexer
        self._surroundings = surroundings

    async def ledger(self) -> Ledger:
        """Return what agrees, what does not, and damage to the journal's file.

        What differs in one look only was being written.
        """
        damage = [f"{self._journal.path.name} is damaged ({one}): {_DAMAGED}" for one in await self._journal.damage()]
        compared, waiting = await self._look()
        for _ in range(_LOOKS - 1):
            if not any(one.missing or one.extra for one in compared):
                break
            await asyncio.sleep(_PAUSE_S)
            again, waiting = await self._look()
            before = {one.what: one for one in compared}
            compared = [_lasting(before[one.what], one) for one in again]
        agreements = tuple(_agreement(one) for one in compared)
        problems = (*damage, *self._problems(agreements))
        return Ledger(agreements, waiting, problems, await self._surroundings())

    async def _look(self) -> tuple[list[_Compared], int]:
        journal = self._journal
        dirty = {row.change.id for row in await journal.dirty(_PAGE * 10)}
        done, queue = await journal.queue.turns_in("done"), journal.queue
        open_ = await queue.turns_in("queued") | await queue.turns_in("running")
        parked = await queue.turns_in("failed") | await queue.turns_in("dropped")
        nodes, facts, turns = await self._indexer.truth()
        compared = [
            _Compared("turns done and episodes of the graph", done, await self._episodes(), open_ | parked | dirty),
            _Compared("nodes of the graph and filter columns", nodes, await journal.mirrored("node"), dirty),
            _Compared("facts of the graph and filter columns", facts, await journal.mirrored("fact"), dirty),
        ]
        kinds: tuple[tuple[ItemKind, set[str], str], ...] = (
            ("node", nodes, "nodes"),
            ("fact", facts, "facts"),
            ("episode", turns, "turns"),
        )
        for kind, expected, words in kinds:
            text, vectors = await self._indexer.held(kind)
            compared.append(_Compared(f"{words} and text index", expected, text, dirty | open_))
            if self._indexes.has_vectors:
                compared.append(_Compared(f"{words} and vector index", expected, vectors, dirty | open_))
        return compared, len(dirty | open_)

    async def _episodes(self) -> set[str]:
        found: set[str] = set()
        after = ""
        while page := await self._client.scan_episodes(after, _PAGE):
            found.update(episode.uuid for episode in page)
            after = page[-1].uuid
        return found

    def _problems(self, agreements: tuple[Agreement, ...]) -> list[str]:
        return [
            f"{one.what} differ: {one.missing:,} missing, {one.extra:,} too many (such as {', '.join(one.samples)}); "
            + self._mend(one)
            for one in agreements
            if not one.ok
        ]

    def _mend(self, one: Agreement) -> str:
        if one.what.startswith("turns done"):
            return f"`pps jobs retry {self._name} ID` takes a turn in again (`pps jobs show {self._name} TURN`: its ID)"
        return f"`pps reindex {self._name}` mends it"


def _lasting(before: _Compared, now: _Compared) -> _Compared:
    """Return the second look with only those differences that the first one had too."""
    passing = (now.missing - before.missing) | (now.extra - before.extra)
    return _Compared(now.what, now.expected, now.found, now.optional | passing)


def _agreement(one: _Compared) -> Agreement:
    samples = sorted(one.missing | one.extra)[:_SAMPLES]
    return Agreement(one.what, len(one.expected), len(one.found), len(one.missing), len(one.extra), tuple(samples))
