"""The context of a session's start: the loaded layers and the workload, within a token budget."""

from __future__ import annotations

import asyncio
import json
import time as clock
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import cache
from typing import Any, Literal, TypeVar, cast

from pydantic import TypeAdapter

from pps.context.fence import marks_of
from pps.context.lines import LONGEST_PASSAGE, Line, bullet
from pps.core.kinds import Kinds, KindSpec, LayerSpec
from pps.core.model_text import escape_all
from pps.core.record_values import Record, RecordGraph
from pps.core.text import fold
from pps.core.time import now
from pps.core.values import JSON
from pps.ingest.anchors import Anchors
from pps.journal.journal import Journal
from pps.journal.usage import KEPT_D, PartUsed
from pps.models.token_counts import count_tokens, counter_name
from pps.records.records import Records
from pps.records.work_hours import ProvidedCalendars, WorkHours
from pps.records.workload import Workload, workload

SESSION_TOKENS = 25_000
"""Most tokens of a session's start; each layer has its own budget in its pack."""
WORKLOAD_TOKENS = 2_000
"""Most tokens of the workload in it."""
QUERY_TOKENS = 15_000
"""Most tokens of the answer to one question in a session."""
UPWARD = ("SUPPORTED_BY", "SERVES", "ALIGNS_WITH")
"""The relations by which a record says what it is for."""
_PRIORITIES = {name: rank for rank, name in enumerate(("P0", "P1", "P2", "P3", "P4", "none"))}
_STATUSES = ("active", "draft")
_NAMED = 20
_FRAME = 300
"""Tokens for what stands around the layers."""
_SHORT = ("enum", "date", "datetime", "number", "integer", "bool")
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Parent:
    """What a record serves, is supported by or aligns with."""

    relation: str
    id: str
    kind: str
    title: str


@dataclass(frozen=True, slots=True)
class LoadedRecord:
    """A record as a session is given it, with its description where its kind is described.

    Attributes:
        fields: The short ones (enums, dates, numbers), and, where the layer's budget has room, the
            texts: what a rule states, a vision's narrative, a goal's target.
    """

    id: str
    kind: str
    title: str
    summary: str
    status: str
    fields: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    state: str | None = None
    description: str | None = None
    parents: tuple[Parent, ...] | None = None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A record that there was no room for."""

    id: str
    title: str


@dataclass(frozen=True, slots=True)
class LoadedLayer:
    """A layer as far as its budget goes.

    Attributes:
        nodes: How many records of it there are, active ones and drafts.
        tokens: Of this layer as JSON, never more than its budget.
        left_out: The most important that there was no room for, at most 20; ``left_out_by_kind``
            counts all.
    """

    layer: str
    budget_tokens: int
    tokens: int
    nodes: int
    items: tuple[LoadedRecord, ...]
    left_out: tuple[LeftOut, ...] = ()
    left_out_by_kind: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class SessionContext:
    """What a session begins with.

    Attributes:
        nodes: Records that are shown.
        tokens: Of each part as JSON; ``total_tokens``, with what stands around them, is never more
            than 25,000.
        counter: How they were counted.
        took_ms: For each part, and in all; the parts are loaded side by side.
        mark: Of the fence around the text, so that what is data stays data.
    """

    layers: tuple[LoadedLayer, ...]
    workload: Workload
    nodes: int
    tokens: Mapping[str, int]
    total_tokens: int
    budget_tokens: int
    counter: Literal["tiktoken", "estimate"]
    took_ms: Mapping[str, float]
    mark: str


@dataclass(frozen=True, slots=True)
class ContextUsage:
    """Tokens of this memory in a session since it began or was compacted, by part."""

    session: str
    tokens: int
    counter: Literal["tiktoken", "estimate"]
    parts: tuple[PartUsed, ...]


def trimmed(items: Sequence[Item], budget_tokens: int, text: Callable[[Item], str]) -> int:
    """Return how many of the first items fit into a budget together.

    ``text`` returns the text that is sent for an item.
    """
    room = budget_tokens
    for at, item in enumerate(items):
        room -= count_tokens(text(item)) + 1
        if room < 0:
            return at
    return len(items)


class Layers:
    """The layers of one entity's records, as sessions are given them."""

    def __init__(
        self,
        reads: Records,
        kinds: Kinds,
        calendars: ProvidedCalendars,
        journal: Journal,
        anchors: Anchors,
    ) -> None:
        self._reads = reads
        self._anchors = anchors
        self._kinds = kinds
        self._journal = journal
        self._calendars = calendars
        self._loaded: dict[LayerSpec, tuple[RecordGraph, LoadedLayer]] = {}

    @property
    def calendars(self) -> WorkHours:
        """Working hours and calendars of the feature that provides them, while it is on."""
        return self._calendars.current()

    async def context(self, session: str = "") -> SessionContext:
        """Return the context of a session's start: the layers that are always loaded, and workload.

        With ``session`` the records shown are noted, so that ``ambient_recall`` does not show them
        again in that session.
        """
        started = clock.perf_counter()
        always = [layer for layer in self._kinds.layers.values() if layer.load == "always"]
        layers, (load, load_tokens, load_ms) = await asyncio.gather(
            asyncio.gather(*map(self._layer, always)), self._load()
        )
        took_ms = {layer.layer: ms for layer, ms in layers} | {"workload": load_ms}
        loaded: list[LoadedLayer] = []
        room = SESSION_TOKENS - _FRAME - load_tokens
        for spec, (layer, _) in zip(always, layers, strict=True):
            if layer.tokens > room:
                layer = load_layer(
                    replace(spec, budget_tokens=room), await self._reads.graph(), self._kinds
                )
            loaded.append(layer)
            room -= layer.tokens
        context = SessionContext(
            layers=tuple(loaded),
            workload=load,
            nodes=sum(len(layer.items) for layer in loaded),
            tokens={layer.layer: layer.tokens for layer in loaded} | {"workload": load_tokens},
            total_tokens=SESSION_TOKENS - room,
            budget_tokens=SESSION_TOKENS,
            counter=counter_name(),
            took_ms=took_ms | {"total": _ms(started)},
            mark=(await marks_of(self._journal)).new(),
        )
        if session:
            ids = [record.id for layer in loaded for record in layer.items]
            await self._journal.given.record_parts_if_room(
                session, {**context.tokens, "frame": _FRAME}, ids
            )
        return context

    async def lines(self, limit: int) -> list[tuple[str, Line]]:
        """Return ids and lines of the static layers: anchors, then as many records of each layer.

        Args:
            limit: Most records.
        """
        always = [layer for layer in self._kinds.layers.values() if layer.load == "always"]
        layers = [layer for layer, _ in await asyncio.gather(*map(self._layer, always))]
        each = -(-limit // max(1, len(layers)))
        items = [item for layer in layers for item in layer.items[:each]]
        static = [
            (
                anchor_passage.slug,
                Line(
                    bullet(
                        f"{anchor_passage.title}: {anchor_passage.text}",
                        anchor_passage.slug,
                        LONGEST_PASSAGE,
                    ),
                    fold(anchor_passage.text),
                ),
            )
            for anchor_passage in await self._anchors.static()
        ]
        return static + [
            (
                item.id,
                Line(
                    bullet(f"{item.title} ({item.kind}): {item.summary}", item.id),
                    fold(item.summary),
                ),
            )
            for item in items[:limit]
        ]

    async def usage(self, session: str) -> ContextUsage:
        """Return a session's packs by part, in the last 30 days and since it was compacted."""
        parts = await self._journal.given.parts(session, now() - timedelta(days=KEPT_D))
        return ContextUsage(
            session, sum(part.tokens for part in parts), counter_name(), tuple(parts)
        )

    async def workload(
        self, start: date | None = None, end: date | None = None, *, with_calendar: bool = True
    ) -> Workload:
        """Return how full some days are; see ``workload.workload``."""
        return await workload(
            self._reads,
            self._kinds,
            self.calendars,
            start=start,
            end=end,
            with_calendar=with_calendar,
        )

    async def _layer(self, spec: LayerSpec) -> tuple[LoadedLayer, float]:
        """Return a layer and how long it took; as it was, as long as nothing was written since."""
        started = clock.perf_counter()
        graph = await self._reads.graph()
        known, layer = self._loaded.get(spec, (None, None))
        if known is not graph or layer is None:
            layer = load_layer(spec, graph, self._kinds)
            self._loaded[spec] = graph, layer
        return layer, _ms(started)

    async def _load(self) -> tuple[Workload, int, float]:
        started = clock.perf_counter()
        assessed = await workload(self._reads, self._kinds, self.calendars)
        load, tokens = _fitting(assessed)
        return load, tokens, _ms(started)


def load_layer(spec: LayerSpec, graph: RecordGraph, kinds: Kinds) -> LoadedLayer:
    """Return a layer of an entity's records within its budget.

    What stays when there is no room for all: kinds by their priority, active before drafts, the
    important before the rest, the latest first. What is shown stands in the pack's order of kinds,
    then by horizon, then by creation.
    """
    own = {kind.name: kind for kind in kinds if kind.layer == spec.name}
    records = [
        record
        for record in graph.records.values()
        if record.kind in own and record.status in _STATUSES
    ]
    records.sort(key=lambda record: _need(record, own[record.kind]))
    ups = parents_of(graph, {record.id for record in records})
    order = {name: rank for rank, name in enumerate(own)}

    @cache
    def shown(at: int, *, is_whole: bool = False) -> LoadedRecord:
        record = records[at]
        return _loaded(record, own[record.kind], ups.get(record.id, ()), is_whole=is_whole)

    def place(at: int) -> tuple[int, int, datetime, str]:
        record = records[at]
        horizon = _horizon(record, own[record.kind])
        return order[record.kind], horizon, record.created_at, record.id

    def layer(count: int, whole: int) -> LoadedLayer:
        rest = records[count:]
        made = LoadedLayer(
            spec.name,
            spec.budget_tokens,
            0,
            len(records),
            tuple(shown(at, is_whole=at < whole) for at in sorted(range(count), key=place)),
            tuple(LeftOut(record.id, record.title) for record in rest[:_NAMED]),
            dict(Counter(record.kind for record in rest)),
        )
        return replace(made, tokens=_tokens(made) + 1)

    count = trimmed(range(len(records)), spec.budget_tokens, lambda at: _json(shown(at)))
    loaded = layer(count, 0)
    while loaded.tokens > spec.budget_tokens and loaded.items:
        count -= max(1, count // 20)
        loaded = layer(count, 0)
    # Texts of the most needed records take the room that is left.
    extra = [
        count_tokens(_json(shown(at, is_whole=True))) - count_tokens(_json(shown(at)))
        for at in range(count)
    ]
    whole = trimmed_by(extra, spec.budget_tokens - loaded.tokens)
    with_texts = layer(count, whole)
    while with_texts.tokens > spec.budget_tokens and whole:
        whole -= max(1, whole // 20)
        with_texts = layer(count, whole)
    return with_texts


def trimmed_by(tokens: Sequence[int], budget_tokens: int) -> int:
    """Return how many of the first sizes fit into a budget together."""
    room = budget_tokens
    for at, size in enumerate(tokens):
        room -= size
        if room < 0:
            return at
    return len(tokens)


def _fitting(workload: Workload) -> tuple[Workload, int]:
    """Return a workload cut to its budget, and its size in tokens.

    Details of events go first, then tasks, then problems beyond the first three.
    """
    load = replace(workload, tasks=(), events=())
    for tasks in (20, 10, 5, 0):
        load = replace(load, tasks=workload.tasks[:tasks])
        tokens = _tokens(load)
        if tokens <= WORKLOAD_TOKENS:
            return load, tokens
    load = replace(load, problems=load.problems[:3])
    return load, _tokens(load)


def _need(record: Record, kind: KindSpec) -> tuple[int, int, float, float]:
    """Return a sort key for records that compete for room; the least comes first."""
    status = _STATUSES.index(record.status)
    return (
        _PRIORITIES[kind.priority],
        status,
        -_importance(record, kind),
        -record.created_at.timestamp(),
    )


def _importance(record: Record, kind: KindSpec) -> float:
    """Return a record's importance, 0 to 1, from ``importance`` or else ``priority``."""
    stored = record.fields.get("importance")
    if isinstance(stored, int | float):
        return float(stored)
    spec = kind.fields.get("priority")
    value = record.fields.get("priority")
    if spec is None or value not in spec.enum:
        return 0.0
    return 1 - spec.enum.index(str(value)) / len(spec.enum)


def _horizon(record: Record, kind: KindSpec) -> int:
    spec = kind.fields.get("horizon")
    value = record.fields.get("horizon")
    return spec.enum.index(str(value)) if spec and value in spec.enum else 99


def _loaded(
    record: Record, kind: KindSpec, parents: Sequence[Parent], *, is_whole: bool
) -> LoadedRecord:
    """Return a record as it is loaded; ``is_whole``: with its texts too."""
    fields: dict[str, JSON] = {}
    for name, spec in kind.fields.items():
        value = record.fields.get(name)
        if (spec.type in _SHORT and isinstance(value, str | float | int)) or (
            is_whole and spec.is_text and value
        ):
            fields[name] = value
    description = record.fields.get("description") if kind.describe else None
    return LoadedRecord(
        id=record.id,
        kind=record.kind,
        title=record.title,
        summary=record.summary,
        status=record.status,
        fields=fields,
        state=record.state or None,
        description=description if isinstance(description, str) else None,
        parents=tuple(parents) or None,
    )


def parents_of(graph: RecordGraph, ids: Iterable[str]) -> dict[str, list[Parent]]:
    """Return record → what it is for, over the relations that say so, by relation and title."""
    wanted = set(ids)
    parents: dict[str, list[Parent]] = defaultdict(list)
    for relation in graph.relations:
        if (
            relation.type in UPWARD
            and relation.source in wanted
            and relation.target in graph.records
        ):
            above = graph.records[relation.target]
            parents[relation.source].append(
                Parent(relation.type, above.id, above.kind, above.title)
            )
    for some in parents.values():
        some.sort(key=lambda parent: (UPWARD.index(parent.relation), parent.title, parent.id))
    return parents


def _json(value: Any) -> str:
    """Return a dataclass as a model is sent it: escaped, without what does not apply."""
    adapter = _adapter(cast("type[Any]", type(value)))
    dumped = escape_all(adapter.dump_python(value, mode="json", exclude_none=True))
    return json.dumps(dumped, ensure_ascii=False, separators=(",", ":"))


@cache
def _adapter(of: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(of)


def _tokens(value: Any) -> int:
    return count_tokens(_json(value))


def _ms(started: float) -> float:
    return round((clock.perf_counter() - started) * 1000, 2)
