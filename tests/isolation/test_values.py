"""What a parameter and a row may name, by value, at any depth; and refusals that a library swallows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from pps.core.errors import IsolationError
from pps.core.ids import EntityId, new_group
from pps.isolation.counters import IsolationCounters, NoBreach
from pps.isolation.guarded_values import RefusedValue, check_rows, ids_of_unbound_rows, names_of

GROUP, OTHER = new_group(), new_group()
UUID = "6f2a4f0e-6d0f-5c57-9a4e-0a5b1d6f3c11"


@pytest.mark.parametrize(
    "parameters",
    [
        {"group_id": OTHER},
        {"group_id": None},
        {"group_id": ""},
        {"group_id": [GROUP, OTHER]},
        {"group_ids": []},
        {"group_ids": [GROUP, None]},
        {"group_ids": {GROUP}},
        {"group_id": {"a": GROUP}},
        {"group_id": GROUP, "nodes": [{"uuid": UUID, "group_id": OTHER}]},
        {"group_id": GROUP, "edge_data": {"group_id": None}},
        {"group_id": GROUP, "whose": OTHER},
        {"group_id": GROUP, "a": {"b": {"c": [[OTHER]]}}},
        {"group_id": GROUP, "uuid": UUID.upper()},
        {"group_id": GROUP, "uuids": [UUID, ""]},
        {"group_id": GROUP, "anything": f"urn:uuid:{UUID}"},
        {"group_id": GROUP, "anything": UUID.replace("-", "")},
        {"group_id": GROUP, "rows": iter([UUID])},
        {"group_id": GROUP, "id": b"\x00" * 16},
        {"group_id": GROUP, "table": np.array([OTHER], dtype=object)},
    ],
)
def test_a_parameter_that_names_another_group_or_no_id_is_refused(
    parameters: dict[str, Any],
) -> None:
    with pytest.raises(RefusedValue):
        names_of(GROUP, parameters)


def test_a_group_that_lies_about_being_equal_is_refused() -> None:
    class Liar(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = str.__hash__

    with pytest.raises(RefusedValue):
        names_of(GROUP, {"group_id": Liar(OTHER)})


def test_a_parameter_nested_without_end_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(60):
        deep = [deep]
    with pytest.raises(RefusedValue):
        names_of(GROUP, {"group_id": GROUP, "deep": deep})


@pytest.mark.parametrize(
    ("parameters", "ids"),
    [
        ({"group_id": GROUP, "uuid": UUID}, {UUID}),
        ({"group_ids": [GROUP], "episodes": [UUID]}, {UUID}),
        ({"duplicate_node_uuids": [[UUID, UUID]]}, {UUID}),
        ({"duplicate_node_uuids": [{"src": UUID, "dst": UUID}]}, {UUID}),
        ({"some": {"deep": [{"thing": UUID}]}}, {UUID}),
        ({"by_key": {UUID: 1}}, {UUID}),
        ({"edge_data": {"group_id": GROUP, "source_uuid": UUID}}, {UUID}),
        ({"entity_edges": [{"group_id": GROUP, "episodes": [UUID]}]}, {UUID}),
        ({"group_id": GROUP, "entity_edges": [UUID]}, {UUID}),
        (
            {
                "group_id": GROUP,
                "content": UUID,
                "name": UUID,
                "fact": UUID,
                "summary": UUID,
                "query": UUID,
            },
            set(),
        ),
        ({"group_id": GROUP, "entity_data": {"group_id": GROUP, "favourite": UUID}}, set()),
        (
            {"group_id": GROUP, "search_vector": [0.1, 0.2], "limit": 3, "at": datetime.now(UTC)},
            set(),
        ),
        ({"group_id": GROUP, "search_vector": np.zeros(3, dtype=np.float32)}, set()),
    ],
)
def test_ids_are_found_by_value_at_any_depth_and_content_is_left_alone(
    parameters: dict[str, Any], ids: set[str]
) -> None:
    assert names_of(GROUP, parameters).ids == ids


@pytest.mark.parametrize(
    "row",
    [
        {"group_id": OTHER},
        {"n.group_id": OTHER},
        {"group_id": None},
        {"group_ids": [GROUP, OTHER]},
        {"whose": OTHER},
        {"found": [{"a": {"group_id": OTHER}}]},
        {"attributes": {"group_id": OTHER, "name": "x"}},
        {"list": [OTHER]},
    ],
)
def test_a_row_of_another_group_is_refused(row: dict[str, Any]) -> None:
    with pytest.raises(RefusedValue):
        check_rows(GROUP, [{"uuid": UUID, "group_id": GROUP}, row])


def test_a_row_of_ones_own_passes_whatever_its_content_says() -> None:
    check_rows(
        GROUP,
        [{"group_id": GROUP, "content": OTHER, "name": OTHER, "attributes": {"favourite": OTHER}}],
    )


def test_a_refusal_that_a_library_swallows_still_fails_the_call() -> None:
    entity, counters = EntityId("ana", GROUP), IsolationCounters()

    def swallowed() -> None:
        with NoBreach(entity):
            try:
                raise counters.refuse(entity, "group", "for the test")
            except IsolationError:
                pass

    with pytest.raises(IsolationError):
        swallowed()


def test_a_refusal_does_not_swallow_another_error_or_a_cancellation() -> None:
    entity, counters = EntityId("ana", GROUP), IsolationCounters()

    def ends_with(error: BaseException) -> None:
        with NoBreach(entity):
            counters.refuse(entity, "group", "for the test")
            raise error

    with pytest.raises(IsolationError) as told:
        ends_with(ValueError("later"))
    assert isinstance(told.value.__cause__, ValueError)
    with pytest.raises(KeyboardInterrupt):
        ends_with(KeyboardInterrupt())


@pytest.mark.parametrize(
    ("row", "ids"),
    [
        ({"uuid": UUID, "score": 1}, {UUID}),
        ({"e.uuid": UUID}, {UUID}),
        ({"found": [{"uuids": [UUID]}]}, {UUID}),
        ({"uuid": UUID, "group_id": GROUP}, set()),
        ({"uuid": UUID, "n.group_id": GROUP}, set()),
        ({"name": UUID, "content": UUID, "embedding": [0.1]}, set()),
        ([UUID], {UUID}),
    ],
)
def test_ids_are_found_in_rows_that_do_not_say_whose_they_are(row: Any, ids: set[str]) -> None:
    assert ids_of_unbound_rows([row]) == ids


def test_of_ppss_own_statements_only_the_groups_are_looked_at() -> None:
    named = names_of(
        GROUP, {"group_id": GROUP, "uuids": [UUID, "x"], "rows": [{"vector": [0.1] * 8}]}, own=True
    )
    assert (named.bound, named.ids) == (True, set())
    with pytest.raises(RefusedValue):
        names_of(GROUP, {"group_id": GROUP, "rows": [{"group_id": OTHER}]}, own=True)
