"""Graphiti is pinned exactly; a changed hook, signature or unhooked statement fails here before it reaches a user.

``RECORD_GRAPHITI=1 pytest tests/isolation/test_graphiti_pin.py tests/isolation/test_recorder.py`` writes the files anew
after an upgrade. Read the difference against ``docs/isolation.md`` and the guard before committing it.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pps.isolation.graphiti_objects import GroupOperations
from pps.isolation.graphiti_search import GroupSearch
from pps.isolation.sql_operations import SqlOperations
from pps.isolation.sql_search import SqlSearch
from tests.isolation.graphiti_source import Sender, senders, source

FILE = Path(__file__).with_name("graphiti_source.json")
_PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    current = source()
    if os.environ.get("RECORD_GRAPHITI"):
        FILE.write_text(json.dumps(current, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return current


@pytest.mark.parametrize(
    "part", ["version", "senders", "unhooked_statements", "hooks", "driver", "used_by_pps"]
)
def test_graphiti_is_what_was_recorded(part: str, found: dict[str, Any]) -> None:
    recorded = json.loads(FILE.read_text("utf-8"))
    assert differences(recorded[part], found[part], part) == []


def differences(recorded: object, current: object, path: str) -> list[str]:
    """Return one line for each item of Graphiti that is gone, new or changed."""
    if isinstance(recorded, dict) and isinstance(current, dict):
        return [
            line
            for name in sorted({*recorded, *current})
            for line in differences(recorded.get(name), current.get(name), f"{path}.{name}")
        ]
    return [] if recorded == current else [f"{path}: {recorded!r} -> {current!r}"]


def test_the_pin_is_exact_and_is_what_is_installed() -> None:
    project = tomllib.loads(_PYPROJECT.read_text("utf-8"))["project"]
    (pin,) = [one for one in project["dependencies"] if one.startswith("graphiti-core")]
    assert pin == f"graphiti-core=={importlib.metadata.version('graphiti-core')}"


def overridden(*tables: type) -> set[str]:
    """Return the methods that classes of ours define in place of Graphiti's."""
    return {
        name
        for table in tables
        for kind in table.__mro__
        if kind.__module__.startswith("pps.")
        for name in vars(kind)
    }


@pytest.mark.parametrize(
    "tables", [(GroupOperations, GroupSearch), (SqlOperations, SqlSearch)], ids=["guarded", "sql"]
)
def test_each_hook_without_a_fallback_is_ours(tables: tuple[type, ...]) -> None:
    """Where Graphiti has no statement of its own, a hook that is missing is an error in the middle of a call."""
    needed = {
        hook.partition(".")[2]
        for sender in senders()
        if not sender.falls_back
        for hook in sender.hooks
    }
    assert len(needed) == 11
    assert needed <= overridden(*tables)


_REFUSED_ON_SQL = {
    "community_edge_get_by_uuid",
    "episodic_edge_get_by_group_ids",
    "episodic_edge_get_by_uuid",
    "episodic_edge_get_by_uuids",
    "has_episode_edge_get_by_group_ids",
    "has_episode_edge_get_by_uuid",
    "next_episode_edge_get_by_group_ids",
    "next_episode_edge_get_by_uuid",
}
"""Reads of single links by hand, which Graphiti's own pipeline and searches never do: they raise IsolationError."""


def test_the_sql_store_answers_every_hook_that_is_asked() -> None:
    """It runs no statement of Graphiti's, so that there is nothing to fall back on."""
    asked = {hook.partition(".")[2] for sender in senders() for hook in sender.hooks}
    assert asked - overridden(SqlOperations, SqlSearch) <= _REFUSED_ON_SQL


def test_what_no_hook_guards_is_known_by_name() -> None:
    """A new statement that goes round the hooks must be judged before it is allowed."""
    unhooked = {sender.place for sender in senders() if not sender.hooks}
    assert unhooked == {
        "graphiti.py:Graphiti._get_or_create_saga",
        "graphiti.py:Graphiti.remove_episode",
        "graphiti.py:Graphiti.summarize_saga",
        "search/search_utils.py:get_edge_invalidation_candidates",
        "search/search_utils.py:get_relevant_edges",
        "search/search_utils.py:get_relevant_nodes",
        "utils/maintenance/edge_operations.py:filter_existing_duplicate_of_edges",
        "utils/maintenance/graph_data_operations.py:delete_all",
        "utils/maintenance/graph_data_operations.py:delete_group_ids",
    }


def test_a_changed_statement_or_hook_is_a_difference() -> None:
    before = Sender("a.py:f", (), True, "driver.run('MATCH (n) RETURN n')", ())
    after = Sender("a.py:f", (), True, "driver.run('MATCH (n) RETURN n, 1')", ())
    hooked = Sender("a.py:f", ("operations.f",), True, before.code, ())
    assert len({before.line, after.line, hooked.line}) == 3
    assert differences({"f": before.line}, {"f": before.line}, "senders") == []
    assert differences({"f": before.line}, {"f": after.line, "g": "x"}, "senders") == [
        f"senders.f: {before.line!r} -> {after.line!r}",
        "senders.g: None -> 'x'",
    ]
