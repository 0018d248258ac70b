"""Ids: the same for the same things, and what is no id is refused by name."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pps.core.errors import InvalidRequest
from pps.core.ids import are_uuids, is_uuid, new_group, stable_id
from pps.isolation.binding import check_uuids

_GROUP = "ent_" + "a" * 26
_ID = "1b4e28ba-2fa1-5d2b-883f-0016d3cca427"


@given(st.lists(st.text(), max_size=5))
def test_a_stable_id_is_the_uuid5_of_its_parts_with_their_lengths(parts: list[str]) -> None:
    joined = "".join(f"{len(part)}:{part}" for part in (_GROUP, *parts))
    assert stable_id(_GROUP, *parts) == str(
        uuid.uuid5(uuid.UUID("6f2a4f0e-6d0f-5c57-9a4e-0a5b1d6f3c11"), joined)
    )


def test_parts_are_told_apart_and_so_are_groups() -> None:
    assert stable_id(_GROUP, "ab", "c") != stable_id(_GROUP, "a", "bc")
    assert stable_id(_GROUP, "a") != stable_id(new_group(), "a")


@given(
    st.lists(
        st.one_of(st.uuids().map(str), st.text(max_size=3), st.integers(), st.none(), st.binary())
    )
)
def test_many_are_ids_when_each_is(values: list[object]) -> None:
    assert are_uuids(values) == all(map(is_uuid, values))


def test_ids_come_back_once_each_in_their_order() -> None:
    first, second = str(uuid.uuid4()), str(uuid.uuid4())
    assert check_uuids([second, first, second]) == [second, first]
    assert check_uuids([]) == []


@pytest.mark.parametrize("wrong", ["", "x", _ID.upper(), _ID + "\n", None, 7, b"x", ["x"]])
def test_one_wrong_id_among_others_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidRequest) as refused:
        check_uuids([str(uuid.uuid4()), wrong, str(uuid.uuid4())])  # type: ignore[list-item]
    assert refused.value.field == "id"
