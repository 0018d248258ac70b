"""The seven layers and what is in each."""

from __future__ import annotations

from typing import get_args

import pytest

from pps.core.errors import InvalidRequest
from pps.core.values import LAYERS, Layer, kinds_of
from pps.journal.filters import ItemFilter
from pps.recall.request import make_request


def test_there_are_seven_layers_and_no_kind_is_in_two() -> None:
    every = [kind for kinds in LAYERS.values() for kind in kinds]
    assert tuple(LAYERS) == get_args(Layer)
    assert len(LAYERS) == 7
    assert len(set(every)) == len(every) == 38


def test_a_layer_given_twice_counts_once() -> None:
    assert kinds_of(["tactics", "vision", "tactics"]) == (*LAYERS["tactics"], *LAYERS["vision"])


def test_a_layer_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(InvalidRequest, match=r"filters\.layers: 'cellar' is none of foundation, vision, .*, mind"):
        make_request("x", {"filters": ItemFilter(layers=("vision", "cellar"))})
