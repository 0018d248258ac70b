"""The searchable text of a record, and when it is embedded: at once, in idle time, or never.

A record is saved even if the model fails; its vectors follow. A change that leaves the searchable
text as it was costs no call of the model. ``Drift`` compares stored vectors with new ones of the
model, on request or on a schedule.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypeAlias

from pps.core.errors import ModelError, ModelOutputInvalid
from pps.core.kinds import Kinds, KindSpec, Priority
from pps.core.time import iso, micros, now, parse
from pps.core.values import JSON, Node
from pps.index.indexes import EntityIndexes, IndexDoc
from pps.ingest.passage_vectors import PassageVectors
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.embedding_rows import VectorState
from pps.journal.journal import Journal
from pps.models.protocols import Embedder, Matrix

MAX_TEXT = 6_000
"""Most characters of a record's text that are embedded."""
AT_ONCE: frozenset[Priority] = frozenset(("P0", "P1", "P2"))
"""Priorities of records that are embedded at once; P3 and P4 wait until the worker is idle."""
LONGEST_WAIT_S = 60.0
"""Most seconds that records of P3 and P4 wait for an idle worker."""
BACKOFF_S = (5.0, 30.0, 180.0)
"""Seconds before each of the three retries of a failed embedding."""
DRIFT = 0.1
"""A vector has drifted if 1 - cosine is above this."""
PRIORITIES: tuple[Priority, ...] = ("P0", "P1", "P2", "P3", "P4")
WEEKLY: tuple[Priority, ...] = ("P0", "P1")
EVERY = ((WEEKLY, timedelta(days=7)), (PRIORITIES[2:], timedelta(days=30)))
"""(priorities, interval) of the comparisons under the setting ``drift = "scheduled"``."""
PAUSE_S = 1.0
"""Pause between two pages of a scheduled comparison, so that writes need not wait."""
_PAGE = 100
_MOST_REPORTED = 200
_LAST_LOOK_KEY = "drift_at:{}"
_RESULT_KEY = "drift_found:{}"
_MAX_ERROR_CHARS = 300
_Passages: TypeAlias = tuple[tuple[str, ...], Matrix]
_OWN_LINES = ("title", "summary")


def full_text(kind: KindSpec, title: str, summary: str, fields: Mapping[str, JSON]) -> str:
    """Return the searchable text of a record: a labelled line for each of its values.

    Kind and title, the summary, the kind's ``embed`` fields in their order, then every other
    field of text unless the pack switches it off, then the description. Fields without a value
    have no line.
    """
    others = [name for name, spec in kind.fields.items() if spec.is_text and spec.embed]
    names = dict.fromkeys((*kind.embed, *others, "description"))
    lines = [f"{kind.name}: {title}", f"Summary: {summary}"]
    for name in names:
        value = _value_text(fields.get(name)) if name not in _OWN_LINES else ""
        if value:
            lines.append(f"{name.replace('_', ' ').capitalize()}: {value}")
    return "\n".join(lines)


def embedding_text(kind: KindSpec, title: str, summary: str, fields: Mapping[str, JSON]) -> str:
    """Return the first ``MAX_TEXT`` characters of ``full_text``, which are embedded."""
    return full_text(kind, title, summary, fields)[:MAX_TEXT]


@dataclass(frozen=True, slots=True)
class Drifted:
    """A record whose indexed vector has drifted; ``change`` is 1 - cosine to a new vector."""

    id: str
    kind: str
    title: str
    change: float


@dataclass(frozen=True, slots=True, eq=False)
class _RecordText:
    """A record with its searchable text.

    Attributes:
        words: The whole text.
        text: Its beginning, which is embedded.
        hash: Hash of ``text``.
        state: The text of its vectors in the index, as a hash; without one if it has no vectors.
        stored: The state in the journal; None if it has none.
    """

    node: Node
    words: str
    text: str
    hash: str
    priority: Priority
    state: VectorState
    stored: VectorState | None

    def docs(self) -> tuple[IndexDoc, IndexDoc]:
        """Return its documents, one of the name and one of the text; they keep indexed vectors."""
        at = micros(self.node.created_at)
        title = " · ".join((self.node.name, *self.node.aliases))
        keeps = self.priority != "none"
        uuid = self.node.uuid
        return (
            IndexDoc("node", uuid, "nodes", self.words, title, at, keeps_vectors=keeps),
            IndexDoc("node", uuid, "records", "", at=at, keeps_vectors=keeps),
        )


class RecordVectors:
    """Makes the index entries of one entity's records, and notes the state of their vectors.

    Args:
        kinds: The kinds of the entity's packs.
        journal: Stores the hash of the text of each record's vectors.
        indexes: Hold the vectors.
        vectors: Makes vectors; None without a model.
    """

    def __init__(
        self, kinds: Kinds, journal: Journal, indexes: EntityIndexes, vectors: PassageVectors | None
    ) -> None:
        self.kinds = kinds
        self._states = journal.vector_states
        self._indexes = indexes
        self._vectors = vectors
        self._taken: frozenset[str] = frozenset()
        self._made: dict[str, VectorState] = {}
        self._waits_since: datetime | None = None

    @property
    def embedder(self) -> Embedder | None:
        return self._vectors.embedder if self._vectors else None

    async def docs(self, records: Sequence[tuple[Node, str]]) -> list[IndexDoc]:
        """Return the documents of records, with the vectors that are made now.

        Vectors that are made later, failed or are unchanged stay as they are in the index.
        """
        texts = await self._texts_of(records)
        if self._vectors is None:
            return [doc for text in texts for doc in text.docs()]
        embed_now: list[_RecordText] = []
        states: list[VectorState] = []
        for text in texts:
            uuid = text.node.uuid
            if text.priority == "none":
                states.append(VectorState(uuid, ""))
            elif text.hash == text.state.hash:
                states.append(VectorState(uuid, text.hash))
            elif text.priority in AT_ONCE or uuid in self._taken:
                embed_now.append(text)
            else:
                self._waits_since = self._waits_since or now()
                states.append(replace(text.state, due=text.state.due or now()))
        vectors, failed = await self._embed(self._vectors, embed_now)
        for text in embed_now:
            self._made[text.node.uuid] = VectorState(text.node.uuid, text.hash)
        for state in failed:
            del self._made[state.node]
        stored = {text.node.uuid: text.stored for text in texts}
        await self._states.put(
            [state for state in (*states, *failed) if state != stored[state.node]]
        )
        docs: list[IndexDoc] = []
        for doc in (doc for text in texts for doc in text.docs()):
            made = vectors.get((doc.collection, doc.owner))
            if made is not None:
                passages, rows = made
                doc = replace(doc, passages=passages, vectors=rows, keeps_vectors=False)
            docs.append(doc)
        return docs

    async def texts(self, records: Sequence[tuple[Node, str]]) -> list[tuple[IndexDoc, str]]:
        """Return the documents of records, each with the text of its vectors."""
        pairs: list[tuple[IndexDoc, str]] = []
        for text in await self._texts_of(records):
            named, described = text.docs()
            pairs += [(named, text.node.name), (described, text.text)]
        return pairs

    async def applied(self) -> None:
        """Note vectors that are in the index now; noted earlier, a crash could lose them."""
        states = list(self._made.values())
        self._made = {}
        if states:
            await self._states.put(states)

    def not_applied(self) -> None:
        """Drop the notes of vectors whose index failed, so that they are made again."""
        self._made.clear()

    async def gone(self, nodes: set[str]) -> None:
        """Drop the states of nodes that are gone."""
        if nodes:
            await self._states.drop(nodes)

    async def begin_anew(self) -> None:
        """Drop all states, so that every vector is made anew."""
        self.not_applied()
        await self._states.clear()

    async def take(self, limit: int) -> list[str]:
        """Return records that are due to be embedded; the next ``docs`` embeds them."""
        if self._vectors is None or not self.kinds.by_name:
            return []
        self._waits_since = None
        self._taken = frozenset(state.node for state in await self._states.due(now(), limit))
        return sorted(self._taken)

    async def next_s(self) -> float | None:
        """Return the seconds until the next record is due; None if none waits."""
        due = await self._states.next_due() if self._vectors and self.kinds.by_name else None
        return None if due is None else max(0.0, (due - now()).total_seconds())

    def waited_too_long(self) -> bool:
        since = self._waits_since
        return since is not None and now() - since > timedelta(seconds=LONGEST_WAIT_S)

    async def problems(self, name: str) -> list[str]:
        """Return advice about records whose embedding was given up; empty if there are none."""
        failed = await self._states.failed()
        if not failed:
            return []
        records = "1 record" if len(failed) == 1 else f"{len(failed):,} records"
        return [
            f"{records} could not be embedded ({failed[0].error}) and is found by words only: "
            f"`pps reindex {name} --index vectors` tries again"
        ]

    async def drifted(self, records: Sequence[tuple[Node, str]]) -> tuple[int, list[Drifted]]:
        """Embed records anew and compare the vectors with those of the index.

        Returns:
            How many had a vector, and those that changed by more than ``DRIFT``.

        Raises:
            ModelError: The model fails.
        """
        current = [text for text in await self._texts_of(records) if text.hash == text.state.hash]
        before = await self._indexes.vectors("records", [text.node.uuid for text in current])
        if self._vectors is None or not before:
            return 0, []
        compared = [text for text in current if text.node.uuid in before]
        rows = await asyncio.to_thread(
            _embed_first_passages, self._vectors.embedder, [text.text for text in compared]
        )
        drifted: list[Drifted] = []
        for text, row in zip(compared, rows, strict=True):
            node = text.node
            change = round(1 - float(before[node.uuid] @ row), 4)
            if change > DRIFT:
                drifted.append(Drifted(node.uuid, node.kind, node.name, change))
        return len(compared), drifted

    async def _texts_of(self, records: Sequence[tuple[Node, str]]) -> list[_RecordText]:
        """Return the records with their searchable texts and states."""
        stored = await self._states.of([node.uuid for node, _ in records])
        embedded: set[str] = set()
        if self._vectors is not None and stored:
            hashed = [uuid for uuid, state in stored.items() if state.hash]
            embedded = set(await self._indexes.vectors("records", hashed))
        texts: list[_RecordText] = []
        for node, summary in records:
            kind = self.kinds.kind(node.kind)
            state = stored.get(node.uuid, VectorState(node.uuid))
            if node.uuid not in embedded:
                state = replace(state, hash="")
            words = full_text(kind, node.name, node.summary or summary, node.attributes)
            text = words[:MAX_TEXT]
            texts.append(
                _RecordText(
                    node=node,
                    words=words,
                    text=text,
                    hash=hashlib.sha256(text.encode()).hexdigest(),
                    priority=kind.priority,
                    state=state,
                    stored=stored.get(node.uuid),
                )
            )
        return texts

    async def _embed(
        self, vectors: PassageVectors, texts: Sequence[_RecordText]
    ) -> tuple[dict[tuple[str, str], _Passages], list[VectorState]]:
        """Return passages and vectors by collection and owner, and the states of failed records.

        A record that failed before is embedded alone: it may be what made the others fail.
        """
        first_tries = [text for text in texts if not text.state.failures]
        groups = [first_tries] if first_tries else []
        groups += [[text] for text in texts if text.state.failures]
        made: dict[tuple[str, str], _Passages] = {}
        failed: list[VectorState] = []
        away: ModelError | None = None
        for group in groups:
            try:
                if away:
                    raise away
                parts = await vectors.passages(
                    [words for text in group for words in (text.node.name, text.text)]
                )
            except ModelError as error:
                away = None if isinstance(error, ModelOutputInvalid) else error
                failed += [_failed_state(text.state, error) for text in group]
                continue
            for number, text in enumerate(group):
                made["nodes", text.node.uuid] = parts[2 * number]
                made["records", text.node.uuid] = parts[2 * number + 1]
        return made, failed


def _embed_first_passages(embedder: Embedder, texts: Sequence[str]) -> Matrix:
    """Return a new vector of each text's first passage, without the cache, which may be wrong."""
    return embedder.embed_passages([embedder.split(text)[0] for text in texts])


def _failed_state(state: VectorState, error: ModelError) -> VectorState:
    failures = min(state.failures, len(BACKOFF_S)) + 1
    again = (
        now() + timedelta(seconds=BACKOFF_S[failures - 1]) if failures <= len(BACKOFF_S) else None
    )
    return replace(
        state,
        due=again,
        failures=failures,
        error=f"{error.code}: {error.message}"[:_MAX_ERROR_CHARS],
    )


def _value_text(value: JSON) -> str:
    """Return a field's value as words."""
    if isinstance(value, list):
        return ", ".join(filter(None, map(_value_text, value)))
    if isinstance(value, dict):
        texts = {name: _value_text(item) for name, item in value.items()}
        return ", ".join(f"{name} {text}" for name, text in texts.items() if text)
    return "" if value is None else str(value)


@dataclass(frozen=True, slots=True)
class DriftReport:
    """The number of compared records, and up to 200 that drifted, the most drifted first."""

    compared: int
    drifted: tuple[Drifted, ...]
    total: int


@dataclass(slots=True)
class _Look:
    """A look under way: which priorities, the last node that was read, and what drifted so far."""

    priorities: tuple[Priority, ...]
    after: str = ""
    compared: int = 0
    drifted: list[Drifted] = field(default_factory=list[Drifted])

    def report(self) -> DriftReport:
        most = sorted(self.drifted, key=lambda record: (-record.change, record.id))
        return DriftReport(self.compared, tuple(most[:_MOST_REPORTED]), len(most))


class Drift:
    """Looks for drift among one entity's records; changes nothing.

    Args:
        client, journal: Where records are read.
        records: Where their vectors are compared.
        scheduled: Whether ``step`` looks by the clock.
    """

    def __init__(
        self,
        client: IsolatedGraphitiClient,
        journal: Journal,
        records: RecordVectors,
        *,
        scheduled: bool,
    ) -> None:
        self._client = client
        self._journal = journal
        self.records = records
        self._scheduled = scheduled and bool(records.kinds.by_name)
        self._look: _Look | None = None

    async def report(self, priorities: Collection[Priority] = ()) -> DriftReport:
        """Embed the records of some priorities (none given: of all) anew and compare.

        Raises:
            ModelError: The model fails.
        """
        look = _Look(tuple(priorities) or PRIORITIES)
        while await self._page(look):
            pass
        return look.report()

    async def step(self) -> float | None:
        """Compare some records if the schedule says so; return the seconds until the next, or None.

        If the model is unavailable, the next idle time of the worker tries again.
        """
        if self._look is None:
            self._look = await self._due() if self._scheduled else None
        look = self._look
        if look is None:
            return None
        try:
            if await self._page(look):
                return PAUSE_S
        except ModelError:
            return None
        self._look = None
        first = look.priorities[0]
        titles = [record.title for record in look.report().drifted[:3]]
        result = json.dumps([len(look.drifted), titles])
        await self._journal.set_meta(_LAST_LOOK_KEY.format(first), iso(now()))
        await self._journal.set_meta(_RESULT_KEY.format(first), result)
        return PAUSE_S

    async def notes(self, name: str) -> list[str]:
        """Return the findings of the last scheduled comparisons; empty if nothing drifted."""
        notes: list[str] = []
        for priorities, _ in EVERY if self._scheduled else ():
            result = await self._journal.get_meta(_RESULT_KEY.format(priorities[0]))
            total: int
            titles: list[str]
            total, titles = json.loads(result) if result else (0, [])
            if total:
                notes.append(
                    f"the vectors of {total:,} records have drifted (such as "
                    f"{', '.join(titles)}): `pps drift {name}` lists them, "
                    f"`pps reindex {name} --index vectors` makes them anew"
                )
        return notes

    async def _due(self) -> _Look | None:
        for priorities, every in EVERY:
            last_look = await self._journal.get_meta(_LAST_LOOK_KEY.format(priorities[0]))
            if not last_look or now() - parse(last_look) >= every:
                return _Look(priorities)
        return None

    async def _page(self, look: _Look) -> bool:
        """Compare the records of the next page of nodes; False when there are no more."""
        nodes = await self._client.scan_nodes(look.after, _PAGE)
        if not nodes:
            return False
        look.after = nodes[-1].uuid
        wanted = [node for node in nodes if self._priority_of(node) in look.priorities]
        turns = await self._journal.records.texts([node.uuid for node in wanted])
        texts = {node: turn.content for node, turn in turns.items()}
        records = [(node, texts.get(node.uuid, "")) for node in wanted]
        compared, drifted = await self.records.drifted(records)
        look.compared += compared
        look.drifted += drifted
        return True

    def _priority_of(self, node: Node) -> Priority:
        kinds = self.records.kinds
        return kinds.by_name[node.kind].priority if node.kind in kinds else "none"
