"""Finding records: by meaning, by meaning and nearness.

How the indexes are that they are found by, and their drift.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import Field

from pps.core.kinds import STATUSES, Status
from pps.core.reports import IndexStatus
from pps.core.text import counted
from pps.ingest.record_vectors import DriftReport
from pps.memory import Memory
from pps.operations.inputs import (
    Input,
    Label,
    Nothing,
    Question,
    Title,
    also,
    argument,
    option,
    options,
)
from pps.operations.recall_tools import StatsView, stats_view
from pps.operations.table import READS, RECORDS, UPKEEP
from pps.records.finding import FoundRecord, RecordSearch

_Weight = Annotated[float, Field(ge=0, le=1)]
_Names = Annotated[tuple[Label, ...], Field(max_length=50)]


class RecordSearchInput(Input):
    """A question to the records."""

    query: Question = Field(
        description="What is looked for, in your own words.",
        json_schema_extra=argument(rest=True),
    )
    layers: _Names = Field(
        default=(), description="Only these layers.", json_schema_extra=option("--layer")
    )
    kinds: _Names = Field(
        default=(),
        description="Only these kinds, such as Goal.",
        json_schema_extra=option("--kind") | also("types"),
    )
    status: tuple[Status, ...] = Field(
        default=(),
        max_length=len(STATUSES),
        description="Only records with one of these statuses. Default: active records and drafts.",
    )
    limit: int = Field(
        default=5,
        ge=1,
        le=50,
        description=(
            "Maximum results. Results below a clear gap in scores are left out, unless "
            "min_similarity is given."
        ),
        json_schema_extra=option("--limit") | also("topK"),
    )
    min_similarity: float | None = Field(
        default=None,
        ge=-1,
        le=1,
        description="Minimum cosine similarity. Default: the embedder's own threshold.",
    )
    include_relationships: bool = Field(
        default=False, description="True adds the relations of each record."
    )
    anchor_node_id: Title | None = Field(
        default=None,
        description="Id or title of a node. Nearness to it in the graph counts too.",
        json_schema_extra=option("--anchor"),
    )
    structural_weight: _Weight = Field(
        default=0.6, description="Weight of nearness, with an anchor."
    )
    semantic_weight: _Weight = Field(default=0.4, description="Weight of meaning, with an anchor.")
    max_depth: int = Field(default=2, ge=1, le=4, description="Maximum hops from the anchor.")


class DriftInput(Input):
    """Which records to embed anew and compare."""

    priorities: tuple[Literal["P0", "P1", "P2", "P3", "P4"], ...] = Field(
        default=(),
        max_length=5,
        description="Only records of these priorities. Default: all.",
        json_schema_extra=option("--priority"),
    )


@dataclass(frozen=True, slots=True)
class WayStep:
    """One step from the anchor: along ``relation`` to ``name``."""

    relation: str
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class ResultRelation:
    """A relation of a result: ``source`` and ``target`` are ids, one of them the result's."""

    id: str
    type: str
    source: str
    target: str
    names: tuple[str, str]


@dataclass(frozen=True, slots=True)
class RecordHit:
    """One record that answers.

    ``score`` is what it is ranked by; ``semantic`` is the cosine, ``structural`` 1 / hops from the
    anchor. ``path`` is the way from there. ``weak``: its cosine is that of many records that have
    nothing to do with the question.
    """

    id: str
    type: str
    title: str
    summary: str
    layer: str
    status: str
    score: float
    semantic: float
    structural: float | None = None
    path: tuple[WayStep, ...] | None = None
    relationships: tuple[ResultRelation, ...] | None = None
    weak: bool = False


@dataclass(frozen=True, slots=True)
class RecordHits:
    """Records, best first; ``min_similarity`` is the least cosine that was asked for."""

    results: tuple[RecordHit, ...]
    stats: StatsView
    min_similarity: float
    notes: tuple[str, ...] = ()


def _hit(found_record: FoundRecord, wanted: RecordSearchInput) -> RecordHit:
    node = found_record.node
    anchored = wanted.anchor_node_id is not None
    joined = tuple(
        ResultRelation(
            rel.fact.uuid, rel.fact.relation, rel.fact.subject, rel.fact.object, rel.names
        )
        for rel in found_record.relationships
    )
    return RecordHit(
        node.uuid,
        node.kind,
        node.name,
        found_record.summary,
        found_record.layer,
        str(node.attributes.get("status") or "active"),
        round(found_record.score, 4),
        round(found_record.semantic, 4),
        round(found_record.structural, 4) if anchored else None,
        tuple(WayStep(step.relation, step.node, step.name) for step in found_record.path)
        if anchored
        else None,
        joined if wanted.include_relationships else None,
        found_record.is_weak,
    )


def _hits(value: RecordHits) -> str:
    lines: list[str] = []
    for result in value.results:
        weak = "  (weak)" if result.weak else ""
        steps = [f"{step.relation} “{step.name}”" for step in result.path or ()]
        way = f"  (from the anchor: {', then '.join(steps)})" if steps else ""
        lines.append(
            f"{result.score:.2f}  {result.id[:8]}  {result.type:<12} {result.title}{weak}{way}"
        )
        lines += [
            f"      {it.names[0]} -{it.type}-> {it.names[1]}" for it in result.relationships or ()
        ]
    return "\n".join(
        [*(lines or [f"Nothing reaches a cosine of {value.min_similarity:.2f}."]), *value.notes]
    )


def _status(value: IndexStatus) -> str:
    def documents(counts: Mapping[str, int]) -> str:
        return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count) or "empty"

    lines = [
        f"text     {documents(value.text)}",
        f"vectors  {documents(value.vectors) if value.model else 'no embedder is set'}",
        f"fields   {counted(value.fields, 'value')}",
        *_token_states(value),
        f"{counted(value.lag, 'change')} not indexed yet, "
        f"{counted(value.vectors_waiting, 'record')} to be embedded, "
        f"{value.vectors_failed:,} could not be",
    ]
    return "\n".join(lines)


def _token_states(value: IndexStatus) -> list[str]:
    if not value.token_states and not value.token_states_waiting:
        return []
    return [
        f"tokens   {counted(value.token_states, 'turn')} for late interaction, "
        f"{value.token_states_waiting:,} to be made"
    ]


def _drift(value: DriftReport) -> str:
    head = (
        f"{counted(value.compared, 'record')} compared, {value.total:,} changed by more than 0.1."
    )
    return "\n".join(
        [
            head,
            *(
                f"{drifted.change:.2f}  {drifted.id[:8]}  {drifted.kind} {drifted.title}"
                for drifted in value.drifted
            ),
        ]
    )


@RECORDS.operation(
    "Find records",
    _hits,
    READS,
    command="records search",
    examples=('pps records search ana "what keeps me awake" --layer mind --limit 5',),
)
async def record_search(memory: Memory, request: RecordSearchInput) -> RecordHits:
    """Use it to find records by meaning.

    With anchor_node_id, nearness to a node counts too. Returns at most {limit} records, each with
    its scores, whether the match is weak and, with an anchor, the path to it; then their number,
    average score and tokens. For exact conditions use {record_list}.
    """
    wanted = RecordSearch(**options(request))
    if not wanted.status:
        wanted = replace(wanted, status=("active", "draft"))
    if wanted.anchor_node_id:
        anchor = await memory.records.node_of(wanted.anchor_node_id, "anchor_node_id")
        wanted = replace(wanted, anchor_node_id=anchor)
    search_result = await memory.finding.search(wanted)
    hits = tuple(_hit(result, request) for result in search_result.results)
    return RecordHits(
        hits, stats_view(search_result.stats), search_result.min_similarity, search_result.notes
    )


@UPKEEP.operation(
    "Show the state of the indexes",
    _status,
    READS,
    command="indexes",
    examples=("pps indexes ana",),
)
async def index_status(memory: Memory, _: Nothing) -> IndexStatus:
    """Returns how many documents the text, vector and field indexes hold.

    Also how many wait or failed. The owner rebuilds an index with `pps reindex`.
    """
    return await memory.finding.index_status()


@UPKEEP.operation(
    "Find drifted vectors",
    _drift,
    READS,
    command="drift",
    examples=("pps drift ana --priority P0",),
)
async def drift(memory: Memory, request: DriftInput) -> DriftReport:
    """Embeds records again and returns those whose vectors changed by more than 0.1 (1 - cosine).

    Changes nothing. Use it after a model was replaced or its server changed.
    """
    return await memory.finding.drift(request.priorities)
