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
from pps.ingest.indexer import Indexer, has_states
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.journal import Journal

PUBLISHED_GRAPH = "published graph"
_DAMAGED = "stop the server, keep a copy, restore a backup"
_PAGE = 500
_SAMPLES = 3
_LOOKS = 3
_PAUSE_S = 0.5
_NOUNS: Mapping[ItemKind, str] = {"node": "nodes", "fact": "facts", "episode": "turns"}


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Two places that should hold the same ids. ``optional`` ids may be there or not."""

    name: str
    expected: AbstractSet[str]
    held: AbstractSet[str]
    optional: AbstractSet[str] = frozenset()

    @property
    def missing(self) -> AbstractSet[str]:
        return self.expected - self.held - self.optional

    @property
    def extra(self) -> AbstractSet[str]:
        return self.held - self.expected - self.optional

    @property
    def agrees(self) -> bool:
        return not self.missing and not self.extra

    def agreement(self) -> Agreement:
        samples = sorted(self.missing | self.extra)[:_SAMPLES]
        return Agreement(
            self.name,
            len(self.expected),
            len(self.held),
            len(self.missing),
            len(self.extra),
            tuple(samples),
        )


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
        """``missing`` returns the missing indexes of the server on which the graph is published."""
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
            f"{self._journal.path.name} is damaged ({problem}): {_DAMAGED}"
            for problem in await self._journal.damage()
        ]
        comparisons, waiting = await self._compare()
        for _ in range(_LOOKS - 1):
            if all(comparison.agrees for comparison in comparisons):
                break
            await asyncio.sleep(_PAUSE_S)
            before = {comparison.name: comparison for comparison in comparisons}
            again, waiting = await self._compare()
            comparisons = [_lasting(before[comparison.name], comparison) for comparison in again]
        agreements = tuple(comparison.agreement() for comparison in comparisons)
        problems = (*damage, *self._problems(agreements))
        return Ledger(agreements, waiting, problems, await self._surroundings())

    async def stats(self, store: str, anchors: int) -> Stats:
        """Return the sizes of the memory; ``store`` and the number of ``anchors`` are passed in."""
        journal = self._journal
        counts = await self._client.counts()
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
        """Return the ids that both indexes should have: of nodes, of facts, and of turns."""
        node_ids: set[str] = set()
        after = ""
        while nodes := await self._client.scan_nodes(after, _PAGE):
            node_ids.update(node.uuid for node in nodes)
            after = nodes[-1].uuid
        fact_ids: set[str] = set()
        after = ""
        while facts := await self._client.scan_facts(after, _PAGE):
            fact_ids.update(fact.uuid for fact in facts if fact.kind == "fact")
            after = facts[-1].uuid
        turn_ids: set[str] = set()
        seq = 0
        while turns := await self._journal.scan(seq, _PAGE):
            turn_ids.update(turn.uuid for turn in turns)
            seq = turns[-1].seq
        return {"node": node_ids, "fact": fact_ids, "episode": turn_ids}

    async def _indexed_ids(self, kind: ItemKind) -> tuple[set[str], set[str]]:
        """Return the ids of a kind in the text index, and those in the vector index.

        Without a model both are the same. A record without vectors is missing in the latter, unless
        they are to be made later or never.
        """
        # Read before the indexes: vectors that are made meanwhile are then in them.
        states = self._journal.vector_states
        without_vectors: set[str] = set()
        if kind == "node":
            without_vectors = await states.without()
        elif kind == "episode":
            without_vectors = await self._journal.records.turns_of_typed()
        in_text: set[str] = set()
        in_vectors: set[str] = set()
        for collection in COLLECTIONS[kind]:
            vectors, text = await self._indexes.owners(collection)
            in_text.update(text)
            in_vectors.update(text if vectors is None else vectors)
            if collection == "records" and vectors is not None:
                in_vectors.difference_update(await self._journal.records.nodes() - vectors)
        in_vectors.update(without_vectors & in_text)  # these count as held
        return in_text, in_vectors

    async def _compare(self) -> tuple[list[_Comparison], int]:
        """Return the comparisons of one look, and how many turns wait to be taken in."""
        queue = self._journal.queue
        lagging = await self._indexer.lagging()
        done = await queue.turns_in("done")
        unfinished = await queue.turns_in("queued") | await queue.turns_in("running")
        parked = await queue.turns_in("failed") | await queue.turns_in("dropped")
        waiting = lagging | unfinished
        truth = await self._truth()
        comparisons = [
            _Comparison(
                "turns done and episodes of the graph",
                done,
                await self._episodes(),
                waiting | parked,
            ),
        ]
        comparisons += await self._compare_published(lagging)
        for kind, expected in truth.items():
            text, vectors = await self._indexed_ids(kind)
            nouns = _NOUNS[kind]
            comparisons.append(_Comparison(f"{nouns} and text index", expected, text, waiting))
            if self._indexes.has_vectors:
                comparisons.append(
                    _Comparison(f"{nouns} and vector index", expected, vectors, waiting)
                )
        token_owners = await self._indexes.token_owners()
        if token_owners is not None:
            with_states = await self._turns_with_states()
            comparisons.append(
                _Comparison("turns and token states", with_states, token_owners, waiting)
            )
        return comparisons, len(waiting)

    async def _compare_published(self, lagging: AbstractSet[str]) -> list[_Comparison]:
        """Compare the graph on Neo4j if that answers; ``_surroundings`` reports if it does not."""
        if self._indexer.publisher is None:
            return []
        try:
            differences = await self._indexer.publisher.differences()
        except PPSError:
            return []
        comparisons: list[_Comparison] = []
        for kind, ids in differences.expected.items():
            expected = set(ids)
            held = (expected - differences.missing[kind]) | differences.extra[kind]
            comparisons.append(
                _Comparison(f"{kind} and {PUBLISHED_GRAPH}", expected, held, lagging)
            )
        return comparisons

    async def _turns_with_states(self) -> set[str]:
        ids: set[str] = set()
        seq = 0
        while turns := await self._journal.scan(seq, _PAGE):
            ids.update(turn.uuid for turn in turns if has_states(turn))
            seq = turns[-1].seq
        return ids

    async def _episodes(self) -> set[str]:
        ids: set[str] = set()
        after = ""
        while episodes := await self._client.scan_episodes(after, _PAGE):
            ids.update(episode.uuid for episode in episodes)
            after = episodes[-1].uuid
        return ids

    def _problems(self, agreements: tuple[Agreement, ...]) -> list[str]:
        """Return what differs, and the command that mends it."""
        problems: list[str] = []
        for agreement in agreements:
            if not agreement.ok:
                samples = ", ".join(agreement.samples)
                problems.append(
                    f"{agreement.what} differ: {agreement.missing:,} missing, "
                    f"{agreement.extra:,} too many (such as {samples}); {self._remedy(agreement)}"
                )
        return problems

    def _remedy(self, agreement: Agreement) -> str:
        name = self._name
        if agreement.what.startswith("turns done"):
            return (
                f"`pps jobs retry {name} ID` takes a turn in again "
                f"(`pps jobs show {name} TURN`: its ID)"
            )
        if agreement.what.endswith(PUBLISHED_GRAPH):
            return f"`pps publish {name} neo4j --anew` writes it again"
        return f"`pps reindex {name}` mends it"

    async def _surroundings(self) -> tuple[str, ...]:
        """Return the problems of publishing, and the missing indexes of the server."""
        if self._indexer.publisher is None:
            return ()
        problems = (await self._indexer.publisher.state()).problems()
        try:
            absent = await self._missing() if self._missing else ()
        except PPSError as error:
            return (*problems, f"the published graph was not compared: {error.message}")
        lacks = [f"Neo4j lacks {index}; the next start of the server makes it" for index in absent]
        return (*problems, *lacks)


def _lasting(before: _Comparison, now: _Comparison) -> _Comparison:
    """Return the second look with only those differences that the first one had too."""
    passing = (now.missing - before.missing) | (now.extra - before.extra)
    return _Comparison(now.name, now.expected, now.held, now.optional | passing)
