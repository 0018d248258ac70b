"""Which of Graphiti's nodes and edges a search may bring back: its filters, and what holds at a moment."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from graphiti_core.edges import EntityEdge
from graphiti_core.nodes import EntityNode
from graphiti_core.search.search_filters import ComparisonOperator, DateFilter, SearchFilters

from pps.core.time import utc
from pps.graph.mapping import ATTRIBUTE
from pps.isolation.requests import GraphFilters

_COMPARE: Mapping[ComparisonOperator, Callable[[Any, Any], bool]] = {
    ComparisonOperator.equals: operator.eq,
    ComparisonOperator.not_equals: operator.ne,
    ComparisonOperator.greater_than: operator.gt,
    ComparisonOperator.less_than: operator.lt,
    ComparisonOperator.greater_than_equal: operator.ge,
    ComparisonOperator.less_than_equal: operator.le,
}


@dataclass(frozen=True, slots=True)
class Scope:
    """What Graphiti's filters have no word for.

    Attributes:
        at: Only facts that hold at this instant of world time; None is any time.
        past: Search past facts too.
        typed_links: Also facts of PPS's kind ``relation``.
    """

    at: datetime | None = None
    past: bool = True
    typed_links: bool = True


_scope: ContextVar[Scope | None] = ContextVar("pps_search_scope", default=None)


def scope() -> Scope:
    """Return the scope of the present search: everything, for the searches of Graphiti's own pipeline."""
    return _scope.get() or Scope()


@contextmanager
def within(chosen: Scope) -> Generator[None]:
    """Let searches in the block, and in the tasks it starts, see this scope."""
    token = _scope.set(chosen)
    try:
        yield
    finally:
        _scope.reset(token)


def search_filters(filters: GraphFilters) -> SearchFilters:
    """Return Graphiti's filters; raises its ValueError for a label that is none."""
    return SearchFilters(
        node_labels=_or_none(filters.kinds),
        edge_types=_or_none(filters.relations),
        edge_uuids=_or_none(filters.facts),
        edge_source_node_uuids=_or_none(filters.subjects),
        edge_target_node_uuids=_or_none(filters.objects),
        valid_at=_span(filters.valid, "valid"),
        created_at=_span(filters.created, "created"),
    )


def node_matches(node: EntityNode, filters: SearchFilters) -> bool:
    """Tell whether a node has one of the labels."""
    return not filters.node_labels or bool(set(filters.node_labels) & set(node.labels))


def edge_matches(edge: EntityEdge, filters: SearchFilters) -> bool:
    """Tell whether an edge passes everything but the labels of its ends, and the scope."""
    named = (
        (filters.edge_types, edge.name),
        (filters.edge_uuids, edge.uuid),
        (filters.edge_source_node_uuids, edge.source_node_uuid),
        (filters.edge_target_node_uuids, edge.target_node_uuid),
    )
    dated = (
        (filters.valid_at, edge.valid_at),
        (filters.invalid_at, edge.invalid_at),
        (filters.created_at, edge.created_at),
        (filters.expired_at, edge.expired_at),
    )
    return (
        all(allowed is None or value in allowed for allowed, value in named)
        and all(_dates_match(wanted, value) for wanted, value in dated)
        and _in_scope(edge, scope())
    )


def _in_scope(edge: EntityEdge, wanted: Scope) -> bool:
    if not wanted.typed_links and _is_typed_link(edge):
        return False
    return wanted.at is None or _holds(edge, wanted.at)


def _holds(edge: EntityEdge, at: datetime) -> bool:
    """Tell whether ``valid_at <= at < invalid_at``; a fact given up without an end never holds."""
    began, ended = _aware(edge.valid_at), _aware(edge.invalid_at)
    if edge.expired_at is not None and ended is None:
        return False
    return (began is None or began <= at) and (ended is None or at < ended)


def _is_typed_link(edge: EntityEdge) -> bool:
    raw: object = edge.attributes.get(ATTRIBUTE)
    ours = cast("dict[str, Any]", json.loads(raw) if isinstance(raw, str) else raw or {})
    return ours.get("kind") == "relation"


def _dates_match(wanted: list[list[DateFilter]] | None, value: datetime | None) -> bool:
    """Evaluate Graphiti's filter: any of the lists, all of the conditions in a list."""
    return wanted is None or any(all(_date_matches(one, value) for one in every) for every in wanted)


def _date_matches(wanted: DateFilter, value: datetime | None) -> bool:
    if wanted.comparison_operator == ComparisonOperator.is_null:
        return value is None
    if wanted.comparison_operator == ComparisonOperator.is_not_null:
        return value is not None
    compare = _COMPARE[wanted.comparison_operator]
    return value is not None and wanted.date is not None and compare(_aware(value), _aware(wanted.date))


def _span(span: tuple[datetime | None, datetime | None], field: str) -> list[list[DateFilter]] | None:
    start, end = span
    conditions: list[DateFilter] = []
    if start is not None:
        ge = ComparisonOperator.greater_than_equal
        conditions.append(DateFilter(date=utc(start, field), comparison_operator=ge))
    if end is not None:
        conditions.append(DateFilter(date=utc(end, field), comparison_operator=ComparisonOperator.less_than))
    return [conditions] if conditions else None


def _aware(moment: datetime | None) -> datetime | None:
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment


def _or_none(values: Sequence[str]) -> list[str] | None:
    return list(values) or None
