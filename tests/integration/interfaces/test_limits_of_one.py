"""What one caller asks wrongly is refused before it is acknowledged, and never makes the server unwell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from pps.core.errors import InvalidRequest
from tests.acceptance.outage import data, until
from tests.integration.interfaces.serving import Served, pps, serving
from tests.waiting import PATIENCE_S

AWAY = {
    "PPS_EXTRACTOR__MODE": "model",
    "PPS_EXTRACTOR__PROVIDER": "compatible",
    "PPS_EXTRACTOR__BASE_URL": "http://127.0.0.1:1/v1",
    "PPS_EXTRACTOR__MODEL": "away",
}


def ended(served: Served, task: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return served.link.call(task, "", arguments, timeout_s=100)["data"]


@pytest.mark.parametrize("kind", ["Entity", "Episodic", "Community", "Saga", "RelatesToNode_"])
def test_a_kind_that_graphiti_uses_itself_is_refused_before_anything_is_kept(
    served: Served, kind: str
) -> None:
    served.create("ana")
    before = data(served, "stats")["turns"]
    made = data(served, "add_event", content="The oven is hot.") if kind == "Entity" else None
    for verb, arguments in (
        ("remember", {"content": "x", "nodes": [{"name": "A", "kind": kind}]}),
        ("add_event", {"content": "x", "kind": kind}),
        *([("update", {"id": made["turn_id"], "kind": kind})] if made else []),
    ):
        with pytest.raises(InvalidRequest, match="reserved"):
            served.link.call(verb, "ana", arguments)
    assert data(served, "stats")["turns"] == before + (made is not None)


async def test_a_reserved_kind_in_create_graph_refuses_all_of_it(
    served: Served, tmp_path: Path
) -> None:
    nodes = [
        {"title": "Fine", "content": "Fine."},
        {"title": "Bad", "content": "Bad.", "node_type": "Community"},
    ]
    async with served.client(served.router(str(tmp_path)), "2026-07-28") as client:
        path = str(tmp_path / "project")
        refused = await client.call_tool("create_graph", {"project": path, "nodes": nodes})
        assert refused.is_error
        assert "reserved" in str(refused.content)
        found = await client.call_tool("search_nodes", {"project": path, "query": "Fine"})
        assert "Fine." not in str(found.content)


def test_imports_keep_what_has_a_reserved_kind_under_another(
    served: Served, tmp_path: Path
) -> None:
    served.create("importer")
    note = "---\ntype: entity\npermalink: n/one\n---\n# Note one\n\n- [tip] Bake early #oven\n"
    (tmp_path / "note.md").write_text(note)
    (tmp_path / "talk.jsonl").write_text(
        json.dumps({"content": "a", "nodes": [{"name": "A", "kind": "Saga"}]})
        + "\n"
        + json.dumps({"content": "b"})
    )
    done = ended(served, "import", {"entity": "importer", "paths": [str(tmp_path)]})
    assert [(one["what"], "reserved" in one["why"]) for one in done["unreadable"]] == [
        ("talk.jsonl:1", True)
    ]
    assert done["settled"]
    assert data(served, "ingestion_stats", "importer")["failed"] == 0


async def test_reading_by_a_model_that_is_not_set_is_refused_and_not_offered(
    served: Served,
) -> None:
    token = served.create("ana")
    before = data(served, "stats")["turns"]
    with pytest.raises(InvalidRequest, match=r"extraction.*extractor\.mode"):
        served.link.call("remember", "ana", {"content": "x", "extraction": "model"})
    assert data(served, "stats")["turns"] == before
    async with served.client(token, "2026-07-28") as client:
        (remember,) = [one for one in (await client.list_tools()).tools if one.name == "remember"]
    offered = json.dumps(remember.input_schema["properties"]["extraction"])
    assert "rules" in offered
    assert "command" not in offered
    assert "'model'" not in offered
    assert '"model"' not in offered


def test_what_no_model_can_read_holds_nothing_back_and_leaves_the_server_well(
    tmp_path: Path,
) -> None:
    home, notes = tmp_path / "home", tmp_path / "notes"
    notes.mkdir()
    (notes / "one.md").write_text("# One\n\nThe oven runs hot.\n")
    with serving(home, **AWAY) as served:
        served.create("ana")
        told = [
            data(served, "remember", content=f"Ana said {n}.", wait="journal") for n in (1, 2, 3)
        ]
        until(served, lambda: data(served, "stats")["episodes"] == len(told))
        data(served, "forget", ids=[told[0]["turn_id"]], dry_run=False)
        assert ended(served, "watch_add", {"entity": "ana", "path": str(notes)})["added"] == 1
        assert ended(served, "export", {"entity": "ana", "path": str(tmp_path / "out.jsonl")})[
            "lines"
        ]
        drop = (
            "jobs",
            "drop",
            "ana",
            str(told[1]["job_id"]),
            "--yes",
        )  # refused while the job is being tried
        until(served, lambda: served.pps(*drop).stdout.strip() == "1 dropped.")
        assert data(served, "job_status", id=str(told[1]["job_id"]))["state"] == "dropped"
    with serving(home) as served:
        until(served, lambda: data(served, "ingestion_stats")["failed"] > 0)
        health = data(served, "health")
        assert (health["ok"], health["outage"]) == (False, False)
        assert "extractor.mode" in served.pps("doctor", "ana").stdout
        with httpx.Client(base_url=served.run.url, trust_env=False, timeout=PATIENCE_S) as http:
            public = http.get("/health")
            assert (public.status_code, public.json()) == (200, {"status": "ok"})
        with served.owner() as owner:
            assert owner.get("/health").json()["status"] == "degraded"
            assert "pps_entity_problems 1" in owner.get("/metrics").text
        assert served.pps("jobs", "drop", "ana", "--all", "--yes").returncode == 0
        assert data(served, "health")["ok"]


def test_a_caller_with_other_settings_than_the_running_servers_is_told_what_to_do(
    served: Served,
) -> None:
    for name, value in (
        ("PPS_STORE", "neo4j"),
        ("PPS_EMBEDDER__NAME", "minilm"),
        ("PPS_EXTRACTOR__MODE", "given"),
    ):
        refused = pps({**served.env, name: value}, "entity", "create", "other")
        assert refused.returncode == 2
        assert name in refused.stderr
        assert "pps serve --stop" in refused.stderr
    assert (
        pps({**served.env, "NEO4J_URI": "bolt://elsewhere"}, "entity", "list").returncode == 0
    )  # not in use here


def test_a_passing_address_is_not_printed_as_configuration_and_a_taken_port_is_refused(
    served: Served,
) -> None:
    made = served.pps("entity", "create", "dora")
    shown = served.pps("entity", "show", "dora")
    assert f":{served.run.port}" not in made.stdout + shown.stdout
    assert "http://127.0.0.1:<port>/mcp" in shown.stdout
    elsewhere = {**served.env, "PPS_HOME": str(served.home.parent / "another")}
    refused = pps(elsewhere, "serve", "--port", str(served.run.port))
    assert refused.returncode == 2
    assert f"{served.run.port} is taken" in refused.stderr
