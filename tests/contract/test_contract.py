"""What users and programs reach is what the snapshots beside this file say; see docs/contributing.md."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import pytest

from pps.config import Settings, load
from pps.core.ids import EntityId
from pps.core.time import now
from pps.entities import folder
from tests.contract.surface import (
    FILES,
    FOLDER,
    GONE,
    differences,
    mcp_tools,
    still_gone,
    stored,
)

_SHOWN = 40
"""Most lines of a difference that a failing test prints."""


@pytest.mark.parametrize("name", FILES)
def test_the_public_surface_is_what_its_snapshot_says(name: str) -> None:
    changed = differences(name, stored(name), FILES[name]())
    shown = "\n".join(changed[:_SHOWN])
    assert not changed, (
        f"{len(changed)} items of the public surface changed:\n{shown}\n"
        "If that is on purpose, run scripts/contract --write, commit the snapshots, and name in CHANGELOG.md what "
        "is gone and what took its place"
    )


def test_every_snapshot_is_compared() -> None:
    assert {file.stem for file in FOLDER.glob("*.json")} == {*FILES, GONE}


def test_what_is_gone_is_named_in_the_changelog() -> None:
    changelog = (FOLDER.parents[1] / "CHANGELOG.md").read_text("utf-8")
    gone = [item for item in stored(GONE)["items"] if not _is_position(item)]
    unnamed = [item for item in gone if f"`{_name(item)}`" not in changelog]
    assert not unnamed, f"CHANGELOG.md says nothing of what is gone: {unnamed[:_SHOWN]}"


def _is_position(item: str) -> bool:
    """Tell whether an item is what the help calls an argument by position, which nobody types: ``TEXT``."""
    return item.startswith("commands > ") and item.split(" > ")[-1].strip("[]…").isupper()


def _name(item: str) -> str:
    """Return an item's own name: of ``v1 > entity > recall > arguments > filters.kinds``, ``kinds``."""
    return re.split(r" > |\.|\(\*\*", item)[-1].strip("()[]-")


def test_an_item_that_goes_is_kept_in_mind_until_it_comes_back() -> None:
    whole, part = (
        {"recall": {"limit": "integer", "query": "string"}},
        {"recall": {"query": "string"}},
    )
    gone = still_gone([], "v1", whole, part)
    assert gone == ["v1 > recall > limit"]
    assert still_gone(gone, "v1", part, part) == gone
    assert still_gone(gone, "mcp", part, whole) == gone
    assert still_gone(gone, "v1", part, whole) == []


def test_a_difference_names_what_is_gone_new_and_changed() -> None:
    before = mcp_tools()
    after = copy.deepcopy(before)
    recall = after["entity"]["core"]["recall"]["arguments"]
    del recall["during"]
    recall["when"] = "string"
    recall["limit"] = "integer(1..50)"
    assert differences("mcp", before, after) == [
        'mcp: gone: entity > core > recall > arguments > during: string, default ""',
        "mcp: new: entity > core > recall > arguments > when: string",
        "mcp: changed: entity > core > recall > arguments > limit: integer(1..100) -> integer(1..50)",
    ]


def test_a_difference_names_a_lost_item_of_a_list() -> None:
    assert differences("names", {"channels": ["nodes", "facts"]}, {"channels": ["facts"]}) == [
        "names: gone: channels > nodes: listed"
    ]


@pytest.mark.parametrize("store", ["embedded", "neo4j"])
def test_every_name_of_a_store_is_read(store: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "pps.toml").write_text(f'store = "{store}"\n')
    assert load(env={"PPS_HOME": str(home)}).store == store
    assert load(env={"PPS_HOME": str(tmp_path), "PPS_STORE": store}).store == store
    assert Settings(home=home, store=store).store == store  # pyright: ignore
    card = folder.Card(EntityId("ana", "ent_" + "a1" * 13), store, now())
    folder.make(home / "entities" / "ana", card)
    assert folder.card_of(home / "entities" / "ana").store == store


def test_the_hook_lies_where_users_settings_name_it() -> None:
    hook = FOLDER.parents[1] / "config" / "claude" / "hooks" / "pps_hook.py"
    assert hook.is_file()
    assert hook.stat().st_mode & 0o400
