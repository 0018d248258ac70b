"""What a record is found by, and when that is embedded: at once, when the worker is idle, or never.

A record is saved whatever the model does. Its vectors follow, and a change that leaves the words that it is found by
as they were costs no call.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeAlias

from pps.core.errors import ModelError, ModelOutputInvalid
from pps.core.kinds import Kinds, KindSpec, Priority
from pps.core.time import micros, now
from pps.core.values import JSON, Node
from pps.index.indexes import EntityIndexes, IndexDoc
from pps.ingest.passage_vectors import PassageVectors
from pps.journal.embedding_rows import VectorState
from pps.journal.journal import Journal
from pps.models.protocols import Embedder, Matrix

MAX_TEXT = 6_000
"""Most characters of what a record is found by."""
AT_ONCE: frozenset[Priority] = frozenset(("P0", "P1", "P2"))
"""Priorities whose records are embedded as they are written; P3 and P4 wait until the worker is idle."""
LONGEST_WAIT_S = 60.0
"""How long those wait at most while it is not."""
BACKOFF_S = (5.0, 30.0, 180.0)
"""Waits before each of the three times that a failed embedding is tried again."""
DRIFT = 0.1
"""A change of the cosine above which a vector has drifted."""
_LONGEST_ERROR = 300
_Passages: TypeAlias = tuple[tuple[str, ...], Matrix]
_OWN_LINES = ("title", "summary")


def full_text(kind: KindSpec, title: str, summary: str, fields: Mapping[str, JSON]) -> str:
    """Return the text that a record is found by: a labelled line each of what it says.

    Kind and title, the summary, the kind's ``embed`` fields in their order, then every other
    field of text unless the pack switches it off, then the description. Fields without a value
    have no line.
    """
    others = [name for name, spec in kind.fields.items() if spec.is_text and spec.embed]
    names = dict.fromkeys((*kind.embed, *others, "description"))
    lines = [f"{kind.name}: {title}", f"Summary: {summary}"]
    for name in names:
        value = _said(fields.get(name)) if name not in _OWN_LINES else ""
        if value:
            lines.append(f"{name.replace('_', ' ').capitalize()}: {value}")
    return "\n".join(lines)


def embedding_text(kind: KindSpec, title: str, summary: str, fields: Mapping[str, JSON]) -> str:
    """Return the first ``MAX_TEXT`` characters of ``full_text``: what a record's vectors are made of."""
    return full_text(kind, title, summary, fields)[:MAX_TEXT]


@dataclass(frozen=True, slots=True)
class Drifted:
    """A record whose vector is not what the model makes of its words now; ``change`` is 1 - cosine, above ``DRIFT``."""

    id: str
    kind: str
    title: str
    change: float


@dataclass(frozen=True, slots=True, eq=False)
class _Told:
    """A record, the text that is embedded, all its words, and of which text its vectors are."""

    node: Node
    text: str
    words: str
    hash: str
    priority: Priority
    state: VectorState
    noted: VectorState | None

    def docs(self) -> tuple[IndexDoc, IndexDoc]:
        """Return its entries, by name and by what it says, with the vectors that are there."""
        node, at, title = (
            self.node,
            micros(self.node.created_at),
            " · ".join((self.node.name, *self.node.aliases)),
        )
        keeps = self.priority != "none"
        return (
            IndexDoc("node", node.uuid, "nodes", self.words, title, at, keeps_vectors=keeps),
            IndexDoc("node", node.uuid, "records", "", at=at, keeps_vectors=keeps),
        )


class RecordVectors:
    """Makes the index entries of one entity's records, and keeps account of their vectors.

    Args:
        kinds: Those of the entity's packs.
        journal: Keeps of which text each record's vectors are.
        indexes: Where the vectors lie.
        vectors: None when there is no model.
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
        """Return the entries of records and their summaries; with vectors where they are made now.

        Where they are made later, failed or are those that are there already, what is there stays.
        """
        told = await self._told(records)
        if self._vectors is None:
            return [doc for one in told for doc in one.docs()]
        now_made, states = list[_Told](), list[VectorState]()
        for one in told:
            if one.hash == one.state.hash or one.priority == "none":
                states.append(
                    VectorState(one.node.uuid, "" if one.priority == "none" else one.hash)
                )
            elif one.priority in AT_ONCE or one.node.uuid in self._taken:
                now_made.append(one)
            else:
                self._waits_since = self._waits_since or now()
                states.append(replace(one.state, due=one.state.due or now()))
        vectors, failed = await self._embedded(self._vectors, now_made)
        self._made.update((one.node.uuid, VectorState(one.node.uuid, one.hash)) for one in now_made)
        for state in failed:
            del self._made[state.node]
        noted = {one.node.uuid: one.noted for one in told}
        await self._states.put([one for one in (*states, *failed) if one != noted[one.node]])
        return [
            replace(doc, passages=made[0], vectors=made[1], keeps_vectors=False)
            if (made := vectors.get((doc.collection, doc.owner)))
            else doc
            for one in told
            for doc in one.docs()
        ]

    async def texts(self, records: Sequence[tuple[Node, str]]) -> list[tuple[IndexDoc, str]]:
        """Return the entries of records, each with the text that its vectors are of."""
        told = await self._told(records)
        return [
            pair for one in told for pair in zip(one.docs(), (one.node.name, one.text), strict=True)
        ]

    async def applied(self) -> None:
        """Note the vectors that are in the index now: before that they would be missed after a crash."""
        made, self._made = self._made, {}
        if made:
            await self._states.put(list(made.values()))

    def not_applied(self) -> None:
        """Let what was made for an index that failed be made again."""
        self._made.clear()

    async def gone(self, nodes: set[str]) -> None:
        """Drop the account of nodes that are not there any more."""
        if nodes:
            await self._states.drop(nodes)

    async def begin_anew(self) -> None:
        """Let every vector be made anew."""
        self.not_applied()
        await self._states.clear()

    async def take(self, limit: int) -> list[str]:
        """Return records whose time to be embedded has come; the next ``docs`` embeds them."""
        if self._vectors is None or not self.kinds.by_name:
            return []
        self._waits_since = None
        self._taken = frozenset(one.node for one in await self._states.due(now(), limit))
        return sorted(self._taken)

    async def next_s(self) -> float | None:
        """Return in how many seconds the next is due; None when none waits."""
        due = await self._states.next_due() if self._vectors and self.kinds.by_name else None
        return None if due is None else max(0.0, (due - now()).total_seconds())

    def waited_too_long(self) -> bool:
        since = self._waits_since
        return since is not None and now() - since > timedelta(seconds=LONGEST_WAIT_S)

    async def problems(self, name: str) -> list[str]:
        """Return what to do about the records of an entity that are tried no more; empty when there are none."""
        failed = await self._states.failed()
        if not failed:
            return []
        what = "1 record" if len(failed) == 1 else f"{len(failed):,} records"
        return [
            f"{what} could not be embedded ({failed[0].error}) and is found by words only: "
            f"`pps reindex {name} --index vectors` tries again"
        ]

    async def drifted(self, records: Sequence[tuple[Node, str]]) -> tuple[int, list[Drifted]]:
        """Embed records anew and compare; return how many had a vector, and those that changed by more than ``DRIFT``.

        Raises:
            ModelError: The model fails.
        """
        told = [one for one in await self._told(records) if one.hash == one.state.hash]
        before = await self._indexes.vectors("records", [one.node.uuid for one in told])
        if self._vectors is None or not before:
            return 0, []
        compared = [one for one in told if one.node.uuid in before]
        rows = await asyncio.to_thread(
            _firsts, self._vectors.embedder, [one.text for one in compared]
        )
        changes = [
            Drifted(
                one.node.uuid,
                one.node.kind,
                one.node.name,
                round(1 - float(before[one.node.uuid] @ row), 4),
            )
            for one, row in zip(compared, rows, strict=True)
        ]
        return len(compared), [one for one in changes if one.change > DRIFT]

    async def _told(self, records: Sequence[tuple[Node, str]]) -> list[_Told]:
        """Return records with what they are found by; one whose vectors are not in the index has no hash."""
        states = await self._states.of([node.uuid for node, _ in records])
        held = set[str]()
        if self._vectors is not None and states:
            held = set(
                await self._indexes.vectors(
                    "records", [uuid for uuid, one in states.items() if one.hash]
                )
            )
        told: list[_Told] = []
        for node, summary in records:
            kind, state = self.kinds.kind(node.kind), states.get(node.uuid, VectorState(node.uuid))
            words = full_text(kind, node.name, node.summary or summary, node.attributes)
            text = words[:MAX_TEXT]
            state = state if node.uuid in held else replace(state, hash="")
            digest = hashlib.sha256(text.encode()).hexdigest()
            told.append(
                _Told(node, text, words, digest, kind.priority, state, states.get(node.uuid))
            )
        return told

    async def _embedded(
        self, vectors: PassageVectors, told: Sequence[_Told]
    ) -> tuple[dict[tuple[str, str], _Passages], list[VectorState]]:
        """Return passages and vectors by collection and owner, and what became of those that failed."""
        fresh, again = (
            [one for one in told if not one.state.failures],
            [one for one in told if one.state.failures],
        )
        found: dict[tuple[str, str], _Passages] = {}
        failed: list[VectorState] = []
        groups = [*([fresh] if fresh else []), *([one] for one in again)]
        away: ModelError | None = None
        for (
            group
        ) in groups:  # one that failed before goes alone: it may be what the others failed for
            try:
                if away:
                    raise away
                parts = await vectors.passages(
                    [text for one in group for text in (one.node.name, one.text)]
                )
            except ModelError as error:
                away = None if isinstance(error, ModelOutputInvalid) else error
                failed += [_failed(one.state, error) for one in group]
                continue
            for number, one in enumerate(group):
                found["nodes", one.node.uuid], found["records", one.node.uuid] = parts[
                    2 * number : 2 * number + 2
                ]
        return found, failed


def _firsts(embedder: Embedder, texts: Sequence[str]) -> Matrix:
    """Return the vector of each text's first passage, past what is kept of earlier calls: that is what is doubted."""
    return embedder.embed_passages([embedder.split(text)[0] for text in texts])


def _failed(state: VectorState, error: ModelError) -> VectorState:
    failures = min(state.failures, len(BACKOFF_S)) + 1
    again = (
        now() + timedelta(seconds=BACKOFF_S[failures - 1]) if failures <= len(BACKOFF_S) else None
    )
    return replace(
        state, due=again, failures=failures, error=f"{error.code}: {error.message}"[:_LONGEST_ERROR]
    )


def _said(value: JSON) -> str:
    """Return a field's value as words."""
    if isinstance(value, list):
        return ", ".join(filter(None, map(_said, value)))
    if isinstance(value, dict):
        return ", ".join(f"{name} {said}" for name, one in value.items() if (said := _said(one)))
    return "" if value is None else str(value)
