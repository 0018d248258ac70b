"""graphiti.md, point 10: what Graphiti sends is a file, and a difference after an upgrade fails here."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pps.config import Settings
from pps.isolation.graphiti_models import make_llm
from pps.isolation.graphiti_objects import GroupOperations
from pps.isolation.graphiti_search import GroupSearch
from pps.isolation.guard import BoundDriver, GuardedDriver
from pps.isolation.neo4j import open_neo4j
from pps.isolation.sql_driver import SqlDriver
from pps.models.protocols import ExtractorModel
from tests.isolation.recorder import interfaces, record
from tests.model_server import model_server

FILE = Path(__file__).with_name("graphiti_recorded.json")
REWRITE = bool(os.environ.get("RECORD_GRAPHITI"))

pytestmark = pytest.mark.timeout(300)


def check(part: str, found: dict[str, Any]) -> None:
    stored = json.loads(FILE.read_text()) if FILE.exists() else {}
    told = json.loads(json.dumps(found))
    if REWRITE:
        stored[part] = told
        FILE.write_text(readable(stored))
    for name, value in told.items():
        known = stored[part][name]
        if isinstance(value, list):
            new = [one for one in value if one not in known]
            gone = [one for one in known if one not in value]
            assert (new, gone) == ([], []), (
                f"{part}.{name}: Graphiti sends something else than it did"
            )
        assert value == known, f"{part}.{name}: Graphiti is not what it was"


def readable(stored: dict[str, dict[str, Any]]) -> str:
    """Return JSON with one statement, or one function, a line: a difference is easy to read."""
    parts: list[str] = []
    for part, content in sorted(stored.items()):
        entries = [
            f'  "{name}": '
            + (
                "[\n" + ",\n".join(f"   {json.dumps(one)}" for one in value) + "\n  ]"
                if isinstance(value, list)
                else json.dumps(value, indent=3)
                if not isinstance(value, dict)
                else "{\n"
                + ",\n".join(
                    f"   {json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(value.items())
                )
                + "\n  }"
            )
            for name, value in sorted(content.items())
        ]
        parts.append(f' "{part}": {{\n' + ",\n".join(entries) + "\n }")
    return "{\n" + ",\n".join(parts) + "\n}\n"


async def recorded(driver: Any) -> dict[str, Any]:
    with model_server() as server:
        model = ExtractorModel("compatible", model="m", base_url=server.base_url, timeout_s=20)
        llm = make_llm(model)
        try:
            return await record(driver, llm)
        finally:
            await llm.close()  # type: ignore[attr-defined]


@pytest.mark.neo4j
async def test_graphiti_sends_what_was_recorded_on_neo4j(shared_settings: Settings) -> None:
    at = shared_settings.neo4j
    pool = await open_neo4j(at.uri, at.user, at.password.get_secret_value(), at.database)
    try:
        check("neo4j", await recorded(pool.driver()))
    finally:
        await pool.close()


def test_graphitis_hooks_and_public_methods_are_what_they_were() -> None:
    check("interfaces", interfaces())


def test_every_search_hook_is_ours() -> None:
    """A hook that is not overridden would let a search of Graphiti's own loose on the database."""
    hooks = {name for name in interfaces()["search"] if not name.startswith("build_")}
    assert hooks <= vars(GroupSearch).keys()


def test_every_operation_that_graphiti_calls_without_a_way_back_is_ours() -> None:
    called = {
        *("episodic_node_save_bulk", "node_save_bulk", "episodic_edge_save_bulk", "edge_save_bulk"),
        *("node_load_embeddings_bulk", "edge_load_embeddings_bulk"),
    }
    assert called <= vars(GroupOperations).keys()


@pytest.mark.parametrize("kind", [GuardedDriver, SqlDriver])
def test_every_way_that_a_driver_has_to_a_statement_is_guarded(kind: type[BoundDriver]) -> None:
    from graphiti_core.driver.driver import GraphDriver

    ours = vars(kind).keys() | vars(BoundDriver).keys()
    public = {name for name in vars(GraphDriver) if not name.startswith("_")}
    plain = {
        "provider",
        "fulltext_syntax",
        "default_group_id",
        "search_interface",
        "graph_operations_interface",
    }
    tables = {name for name in public if name.endswith("_ops")}
    assert all(getattr(GraphDriver, name).fget(None) is None for name in tables), (
        "none of them is handed out"
    )
    assert public - plain - tables - ours == {"build_fulltext_query"}, (
        "a way that nobody thought of"
    )
