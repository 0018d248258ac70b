"""What recall may be told: bounds named, times in words made filters."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from pps.core.errors import InvalidRequest
from pps.journal.filters import ItemFilter
from pps.recall.request import make_request

THURSDAY = datetime(2023, 6, 15, 12, tzinfo=UTC)


def test_during_is_a_filter_from_its_beginning_to_its_end() -> None:
    request = make_request(
        "roses", {"during": "last spring", "as_of": THURSDAY, "filters": ItemFilter(tags=("t",))}
    )

    assert request.filters == ItemFilter(
        tags=("t",), since=datetime(2023, 3, 1, tzinfo=UTC), until=datetime(2023, 6, 1, tzinfo=UTC)
    )


def test_a_time_in_the_query_alone_filters_nothing() -> None:
    assert make_request("roses last spring", {"as_of": THURSDAY}).filters == ItemFilter()


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"during": "some day"}, "during"),
        ({"during": "last spring or last week"}, "during"),
        ({"during": "last spring", "filters": ItemFilter(since=THURSDAY)}, "during"),
        ({"weights": {"dense": -1.0}}, "weights"),
        ({"weights": {"dense": float("nan")}}, "weights"),
        ({"weights": {"dense": 1_001.0}}, "weights"),
        ({"min_similarity": 1.5}, "min_similarity"),
        ({"min_similarity": float("nan")}, "min_similarity"),
        ({"max_hops": 0}, "max_hops"),
        ({"max_hops": 5}, "max_hops"),
        ({"limit": 101}, "limit"),
    ],
)
def test_a_broken_bound_is_named(options: Any, field: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        make_request("roses", options)

    assert caught.value.message.startswith(f"{field}: ")
