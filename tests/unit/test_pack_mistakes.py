"""What a pack's file may not be called, call or nest."""

from __future__ import annotations

import pytest

from pps.config.pack_reading import read_pack
from pps.config.packs import clash, shipped_pack
from pps.operations.pack_files import read_for_entities


def test_a_file_nested_too_deep_is_a_mistake() -> None:
    pack, mistakes = read_pack("x = " + "[" * 3_000)
    assert pack is None
    assert str(mistakes[0]) == "line 1: has too many lists or tables within each other"


@pytest.mark.parametrize("name", ["core", "records", "anchors", "upkeep", "constitution-typed"])
def test_a_pack_is_not_called_as_a_toolset(name: str) -> None:
    text = f'name = "{name}"\nversion = 1\n[kinds.Plant]\n'
    assert [str(one) for one in read_for_entities(text, name, own=True)[1]] == [
        "line 1: name: is the name of a toolset, choose another"
    ]


def test_a_tool_calls_what_entities_have() -> None:
    text = (
        'name = "garden"\nversion = 1\n[kinds.Plant]\n[tools."a.b"]\noperation = "entity_delete"\n'
    )
    assert [str(one) for one in read_for_entities(text, "garden", own=True)[1]] == [
        "line 5: tools.a.b.operation: 'entity_delete' is no operation of entities"
    ]
    assert (
        read_for_entities(text.replace("entity_delete", "record_list"), "garden", own=True)[1] == ()
    )


def test_a_tool_takes_no_name_that_is_made_of_another_packs_kinds() -> None:
    text = 'name = "garden"\nversion = 1\n[kinds.Plant]\n[tools."goal.create.v1"]\noperation = "record_list"\n'
    pack, _ = read_pack(text, "garden")
    assert pack
    packs = (shipped_pack("constitution"), pack, shipped_pack("events"))
    assert clash(packs) == "the packs constitution and garden both have the tool goal_create_v1"
    assert clash([one for one in packs if one != pack]) == ""
