"""Layers stand for the kinds in them, as an entity's packs say."""

from __future__ import annotations

import pytest

from pps.config.packs import shipped_pack
from pps.core.errors import InvalidRequest
from pps.core.kinds import Kinds

KINDS = Kinds((shipped_pack("constitution"),))


def test_a_layer_given_twice_counts_once() -> None:
    found = KINDS.of_layers(["tactics", "vision", "tactics"])
    assert found == ("Vision", "Business", "Goal", "Season", "Project", "Area", "System", "Process")


def test_a_layer_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(
        InvalidRequest,
        match=r"filters\.layers: 'cellar' is no layer .* foundation, vision, .*, mind",
    ):
        KINDS.of_layers(["vision", "cellar"], "filters.layers")
