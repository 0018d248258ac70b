"""Indexes follow the change log: every changed thing is read where it is true and put there anew.

Applying an entry any number of times ends in the same index, so a crash between a change and its index entry costs
nothing but that. Full text and vectors each have a position of their own; where both are at the same one, which is the
rule, the documents are made once for both.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from pps.core.errors import ModelUnavailable, StoreError
from pps.core.time import in_zone, iso, parse
from pps.core.values import Fact, ItemKind, Node, Turn, Vector, spoken
from pps.index.indexes import FOLLOWERS, Cleared, EntityIndexes, Follower, IndexDoc
from pps.ingest.anchors import Anchors
from pps.ingest.drift import Drift
from pps.ingest.index_docs import (
    COLLECTIONS,
    WINDOW_TURNS,
    EpisodeDocs,
    embedded,
    fact_docs,
    node_docs,
)
from pps.ingest.passage_vectors import PassageVectors
from pps.ingest.perspective_data import PerspectiveData
from pps.ingest.support import with_days
from pps.ingest.token_states import TokenStates
from pps.isolation.client import IsolatedGraphitiClient
from pps.isolation.publishing import Publisher
from pps.journal.change_log import LogEntry
from pps.journal.entries import GRAPH_KINDS, Change
from pps.journal.journal import Journal
from pps.models.token_encoder import ColbertEncoder

_PAGE = 500
DRAINED_AT_ONCE = 10_000
"""Log entries of one change of the indexes: a commit costs more than a thousand entries."""
SAVED_AFTER_ENTRIES = 256
_SAVED_AFTER_S = 30.0
"""Entries after which the positions are saved, and how old the last save is when an idle memory saves them.

A crash has so many entries applied again; to save costs two fsyncs and a transaction.
"""
_APPLIED_AT_ONCE, _EMBEDDED_AT_ONCE = 10_000, 512
"""Documents of one kind that go into the indexes together, without vectors and with them."""
_TURNED = "facts_turned_at"
REEMBEDDING = "reembedding"
"""Set in the journal while vectors are being replaced; a memory that has it set is not opened."""
Progress = Callable[[str, int, int], None]
"""Called with a stage, how much is done and how much there is."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a write has just put into the graph, so that it need not be read back.

    Attributes:
        positions: Those of the log entries that the write appended. An entry at another position is somebody else's,
            who may have changed or removed the thing since: that one is read where it is true.
        nodes, facts: What was written, by uuid.
        texts: Record → its text: who is a record is noted beside the graph, so it cannot be looked up meanwhile.
    """

    positions: range = range(0)
    nodes: Mapping[str, Node] = field(default_factory=dict[str, Node])
    facts: Mapping[str, Fact] = field(default_factory=dict[str, Fact])
    texts: Mapping[str, str] = field(default_factory=dict[str, str])

    def of(self, entries: Sequence[LogEntry]) -> Written:
        """Return what still is as it was written, as far as the entries name it."""
        ours = [entry.change for entry in entries if entry.position in self.positions]
        nodes = {
            one.id: self.nodes[one.id]
            for one in ours
            if one.kind == "node" and one.id in self.nodes
        }
        facts = {
            one.id: self.facts[one.id]
            for one in ours
            if one.kind == "fact" and one.id in self.facts
        }
        return Written(self.positions, nodes, facts, self.texts)


NOTHING_WRITTEN = Written()


@dataclass(frozen=True, slots=True)
class _Filling:
    """How emptied indexes are filled: which, and with what model; None embeds nothing."""

    to: tuple[Follower, ...]
    vectors: PassageVectors | None
    progress: Progress | None

    def tell(self, stage: str, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(stage, done, max(done, total))


class Indexer:
    """Brings one entity's text and vector indexes to what journal, graph and anchors say.

    Attributes:
        draining: Held while the log is applied.
    """

    def __init__(
        self,
        client: IsolatedGraphitiClient,
        journal: Journal,
        indexes: EntityIndexes,
        vectors: PassageVectors | None,
        anchors: Anchors,
        drift: Drift,
        colbert: ColbertEncoder | None = None,
        publisher: Publisher | None = None,
    ) -> None:
        self.publisher = publisher
        self.records = drift.records
        self.token_states = TokenStates(journal, indexes, colbert)
        self.drift = drift
        self._client = client
        self._journal = journal
        self._indexes = indexes
        self._vectors = vectors
        self._anchors = anchors
        self._episodes = EpisodeDocs(client, journal, vectors, drift.records.kinds)
        self._perspective_data = PerspectiveData(client, journal, vectors)
        self.draining = asyncio.Lock()
        self._saved_at = time.monotonic()
        self._saved_position = self._dropped = 0
        self._behind: list[Follower] = []

    async def follow(self) -> None:
        """Read where the indexes are; before anything is indexed. ``catch_up`` brings them to the end of the log."""
        span = await self._journal.log_span()
        await self._indexes.follow(span.dropped)
        self._saved_position = self._passed()
        self._dropped = span.dropped
        self._behind = [
            name
            for name, position in self._indexes.positions.items()
            if not span.dropped <= position <= span.last
        ]

    async def catch_up(self) -> None:
        """Make indexes anew that are behind what the log reaches, and bring all to its end.

        Raises:
            ModelUnavailable, StoreUnavailable: ``settle`` tries again, and so does the next start.
        """
        for name in self._indexes.positions:
            if name in self._behind:
                await self.rebuild(which=name)
        await self.drain()

    async def lag(self) -> int:
        """Return how many entries of the log are not in every index yet."""
        return await self._journal.count_entries(self._passed())

    async def lagging(self) -> set[str]:
        """Return the ids that are not in every index as they are now."""
        entries = await self._journal.log_entries(self._passed(), DRAINED_AT_ONCE)
        return {entry.change.id for entry in entries}

    async def save_positions(self) -> None:
        """Put the positions of the followers on disk, and drop the entries that all have passed.

        An index that is being made anew has no position to save: after a crash it is made anew again.
        """
        if self._behind:
            return
        if self._unsaved():
            self._saved_position = await self._indexes.save_positions()
            self._saved_at = time.monotonic()
        passed = self._saved_position
        if self.publisher is not None:
            passed = min(passed, await self.publisher.save_position())
        if passed > self._dropped:
            await self._journal.drop_entries(passed)
            self._dropped = passed

    async def close(self) -> None:
        """Save the positions; what cannot be saved is applied again at the next start."""
        with contextlib.suppress(StoreError):
            await self.save_positions()

    async def drain(self, written: Written = NOTHING_WRITTEN) -> int:
        """Apply every entry that the indexes have not; return how many there were.

        One at a time: what an earlier one read may be gone by the time it is indexed, and the later one drops it.

        Args:
            written: What the last write has put into the graph.
        """
        async with self.draining:
            total = await self._drain(written)
        if self.records.waited_too_long():
            await self.embed_due()
        return total

    async def embed_due(self) -> float | None:
        """Embed the records whose time has come; return in how many seconds the next one's comes, None for none."""
        while due := await self.records.take(_EMBEDDED_AT_ONCE):
            await self._journal.log_changes([Change("node", one) for one in due])
            await self.drain()
        return await self.records.next_s()

    async def known_vectors(
        self, nodes: Sequence[Node], facts: Sequence[Fact], turns: Sequence[Turn]
    ) -> dict[str, Vector]:
        """Return passage → vector of what some things are found by, as far as the index has them. No model is asked."""
        if self._vectors is None:
            return {}
        texts = await self._journal.records.texts([node.uuid for node in nodes])
        told = [(node, texts[node.uuid].content if node.uuid in texts else "") for node in nodes]
        kinds = self.records.kinds
        docs = [
            doc for node, text in told if node.kind not in kinds for doc in node_docs(node, text)
        ]
        docs += await self.records.texts([one for one in told if one[0].kind in kinds])
        docs += fact_docs(facts, self._journal.now())
        docs += [(IndexDoc("episode", one.uuid, "episodes", ""), spoken(one)) for one in turns]
        passages = await self._vectors.split([text for _, text in docs])
        owners: dict[str, list[str]] = {}
        for doc, _ in docs:
            owners.setdefault(doc.collection, []).append(doc.owner)
        rows = {name: await self._indexes.parts(name, wanted) for name, wanted in owners.items()}
        found: dict[str, Vector] = {}
        for (doc, _), parts in zip(docs, passages, strict=True):
            vectors = rows[doc.collection].get(doc.owner, ())
            if len(vectors) == len(parts):
                found.update(zip(parts, vectors, strict=True))
        return found

    def know(self, vectors: Mapping[str, Vector]) -> None:
        """Take vectors of passages that are to be indexed: the model is not asked for them."""
        if self._vectors is not None:
            self._vectors.know(vectors)

    async def know_near(self, turns: Sequence[str]) -> None:
        """Have the vectors at hand that the windows of turns and of their neighbours are made of."""
        near = await self._journal.turns(await self._journal.near(turns, 2 * WINDOW_TURNS))
        facts = await self._client.facts_of_episodes([turn.uuid for turn in near])
        self.know(await self.known_vectors((), facts, near))

    async def settle(self) -> float | None:
        """Bring the indexes up to date with the clock and with whatever the log still holds; as ``embed_due``."""
        await self._turn_facts()
        await self.catch_up()
        if time.monotonic() - self._saved_at > _SAVED_AFTER_S:
            await self.save_positions()
        waits_s = [
            await self._perspective_data.mend(self.draining),
            await self.embed_due(),
            await self.drift.step(),
            await self.token_states.step(),
        ]
        return min((one for one in waits_s if one is not None), default=None)

    async def purge(self) -> list[str]:
        """Let all that follows the log pass it, and take what it dropped off the disk: text and ids that are forgotten.

        Returns:
            Those that hold some of it still: "text", "vectors", "neo4j". A start brings them up to date too, and
            Neo4j has it as soon as that is back.
        """
        end = (await self._journal.log_span()).last
        pending: list[str] = []
        with contextlib.suppress(StoreError, ModelUnavailable):
            await self.drain()
        for name, position in self._indexes.positions.items():
            try:
                await self._indexes.purge(name)
            except StoreError:
                pending.append(name)
            else:
                if position < end:
                    pending.append(name)
        if self.publisher is not None and not await self.publisher.forget():
            pending.append("neo4j")
        with contextlib.suppress(StoreError):  # the positions are saved with the next change
            await self.save_positions()
        return pending

    async def _drain(self, written: Written) -> int:
        """Apply every entry; first to the followers that are furthest behind, until all are at one position."""
        total = 0
        try:
            while True:
                positions = self._indexes.positions
                passed = self._passed()
                followers: list[Follower] = [
                    name for name, position in positions.items() if position == passed
                ]
                ahead = [position for position in positions.values() if position > passed]
                entries = await self._journal.log_entries(passed, DRAINED_AT_ONCE)
                has_more = len(entries) == DRAINED_AT_ONCE
                if ahead and entries and entries[-1].position > min(ahead):
                    entries = [entry for entry in entries if entry.position <= min(ahead)]
                    has_more = False
                if entries:
                    changes = [entry.change for entry in entries]
                    await self._apply(changes, written.of(entries), followers)
                    await self.records.applied()
                    total += len(entries)
                if ahead and not has_more:
                    self._indexes.passed(followers, min(ahead))
                    continue
                if entries:
                    self._indexes.passed(followers, entries[-1].position)
                if not has_more:
                    break  # what is logged from now on is for the next drain: turns may come in without end
        except BaseException:
            self.records.not_applied()
            raise
        if self.publisher is not None:
            self.publisher.notify()
        if self._unsaved() >= SAVED_AFTER_ENTRIES:
            await self.save_positions()
        return total

    def _passed(self) -> int:
        """Return the position that every follower has passed."""
        return min(self._indexes.positions.values())

    def _unsaved(self) -> int:
        """Return by how many positions the indexes are further than what is saved of them."""
        return self._passed() - self._saved_position

    async def _apply(
        self, changes: Sequence[Change], written: Written, followers: Collection[Follower]
    ) -> None:
        """Index what exists of the given ids, and drop index entries of what does not.

        Some are read and embedded while those before them are put into the indexes.
        """
        ids: dict[ItemKind, list[str]] = {
            "node": [],
            "fact": [],
        }  # first: turns are indexed with their facts
        for change in dict.fromkeys(changes):
            if change.kind not in GRAPH_KINDS:
                ids.setdefault(cast("ItemKind", change.kind), []).append(change.id)
        if turns := ids.get("episode"):  # and they are found by the words of their neighbours
            ids["episode"] = list(
                dict.fromkeys([*turns, *await self._journal.near(turns, WINDOW_TURNS)])
            )
        at_once = _APPLIED_AT_ONCE if self._vectors is None else _EMBEDDED_AT_ONCE
        before: asyncio.Task[None] | None = None
        try:
            for kind, wanted in ids.items():
                for at in range(0, len(wanted), at_once):
                    some = wanted[at : at + at_once]
                    docs = await self._docs(kind, some, written)
                    if before is not None:
                        await before
                    before = asyncio.create_task(
                        self._indexes.apply(docs, _gone(kind, some, docs), followers)
                    )
            if before is not None:
                await before
        except BaseException:
            await _over(before)
            raise

    async def rebuild(
        self, progress: Progress | None = None, which: Cleared = "all"
    ) -> dict[str, int]:
        """Empty the indexes, or one, and fill them from graph, journal and anchors; return documents by kind.

        Where only ``text`` is made anew, no node, fact or turn is embedded.
        """
        position = (await self._journal.log_span()).last
        to = FOLLOWERS if which == "all" else (which,)
        self._behind = list(dict.fromkeys([*self._behind, *to]))
        await self._indexes.clear(which)
        if which != "text":
            await self.records.begin_anew()
        if which == "all":
            await self._journal.perspective_data.clear()
        filling = _Filling(to, None if which == "text" else self._vectors, progress)
        counts = {
            "nodes": await self._rebuild_nodes(filling),
            "facts": await self._rebuild_facts(filling),
            "episodes": await self._rebuild_episodes(filling),
        }
        report = await self._anchors.resync(force=True)
        counts["anchors"] = report.added + report.changed + report.unchanged
        if which != "text":
            await self._perspective_data.made()
        # What has changed since the scan began is applied behind it.
        self._indexes.passed([name for name in self._indexes.positions if name in to], position)
        self._behind = [name for name in self._behind if name not in to]
        await self.drain()
        await self.save_positions()
        await self.embed_due()
        if self.publisher is not None and which != "text":
            await self.publisher.begin_anew()
        return counts

    async def reembed(self, progress: Progress | None = None) -> dict[str, int]:
        """Make every vector anew."""
        counts = await self.rebuild(progress)
        await self._journal.set_meta(REEMBEDDING, "")
        return counts

    async def _turn_facts(self) -> None:
        """Note the facts that ended by the clock alone since this was last asked; one that begins is there already."""
        moment = self._journal.now()
        last = await self._journal.get_meta(_TURNED)
        turning: list[str] = []
        if last:
            since = in_zone(parse(last), self._journal.zone)
            turning = await self._journal.facts_turning(since, moment)
        if turning:
            await self._journal.log_changes([Change("fact", uuid) for uuid in turning])
        if turning or not last:
            await self._journal.set_meta(_TURNED, iso(moment))

    async def _rebuild_nodes(self, filling: _Filling) -> int:
        done = 0
        total = (await self._client.counts()).nodes
        after = ""
        while page := await self._client.scan_nodes(after, _PAGE):
            docs = await self._node_docs(
                [node.uuid for node in page], NOTHING_WRITTEN, filling.vectors
            )
            await self._indexes.apply(docs, to=filling.to)
            await self.records.applied()
            done += len(page)
            after = page[-1].uuid
            filling.tell("nodes", done, total)
        return done

    async def _rebuild_facts(self, filling: _Filling) -> int:
        done = 0
        total = (await self._client.counts()).facts
        after = ""
        while page := await self._client.scan_facts(after, _PAGE):
            facts = await with_days(page, self._client, self._journal)
            if filling.vectors is self._vectors:
                await self._perspective_data.facts([one.uuid for one in page], facts)
            docs = await embedded(fact_docs(facts, self._journal.now()), filling.vectors)
            await self._indexes.apply(docs, to=filling.to)
            done += len(page)
            after = page[-1].uuid
            filling.tell("facts", done, total)
        return done

    async def _rebuild_episodes(self, filling: _Filling) -> int:
        episodes = EpisodeDocs(self._client, self._journal, filling.vectors, self.records.kinds)
        done = 0
        total = await self._journal.count_turns()
        after = 0
        while page := await self._journal.scan(after, _PAGE):
            if filling.vectors is self._vectors:
                await self._perspective_data.turns([one.uuid for one in page], page)
                await self.token_states.note((), page)
            await self._indexes.apply(await episodes.of(page), to=filling.to)
            done += len(page)
            after = page[-1].seq
            filling.tell("turns", done, total)
        return done

    async def _docs(self, kind: ItemKind, ids: Sequence[str], written: Written) -> list[IndexDoc]:
        if kind == "node":
            return await self._node_docs(ids, written, self._vectors)
        if kind == "fact":
            facts = [written.facts[uuid] for uuid in ids if uuid in written.facts]
            others = [uuid for uuid in ids if uuid not in written.facts]
            facts += await with_days(await self._client.facts(others), self._client, self._journal)
            await self._perspective_data.facts(ids, facts)
            return await embedded(fact_docs(facts, self._journal.now()), self._vectors)
        if kind == "episode":
            turns = await self._journal.turns(ids)
            docs = await self._episodes.of(turns, written.facts)
            await self._perspective_data.turns(ids, turns)
            await self.token_states.note(ids, turns)
            return docs
        return []

    async def _node_docs(
        self, ids: Sequence[str], written: Written, vectors: PassageVectors | None
    ) -> list[IndexDoc]:
        """Return the entries of nodes; a record has a second one, of what it says."""
        nodes = [written.nodes[uuid] for uuid in ids if uuid in written.nodes]
        others = [uuid for uuid in ids if uuid not in written.nodes]
        nodes += await self._client.nodes(others)
        await self.records.gone(_absent(ids, nodes))
        turns = await self._journal.records.texts(
            [uuid for uuid in ids if uuid not in written.texts]
        )
        texts = {**{node: turn.content for node, turn in turns.items()}, **written.texts}
        if vectors is self._vectors:
            await self._perspective_data.nodes(ids, nodes, texts)
        typed = [
            (node, texts.get(node.uuid, "")) for node in nodes if node.kind in self.records.kinds
        ]
        docs = [
            doc
            for one in nodes
            if one.kind not in self.records.kinds
            for doc in node_docs(one, texts.get(one.uuid, ""))
        ]
        return [*await embedded(docs, vectors), *await self.records.docs(typed)]


async def _over(work: asyncio.Future[None] | None) -> None:
    """Wait until a write that is given up has ended, whatever became of it."""
    if work is None:
        return
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        work.cancel()
    await asyncio.wait([work])
    if not work.cancelled():
        work.exception()


def _gone(kind: ItemKind, ids: Sequence[str], docs: Sequence[IndexDoc]) -> list[tuple[str, str]]:
    """Return the collections and owners that have no document any more."""
    present = {(doc.collection, doc.owner) for doc in docs}
    places = [(collection, owner) for collection in COLLECTIONS.get(kind, ()) for owner in ids]
    return [place for place in places if place not in present]


def _absent(ids: Iterable[str], there: Sequence[Node] | Sequence[Fact]) -> set[str]:
    return set(ids).difference(one.uuid for one in there)
