"""Indexes follow the change log: each changed item is read from the store and indexed again.

Applying an entry several times gives the same index, so a crash between a change and its index
entry only repeats work. Full text and vectors each have a position in the log; when both are at the
same one, which is the rule, the documents are made once for both. Token states of turns are made
later, in steps: a turn is only noted when it is indexed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from pps.core.errors import ModelUnavailable, PPSError, StoreError
from pps.core.text import content_hash
from pps.core.time import in_zone, iso, parse
from pps.core.values import Fact, ItemKind, Node, Turn, Vector, spoken
from pps.index.indexes import FOLLOWERS, Cleared, EntityIndexes, Follower, IndexDoc
from pps.ingest.anchors import Anchors
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
from pps.ingest.record_vectors import Drift
from pps.ingest.support import with_days
from pps.isolation.client import IsolatedGraphitiClient
from pps.isolation.publishing import Publisher
from pps.journal.change_log import LogEntry
from pps.journal.entries import GRAPH_KINDS, Change
from pps.journal.journal import Journal
from pps.models.token_encoder import ColbertEncoder

_AT_ONCE = 8
"""Turns of one step: other work waits for no more."""
_RETRY_S = 30.0
_log = logging.getLogger(__name__)
_PAGE = 500
DRAINED_AT_ONCE = 10_000
"""Log entries applied to the indexes at once: a commit costs more than a thousand entries."""
SAVED_AFTER_ENTRIES = 256
_SAVED_AFTER_S = 30.0
"""The positions are saved after so many entries; an idle memory saves them after so many seconds.

After a crash at most so many entries are applied again. Saving costs two fsyncs and a transaction.
"""
_APPLIED_AT_ONCE = 10_000
_EMBEDDED_AT_ONCE = 512
"""Documents of one kind that go into the indexes together, without vectors and with them."""
_TURNED = "facts_turned_at"
REEMBEDDING = "reembedding"
"""Set in the journal while vectors are being replaced; a memory that has it set is not opened."""
Progress = Callable[[str, int, int], None]
"""Called with a stage, the number done and the total."""


def has_states(turn: Turn) -> bool:
    """Tell whether a turn has token states; turns of tools have none."""
    return turn.role != "tool"


def compared_text(turn: Turn) -> str:
    """Return the text of a turn's states: its content, after its actor if it has one."""
    return spoken(turn) if turn.actor else turn.content


class TokenStates:
    """Notes which turns need token states, and makes them step by step; none without an encoder.

    Turns of tools have none: they are most of a coding agent's turns, and queries do not ask for
    them.
    """

    def __init__(
        self, journal: Journal, indexes: EntityIndexes, encoder: ColbertEncoder | None
    ) -> None:
        self._journal = journal
        self._indexes = indexes
        self._encoder = encoder
        self._begun = False

    async def note(self, ids: Iterable[str], turns: Sequence[Turn]) -> None:
        """Note turns whose text is new or has changed; drop the states of other ``ids``."""
        if self._encoder is None:
            return
        hashes = {
            turn.uuid: content_hash(compared_text(turn)) for turn in turns if has_states(turn)
        }
        await self._indexes.note_tokens(hashes, [id_ for id_ in ids if id_ not in hashes])

    async def step(self) -> float | None:
        """Make the states of a few turns; return the seconds until the next step, or None."""
        if not self._begun:
            await self._begin()
        if self._encoder is None:
            return None
        due = await self._indexes.tokens_due(_AT_ONCE)
        if not due:
            return None
        turns = {turn.uuid: turn for turn in await self._journal.turns(list(due))}
        texts = {id_: compared_text(turn) for id_, turn in turns.items()}
        try:
            made = await asyncio.to_thread(self._encoder.text_states, list(texts.values()))
        except PPSError as error:
            _log.warning("token states are to be made later: %s", error.message)
            return _RETRY_S
        states = {
            id_: (content_hash(text), rows.tobytes())
            for (id_, text), rows in zip(texts.items(), made, strict=True)
        }
        await self._indexes.put_tokens(states)
        await self._settle_changed(due, states)
        return 0.0

    async def _settle_changed(
        self, due: dict[str, str], states: dict[str, tuple[str, bytes]]
    ) -> None:
        """Note texts anew that are not as they were noted, so that no step meets them forever."""
        hashes = {id_: text_hash for id_, (text_hash, _) in states.items()}
        changed = {id_: hash_ for id_, hash_ in hashes.items() if due[id_] != hash_}
        gone = [id_ for id_ in due if id_ not in hashes]
        if changed or gone:
            await self._indexes.note_tokens(changed, gone)

    async def _begin(self) -> None:
        """Note all turns if their states are missing or of another model; without one drop them."""
        model = self._encoder.fingerprint if self._encoder else ""
        if await self._indexes.token_model() != model:
            await self._indexes.clear_tokens()
            if self._encoder is not None:
                seq = 0
                while turns := await self._journal.scan(seq, _PAGE):
                    await self.note((), turns)
                    seq = turns[-1].seq
                await self._indexes.keep_token_model(model)
        self._begun = True


@dataclass(frozen=True, slots=True)
class Written:
    """What the last write put into the graph, so that it need not be read back.

    Attributes:
        positions: Of the log entries that the write appended. An entry at another position belongs
            to another write, which may have changed or removed the item: that is read from the
            store.
        nodes, facts: The written ones, by uuid.
        texts: Record → its text. Records are noted beside the graph, so they cannot be looked up
            meanwhile.
    """

    positions: range = range(0)
    nodes: Mapping[str, Node] = field(default_factory=dict[str, Node])
    facts: Mapping[str, Fact] = field(default_factory=dict[str, Fact])
    texts: Mapping[str, str] = field(default_factory=dict[str, str])

    def of(self, entries: Sequence[LogEntry]) -> Written:
        """Return the written nodes and facts that this write's own entries name."""
        own = [entry.change for entry in entries if entry.position in self.positions]
        node_ids = {change.id for change in own if change.kind == "node"}
        fact_ids = {change.id for change in own if change.kind == "fact"}
        nodes = {uuid: node for uuid, node in self.nodes.items() if uuid in node_ids}
        facts = {uuid: fact for uuid, fact in self.facts.items() if uuid in fact_ids}
        return Written(self.positions, nodes, facts, self.texts)


NOTHING_WRITTEN = Written()


@dataclass(frozen=True, slots=True)
class _Filling:
    """How emptied indexes are filled: which of them, and with which model; None embeds nothing."""

    to: tuple[Follower, ...]
    vectors: PassageVectors | None
    progress: Progress | None

    def tell(self, stage: str, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(stage, done, max(done, total))


class Indexer:
    """Keeps the text and vector indexes of one entity up to date with journal, graph and anchors.

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
        """Read the positions of the indexes, before anything is indexed; ``catch_up`` follows."""
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
        """Rebuild indexes that lie outside the log, and bring all to its end.

        Raises:
            ModelUnavailable, StoreUnavailable: ``settle`` tries again, and so does the next start.
        """
        for name in self._indexes.positions:
            if name in self._behind:
                await self.rebuild(which=name)
        await self.drain()

    async def lag(self) -> int:
        """Return the number of log entries that are not in every index yet."""
        return await self._journal.count_entries(self._passed())

    async def lagging(self) -> set[str]:
        """Return the ids whose latest state is not in every index yet."""
        entries = await self._journal.log_entries(self._passed(), DRAINED_AT_ONCE)
        return {entry.change.id for entry in entries}

    async def save_positions(self) -> None:
        """Save the positions of the followers, and drop the entries that all have passed.

        An index that is being rebuilt has no position to save: after a crash it is rebuilt again.
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
        """Apply every log entry that the indexes lack; return their number.

        One drain at a time: an item read by an earlier drain may be gone when it is indexed, and
        the later drain then drops it.

        Args:
            written: What the last write put into the graph.
        """
        async with self.draining:
            total = await self._drain(written)
        if self.records.waited_too_long():
            await self.embed_due()
        return total

    async def embed_due(self) -> float | None:
        """Embed the records that are due; return in how many seconds the next is, None for none."""
        while due := await self.records.take(_EMBEDDED_AT_ONCE):
            await self._journal.log_changes([Change("node", record) for record in due])
            await self.drain()
        return await self.records.next_s()

    async def known_vectors(
        self, nodes: Sequence[Node], facts: Sequence[Fact], turns: Sequence[Turn]
    ) -> dict[str, Vector]:
        """Return passage → indexed vector, for the passages of some items; no model is called."""
        if self._vectors is None:
            return {}
        turns_of_records = await self._journal.records.texts([node.uuid for node in nodes])
        texts = {uuid: turn.content for uuid, turn in turns_of_records.items()}
        docs, typed = self._split_records(nodes, texts)
        docs += await self.records.texts(typed)
        docs += fact_docs(facts, self._journal.now())
        docs += [(IndexDoc("episode", turn.uuid, "episodes", ""), spoken(turn)) for turn in turns]
        passages = await self._vectors.split([text for _, text in docs])
        owners: dict[str, list[str]] = {}
        for doc, _ in docs:
            owners.setdefault(doc.collection, []).append(doc.owner)
        rows = {name: await self._indexes.parts(name, wanted) for name, wanted in owners.items()}
        known: dict[str, Vector] = {}
        for (doc, _), parts in zip(docs, passages, strict=True):
            vectors = rows[doc.collection].get(doc.owner, ())
            if len(vectors) == len(parts):
                known.update(zip(parts, vectors, strict=True))
        return known

    def know(self, vectors: Mapping[str, Vector]) -> None:
        """Preload vectors of passages that will be indexed, so that the model is not called."""
        if self._vectors is not None:
            self._vectors.know(vectors)

    async def know_near(self, turns: Sequence[str]) -> None:
        """Preload vectors for the window embeddings of turns and of their neighbours."""
        near = await self._journal.turns(await self._journal.near(turns, 2 * WINDOW_TURNS))
        facts = await self._client.facts_of_episodes([turn.uuid for turn in near])
        self.know(await self.known_vectors((), facts, near))

    async def settle(self) -> float | None:
        """Bring the indexes up to date with the clock and the log; returns as ``embed_due``."""
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
        return min((wait_s for wait_s in waits_s if wait_s is not None), default=None)

    async def purge(self) -> list[str]:
        """Bring all followers to the end of the log, and erase forgotten text and ids from disk.

        Returns:
            The followers that still hold some of it: "text", "vectors", "neo4j". The next start
            brings them up to date too; Neo4j follows when it is available again.
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
        """Apply every entry, first to the followers furthest behind until all are level."""
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
                    break  # later entries are for the next drain: turns may come in without end
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
        """Return the number of positions that the indexes are ahead of their saved positions."""
        return self._passed() - self._saved_position

    async def _apply(
        self, changes: Sequence[Change], written: Written, followers: Collection[Follower]
    ) -> None:
        """Index the changed items that exist, and drop the index entries of those that do not.

        One portion is read and embedded while the portion before it is written to the indexes.
        """
        # Nodes and facts come first: turns are indexed with their facts.
        ids: dict[ItemKind, list[str]] = {"node": [], "fact": []}
        for change in dict.fromkeys(changes):
            if change.kind not in GRAPH_KINDS:
                ids.setdefault(cast("ItemKind", change.kind), []).append(change.id)
        turns = ids.get("episode")
        if turns:  # the entry of a turn contains the words of its neighbours
            neighbours = await self._journal.near(turns, WINDOW_TURNS)
            ids["episode"] = list(dict.fromkeys([*turns, *neighbours]))
        at_once = _APPLIED_AT_ONCE if self._vectors is None else _EMBEDDED_AT_ONCE
        before: asyncio.Task[None] | None = None
        try:
            for kind, wanted in ids.items():
                for at in range(0, len(wanted), at_once):
                    portion = wanted[at : at + at_once]
                    docs = await self._docs(kind, portion, written)
                    if before is not None:
                        await before
                    before = asyncio.create_task(
                        self._indexes.apply(
                            docs, _pairs_without_docs(kind, portion, docs), followers
                        )
                    )
            if before is not None:
                await before
        except BaseException:
            await _over(before)
            raise

    async def rebuild(
        self, progress: Progress | None = None, which: Cleared = "all"
    ) -> dict[str, int]:
        """Empty the indexes, or one of them, and fill them from graph, journal and anchors.

        Rebuilding only ``text`` embeds no node, fact or turn. Returns the number of documents by
        kind.
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
        """Compute every vector again."""
        counts = await self.rebuild(progress)
        await self._journal.set_meta(REEMBEDDING, "")
        return counts

    async def _turn_facts(self) -> None:
        """Log the facts that ended by the clock alone since the last call.

        A fact that begins is indexed already.
        """
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
                await self._perspective_data.facts([fact.uuid for fact in page], facts)
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
                await self._perspective_data.turns([turn.uuid for turn in page], page)
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
        """Return the documents of nodes; a record has a second document, of its text."""
        nodes = [written.nodes[uuid] for uuid in ids if uuid in written.nodes]
        others = [uuid for uuid in ids if uuid not in written.nodes]
        nodes += await self._client.nodes(others)
        await self.records.gone(set(ids).difference(node.uuid for node in nodes))
        turns = await self._journal.records.texts(
            [uuid for uuid in ids if uuid not in written.texts]
        )
        texts = {**{node: turn.content for node, turn in turns.items()}, **written.texts}
        if vectors is self._vectors:
            await self._perspective_data.nodes(ids, nodes, texts)
        docs, typed = self._split_records(nodes, texts)
        return [*await embedded(docs, vectors), *await self.records.docs(typed)]

    def _split_records(
        self, nodes: Sequence[Node], texts: Mapping[str, str]
    ) -> tuple[list[tuple[IndexDoc, str]], list[tuple[Node, str]]]:
        """Return the documents of plain nodes, and the typed records with their texts.

        ``records`` makes the documents of typed records itself.
        """
        docs: list[tuple[IndexDoc, str]] = []
        typed: list[tuple[Node, str]] = []
        for node in nodes:
            text = texts.get(node.uuid, "")
            if node.kind in self.records.kinds:
                typed.append((node, text))
            else:
                docs += node_docs(node, text)
        return docs, typed


async def _over(work: asyncio.Future[None] | None) -> None:
    """Wait until an abandoned write has ended, and ignore its result."""
    if work is None:
        return
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        work.cancel()
    await asyncio.wait([work])
    if not work.cancelled():
        work.exception()


def _pairs_without_docs(
    kind: ItemKind, ids: Sequence[str], docs: Sequence[IndexDoc]
) -> list[tuple[str, str]]:
    """Return the (collection, owner) pairs that have no document any more."""
    present = {(doc.collection, doc.owner) for doc in docs}
    places = [(collection, owner) for collection in COLLECTIONS.get(kind, ()) for owner in ids]
    return [place for place in places if place not in present]
