"""Metrics leave the machine: whatever entities are called, write, or send, none of it is in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.integration.interfaces.serving import Served, serving
from tests.waiting import PATIENCE_S

PACK = """
name = "orchard"
version = 1
[kinds.Medlar]
[tools."medlar.tally.v1"]
operation = "stats"
"""
WORDS = ("zinnia", "orchard", "medlar", "quince", "forged")
"""Names of the entity, its pack, its kind and tool, a word that it keeps, and what its client sends."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = tmp_path_factory.mktemp("metrics") / "home"
    (home / "packs").mkdir(parents=True)
    (home / "packs" / "orchard.toml").write_text(PACK)
    with serving(home) as running:
        running.create("zinnia")
        running.link.call("pack_enable", "", {"entity": "zinnia", "pack": "orchard"})
        yield running


def test_no_metric_holds_a_name_or_a_word_of_anybody(served: Served) -> None:
    token = served.link.call("token_issue", "", {"name": "zinnia"})["data"]["token"]
    headers = {"Authorization": f"Bearer {token}", "X-Request-Id": "quince"}
    with httpx.Client(base_url=served.run.url, trust_env=False, timeout=PATIENCE_S) as http:
        for operation, body in (
            ("remember", {"content": "The quince is ripe."}),
            ("medlar.tally.v1", {}),
            ("recall", {"query": "quince", "nonsense": "quince"}),
            ("quince", {}),
        ):
            http.post(f"/v1/{operation}", headers=headers, json=body)
        for method, path in (
            ("GET", "/page/zinnia/"),
            ("GET", "/quince?word=quince"),
            ("QUINCE", "/health"),
            ("GET", '/v1/x"} 1\nforged_total 9'.replace("\n", "%0A")),
        ):
            http.request(method, path, headers={"X-Request-Id": 'forged"} 1'})
        with served.owner() as owner:
            text = owner.get("/metrics").text
    assert not [word for word in WORDS if word in text.casefold()]
    families = {family.name: family for family in text_string_to_metric_families(text)}
    labels = {key for family in families.values() for one in family.samples for key in one.labels}
    assert labels <= {"version", "state", "operation", "outcome", "method", "route", "status", "le"}
    operations = {one.labels["operation"] for one in families["pps_calls"].samples}
    assert {"remember", "pack_tool"} <= operations
    routes = {one.labels["route"] for one in families["pps_http_requests"].samples}
    assert {"/v1/{operation}", "/page/{name}/", "none"} <= routes


def test_who_is_no_operator_learns_only_whether_it_is_ready(served: Served) -> None:
    entity = served.link.call("token_issue", "", {"name": "zinnia"})["data"]["token"]
    with httpx.Client(base_url=served.run.url, trust_env=False, timeout=PATIENCE_S) as http:
        for token in ("", "nonsense", entity, "pps_w_.zinnia"):
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            answer = http.get("/ready", headers=headers)
            assert (answer.status_code, answer.json()) == (200, {"status": "ready"})
            assert http.get("/metrics", headers=headers).status_code == 401


def test_a_forged_request_id_writes_no_line_of_the_log(served: Served) -> None:
    with served.owner(**{"PPS-Entity": "zinnia"}) as http:
        for forged in ("a b", "x" * 65, "id] INFO forged", "-", "ä"):
            answer = http.post("/v1/stats", headers={"X-Request-Id": forged.encode()}, json={})
            assert answer.headers["X-Request-Id"] not in (forged, "-")
    log = Path(served.home / "test-server.log").read_text()
    assert "INFO forged" not in log
