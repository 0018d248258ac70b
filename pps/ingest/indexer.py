"""Indexes follow the truth: every dirty id is read where it is true and put there anew.

An outbox row says only *this id changed*. Replaying it any number of times ends in the same index,
so a crash between a change and its index entry costs nothing but the replay.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pps.core.time import in_zone, iso, parse
from pps.core.values import Fact, ItemKind, Node, Turn, Vector, spoken
from pps.index.indexes import Cleared, EntityIndexes, IndexDoc
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
from pps.journal.entries import Change, DirtyChange
from pps.journal.journal import Journal
from pps.models.token_encoder import ColbertEncoder

_PAGE = 500
DRAINED_AT_ONCE = 10_000
"""Outbox rows of one change of the indexes: a commit costs more than a thousand rows."""
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
        rows: The numbers of the outbox rows that the write made before it. A row with another number was noted
            by somebody else, who may have changed or removed the thing since: that one is read where it is true.
        nodes, facts: What was written, by uuid.
        texts: Record → its text: who is a record is noted beside the graph, so it cannot be looked up meanwhile.
    """

    rows: range = range(0)
    nodes: Mapping[str, Node] = field(default_factory=dict[str, Node])
    facts: Mapping[str, Fact] = field(default_factory=dict[str, Fact])
    texts: Mapping[str, str] = field(default_factory=dict[str, str])

    def of(self, rows: Sequence[DirtyChange]) -> Written:
        """Return what still is as it was written, as far as the rows name it."""
        ours = [row.change for row in rows if row.seq in self.rows]
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
        return Written(self.rows, nodes, facts, self.texts)


NOTHING_WRITTEN = Written()


@dataclass(frozen=True, slots=True)
class _Filling:
    """How emptied indexes are filled: without a model, vectors stay as they are."""

    vectors: PassageVectors | None
    progress: Progress | None

    def kept(self, docs: Sequence[IndexDoc]) -> list[IndexDoc]:
        return (
            [replace(one, keeps_vectors=one.vectors is None) for one in docs]
            if self.vectors is None
            else [*docs]
        )

    def tell(self, stage: str, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(stage, done, max(done, total))


class Indexer:
    """Brings one entity's text and vector indexes to what journal, graph and anchors say.

    Attributes:
        draining: Held while the outbox is applied.
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
    ) -> None:
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

    async def drain(self, written: Written = NOTHING_WRITTEN) -> int:
        """Apply every outbox row that there is; return how many ids were brought up to date.

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
            await self._journal.mark_dirty([Change("node", one) for one in due])
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
        """Bring the indexes up to date with the clock and with whatever the outbox still holds; as ``embed_due``."""
        await self._turn_facts()
        await self.drain()
        waits_s = [
            await self._perspective_data.mend(self.draining),
            await self.embed_due(),
            await self.drift.step(),
            await self.token_states.step(),
        ]
        return min((one for one in waits_s if one is not None), default=None)

    async def purge(self) -> None:
        """Make sure that nothing of a forgotten text stays in the files of the indexes."""
        await self._indexes.purge()

    async def _drain(self, written: Written) -> int:
        """Apply every outbox row, and take away those that were applied."""
        total, last = 0, 0
        try:
            while rows := await self._journal.dirty(DRAINED_AT_ONCE, after=last):
                await self._apply([row.change for row in rows], written.of(rows))
                await self.records.applied()
                await self._journal.clear_dirty([row.seq for row in rows])
                last = rows[-1].seq
                total += len(rows)
                if len(rows) < DRAINED_AT_ONCE:
                    break  # what is noted from now on is for the next drain: turns may come in without end
        except BaseException:
            self.records.not_applied()
            raise
        return total

    async def _apply(self, changes: Sequence[Change], written: Written) -> None:
        """Index what exists of the given ids, and drop index entries of what does not.

        Some are read and embedded while those before them are put into the indexes.
        """
        ids: dict[ItemKind, list[str]] = {
            "node": [],
            "fact": [],
        }  # first: turns are indexed with their facts
        for change in dict.fromkeys(changes):
            ids.setdefault(change.kind, []).append(change.id)
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
                    before = asyncio.create_task(self._indexes.apply(docs, _gone(kind, some, docs)))
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
        await self._indexes.clear(which)
        if which != "text":
            await self.records.begin_anew()
        if which == "all":
            await self._client.fill_copy()
            await self._journal.perspective_data.clear()
        filling = _Filling(None if which == "text" else self._vectors, progress)
        counts = {
            "nodes": await self._rebuild_nodes(filling),
            "facts": await self._rebuild_facts(filling),
            "episodes": await self._rebuild_episodes(filling),
        }
        report = await self._anchors.resync(force=True)
        counts["anchors"] = report.added + report.changed + report.unchanged
        if which != "text":
            await self._perspective_data.made()
        await self.embed_due()
        return counts

    async def reembed(self, progress: Progress | None = None) -> dict[str, int]:
        """Give every node and fact of the graph a new vector, then rebuild the indexes."""
        after = ""
        while self._vectors and (nodes := await self._client.scan_nodes(after, _PAGE)):
            vectors = await self._vectors.of([node.name for node in nodes])
            await self._client.save_nodes(nodes, {node.uuid: vectors[node.name] for node in nodes})
            after = nodes[-1].uuid
        after = ""
        while self._vectors and (facts := await self._client.scan_facts(after, _PAGE)):
            vectors = await self._vectors.of([fact.text for fact in facts])
            await self._client.save_facts(facts, {fact.uuid: vectors[fact.text] for fact in facts})
            after = facts[-1].uuid
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
            await self._journal.mark_dirty([Change("fact", uuid) for uuid in turning])
        if turning or not last:
            await self._journal.set_meta(_TURNED, iso(moment))

    async def _rebuild_nodes(self, filling: _Filling) -> int:
        done, total, after = 0, (await self._client.counts()).nodes, ""
        while page := await self._client.scan_nodes(after, _PAGE):
            docs = await self._node_docs(
                [node.uuid for node in page], NOTHING_WRITTEN, filling.vectors
            )
            await self._indexes.apply(filling.kept(docs), [])
            await self.records.applied()
            done, after = done + len(page), page[-1].uuid
            filling.tell("nodes", done, total)
        return done

    async def _rebuild_facts(self, filling: _Filling) -> int:
        done, total, after = 0, (await self._client.counts()).facts, ""
        while page := await self._client.scan_facts(after, _PAGE):
            facts = await with_days(page, self._client, self._journal)
            if filling.vectors is self._vectors:
                await self._perspective_data.facts([one.uuid for one in page], facts)
            await self._indexes.apply(
                filling.kept(
                    await embedded(fact_docs(facts, self._journal.now()), filling.vectors)
                ),
                [],
            )
            done, after = done + len(page), page[-1].uuid
            filling.tell("facts", done, total)
        return done

    async def _rebuild_episodes(self, filling: _Filling) -> int:
        episodes = EpisodeDocs(self._client, self._journal, filling.vectors, self.records.kinds)
        done, total, after = 0, await self._journal.count_turns(), 0
        while page := await self._journal.scan(after, _PAGE):
            if filling.vectors is self._vectors:
                await self._perspective_data.turns([one.uuid for one in page], page)
                await self.token_states.note((), page)
            await self._indexes.apply(filling.kept(await episodes.of(page)), [])
            done, after = done + len(page), page[-1].seq
            filling.tell("turns", done, total)
        return done

    async def _docs(self, kind: ItemKind, ids: Sequence[str], written: Written) -> list[IndexDoc]:
        if kind == "node":
            return await self._node_docs(ids, written, self._vectors)
        if kind == "fact":
            facts = [written.facts[uuid] for uuid in ids if uuid in written.facts]
            others = [uuid for uuid in ids if uuid not in written.facts]
            await self._client.refresh("fact", others)
            facts += await with_days(await self._client.facts(others), self._client, self._journal)
            await self._perspective_data.facts(ids, facts)
            return await embedded(fact_docs(facts, self._journal.now()), self._vectors)
        if kind == "episode":
            await self._client.refresh("episode", ids)
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
        await self._client.refresh("node", others)
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
