"""One ledger: proves by their ids that journal, graph and indexes of a memory agree."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from pps.core.errors import PPSError
from pps.core.reports import Agreement, Ledger, Stats
from pps.core.values import ItemKind
from pps.index.indexes import EntityIndexes
from pps.ingest.index_docs import COLLECTIONS
from pps.ingest.indexer import Indexer
from pps.ingest.token_states import has_states
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.journal import Journal

PUBLISHED_GRAPH = "published graph"
_DAMAGED = "stop the server, keep a copy, restore a backup"
_PAGE = 500
_SAMPLES = 3
_LOOKS = 3
_PAUSE_S = 0.5
_WORDS: Mapping[ItemKind, str] = {"node": "nodes", "fact": "facts", "episode": "turns"}


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
        client: IsolatedGraphitiClient,
        journal: Journal,
        indexes: EntityIndexes,
        indexer: Indexer,
        missing: Callable[[], Awaitable[tuple[str, ...]]] | None = None,
    ) -> None:
        """``missing`` returns what the server that the graph is published on lacks of its indexes."""
        self._name = client.entity.name
        self._client = client
        self._journal = journal
        self._indexes = indexes
        self._indexer = indexer
        self._missing = missing

    async def ledger(self) -> Ledger:
        """Return what agrees, what does not, and damage to the journal's file.

        What differs in one look only was being written.
        """
        damage = [
            f"{self._journal.path.name} is damaged ({one}): {_DAMAGED}"
            for one in await self._journal.damage()
        ]
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

    async def stats(self, store: str, anchors: int) -> Stats:
        """Return how much the memory holds; ``store`` and the number of ``anchors`` are known to who asks."""
        counts, journal = await self._client.counts(), self._journal
        text, vectors = await self._indexes.counts()
        first_turn_at, last_turn_at = await journal.span()
        return Stats(
            entity=self._name,
            store=store,
            turns=await journal.count_turns(),
            nodes=counts.nodes,
            facts=counts.facts,
            episodes=counts.episodes,
            anchors=anchors,
            unfinished_jobs=await journal.unfinished(),
            index_lag=await self._indexer.lag(),
            text_indexed=text,
            vector_indexed=vectors,
            fingerprint=await journal.get_meta("fingerprint") or "",
            first_turn_at=first_turn_at,
            last_turn_at=last_turn_at,
        )

    async def _truth(self) -> dict[ItemKind, set[str]]:
        """Return the ids that both indexes should hold: of nodes, of facts (no relations), and of turns."""
        nodes, facts, turns = set[str](), set[str](), set[str]()
        after = ""
        while page := await self._client.scan_nodes(after, _PAGE):
            nodes.update(node.uuid for node in page)
            after = page[-1].uuid
        after = ""
        while found := await self._client.scan_facts(after, _PAGE):
            facts.update(fact.uuid for fact in found if fact.kind == "fact")
            after = found[-1].uuid
        seq = 0
        while said := await self._journal.scan(seq, _PAGE):
            turns.update(turn.uuid for turn in said)
            seq = said[-1].seq
        return {"node": nodes, "fact": facts, "episode": turns}

    async def _held(self, kind: ItemKind) -> tuple[set[str], set[str]]:
        """Return the ids of a kind in the text index, and those in the vector index (the same without a model).

        A record whose text has no vectors is not in it, unless they are to be made later, or never.
        """
        held: tuple[set[str], set[str]] = (set(), set())
        states = self._journal.vector_states
        later = (
            await states.without()
            if kind == "node"
            else await states.sources()
            if kind == "episode"
            else set[str]()
        )
        for collection in COLLECTIONS[kind]:
            vectors, text = await self._indexes.owners(collection)
            held[0].update(text)
            held[1].update(text if vectors is None else vectors)
            if collection == "records" and vectors is not None:
                held[1].difference_update(await self._journal.records.nodes() - vectors)
        held[1].update(later & held[0])
        return held

    async def _look(self) -> tuple[list[_Compared], int]:
        journal = self._journal
        lagging = await self._indexer.lagging()
        done, queue = await journal.queue.turns_in("done"), journal.queue
        open_ = await queue.turns_in("queued") | await queue.turns_in("running")
        parked = await queue.turns_in("failed") | await queue.turns_in("dropped")
        true = await self._truth()
        compared = [
            _Compared(
                "turns done and episodes of the graph",
                done,
                await self._episodes(),
                open_ | parked | lagging,
            ),
        ]
        compared += await self._published(lagging)
        for kind, expected in true.items():
            text, vectors = await self._held(kind)
            compared.append(
                _Compared(f"{_WORDS[kind]} and text index", expected, text, lagging | open_)
            )
            if self._indexes.has_vectors:
                compared.append(
                    _Compared(
                        f"{_WORDS[kind]} and vector index", expected, vectors, lagging | open_
                    )
                )
        token_owners = await self._indexes.token_owners()
        if token_owners is not None:
            with_states = await self._turns_with_states()
            compared.append(
                _Compared("turns and token states", with_states, token_owners, lagging | open_)
            )
        return compared, len(lagging | open_)

    async def _published(self, lagging: AbstractSet[str]) -> list[_Compared]:
        """Compare the graph that is published on Neo4j, where that answers; ``_surroundings`` says when it does not."""
        if self._indexer.publisher is None:
            return []
        try:
            found = await self._indexer.publisher.differences()
        except PPSError:
            return []
        return [
            _Compared(
                f"{kind} and {PUBLISHED_GRAPH}",
                set(expected),
                (set(expected) - found.missing[kind]) | found.extra[kind],
                lagging,
            )
            for kind, expected in found.expected.items()
        ]

    async def _turns_with_states(self) -> set[str]:
        turns, seq = set[str](), 0
        while page := await self._journal.scan(seq, _PAGE):
            turns.update(turn.uuid for turn in page if has_states(turn))
            seq = page[-1].seq
        return turns

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
        if one.what.endswith(PUBLISHED_GRAPH):
            return f"`pps publish {self._name} neo4j --anew` writes it again"
        return f"`pps reindex {self._name}` mends it"

    async def _surroundings(self) -> tuple[str, ...]:
        """Return what stands in the way of publishing, and what the server lacks of its indexes."""
        if self._indexer.publisher is None:
            return ()
        problems = (await self._indexer.publisher.state()).problems()
        try:
            absent = await self._missing() if self._missing else ()
        except PPSError as error:
            return (*problems, f"the published graph was not compared: {error.message}")
        lacks = [f"Neo4j lacks {one}; the next start of the server makes it" for one in absent]
        return (*problems, *lacks)


def _lasting(before: _Compared, now: _Compared) -> _Compared:
    """Return the second look with only those differences that the first one had too."""
    passing = (now.missing - before.missing) | (now.extra - before.extra)
    return _Compared(now.what, now.expected, now.found, now.optional | passing)


def _agreement(one: _Compared) -> Agreement:
    samples = sorted(one.missing | one.extra)[:_SAMPLES]
    return Agreement(
        one.what,
        len(one.expected),
        len(one.found),
        len(one.missing),
        len(one.extra),
        tuple(samples),
    )
