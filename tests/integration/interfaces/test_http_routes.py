from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from pps.core.errors import InvalidRequest, NotFound, PPSError, UnknownEntity
from pps.interfaces.http.problems import Answered
from pps.operations.catalog import operations_for
from tests.integration.interfaces.serving import Served, serving
from tests.waiting import PATIENCE_S


@pytest.fixture
def http(served: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served.run.url, trust_env=False, timeout=PATIENCE_S) as client:
        yield client


JSON = {"Content-Type": "application/json"}


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_health_says_only_ok_without_an_operators_token(served: Served, http: httpx.Client) -> None:
    token = served.create("ana")
    for headers in ({}, _bearer(token), _bearer("nonsense")):
        answer = http.get("/health", headers=headers)
        assert answer.status_code == 200
        assert answer.json() == {"status": "ok"}
    operator = str(served.link.call("operator_issue", "", {})["data"]["token"])
    details = http.get("/health", headers=_bearer(operator)).json()
    assert details["status"] == "ok"
    assert details["problems"] == []
    assert details["pid"] == served.run.pid


def test_metrics_need_an_operators_token_and_are_prometheus_text(
    served: Served, http: httpx.Client
) -> None:
    token = served.create("ana")
    served.link.call("stats", "ana", {})
    for headers in ({}, _bearer(token)):
        refused = http.get("/metrics", headers=headers)
        assert refused.status_code == 401
        assert "WWW-Authenticate" in refused.headers
    operator = str(served.link.call("operator_issue", "", {})["data"]["token"])
    answer = http.get("/metrics", headers=_bearer(operator))
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    samples = [line for line in answer.text.splitlines() if not line.startswith("#")]
    assert all(
        len(line.rsplit(" ", 1)) == 2 and float(line.rsplit(" ", 1)[1]) >= 0 for line in samples
    )
    assert any(
        line.startswith('pps_calls_total{operation="stats",outcome="ok"}') for line in samples
    )
    assert "pps_unfinished_jobs 0" in samples
    served.link.call("operator_revoke", "", {})
    assert http.get("/metrics", headers=_bearer(operator)).status_code == 401


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/owner/status"),
        ("POST", "/owner/stop"),
        ("POST", "/owner/hooks"),
        ("POST", "/owner/tools"),
    ],
)
def test_the_owners_routes_are_for_the_owner_alone(
    served: Served, http: httpx.Client, method: str, path: str
) -> None:
    operator = str(served.link.call("operator_issue", "", {})["data"]["token"])
    for token in (served.create("ana"), operator, "nonsense", "pps_w_.ana"):
        answer = http.request(method, path, headers=_bearer(token), json={"entity": "ana"})
        assert answer.status_code == 401
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["code"] == "refused"


def test_an_operator_keeps_the_registry_and_reads_no_memory(
    served: Served, http: httpx.Client
) -> None:
    operator = _bearer(str(served.link.call("operator_issue", "", {})["data"]["token"]))
    made = http.post("/v1/entity_create", headers=operator, json={"name": "by_operator"})
    assert made.json()["is_new"] is True
    assert http.post("/v1/entity_list", headers=operator, json={}).status_code == 200
    assert (
        http.post("/v1/entity_list", headers=_bearer(served.create("ana")), json={}).status_code
        == 404
    )
    assert http.post("/v1/stats", headers=operator, json={}).status_code == 404
    assert (
        http.post(
            "/v1/stats", headers={**operator, "PPS-Entity": "by_operator"}, json={}
        ).status_code
        == 403
    )


def test_a_call_answers_with_data_and_text(served: Served) -> None:
    served.create("caller")
    answer = served.link.call(
        "remember", "caller", {"content": "The oven runs hot.", "source": "cli"}
    )
    assert answer["data"]["state"] == "done"
    assert "Remembered" in answer["text"]
    found = served.link.call("recall", "caller", {"query": "oven"})
    assert "oven" in found["text"]


@pytest.mark.parametrize(
    ("query", "profile", "channel", "first"),
    [
        ("What does Vera grow on the hill?", "facts", "facts", "Vera grows plums on the hill."),
        ("Vera", "nodes", "nodes", "Vera: A gardener."),
        (
            "We stood on the hill and looked at the plums.",
            "contextual",
            "facts",
            "Vera grows plums on the hill.",
        ),
    ],
)
def test_a_question_a_name_and_a_tale_go_to_facts_to_nodes_and_to_facts_by_mentions(
    served: Served, query: str, profile: str, channel: str, first: str
) -> None:
    served.create("router")
    plums = {
        "subject": "Vera",
        "relation": "GROWS",
        "object": "plums",
        "text": "Vera grows plums on the hill.",
    }
    sheep = {
        "subject": "Otto",
        "relation": "KEEPS",
        "object": "sheep",
        "text": "Otto keeps sheep on the hill.",
    }
    nodes = [{"name": "Vera", "kind": "Person", "summary": "A gardener."}]
    for number, facts in enumerate(([plums, sheep], [plums], [plums])):
        said = {
            "content": f"Plums and sheep, number {number}.",
            "source_ref": str(number),
            "facts": facts,
        }
        served.link.call("remember", "router", {**said, "nodes": nodes})

    found: Any = served.link.call("recall", "router", {"query": query, "channels": "auto"})["data"]

    assert (found["profile"], list(found["channels"])) == (profile, [channel])
    hits = found["channels"][channel]["hits"]
    assert hits[0]["text"] == first
    assert hits[0]["ranks"].get("mentions") == (1 if profile == "contextual" else None)


def test_errors_come_back_as_what_they_were(served: Served) -> None:
    served.create("ana")
    with pytest.raises(UnknownEntity, match="nobody"):
        served.link.call("stats", "nobody", {})
    with pytest.raises(PPSError, match="operation: there is none of that name"):
        served.link.call("nonesuch", "ana", {})
    with pytest.raises(InvalidRequest, match="limit"):
        served.link.call("recall", "ana", {"query": "x", "limit": 0})
    with pytest.raises(NotFound):
        served.link.call("get", "ana", {"ids": ["1b4e28ba-2fa1-5d2b-883f-0016d3cca427"]})
    with pytest.raises(PPSError, match="operation: there is none of that name"):
        served.link.call("nonesuch", "", {})
    with pytest.raises(InvalidRequest, match="name"):
        served.link.call("entity_create", "", {"name": "Not A Name"})


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b"null", b'"x"', b"\xff", b'{"entity": 1}', b"[" * 100_000]
)
def test_a_body_without_sense_is_refused(served: Served, http: httpx.Client, body: bytes) -> None:
    answer = http.post("/v1/stats", headers={**_bearer(served.create("ana")), **JSON}, content=body)
    assert answer.status_code == 400
    assert answer.json()["code"] == "invalid_request"


def test_a_body_of_another_kind_is_refused(served: Served, http: httpx.Client) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        headers = {**_bearer(served.create("ana")), "Content-Type": kind}
        answer = http.post("/v1/recall", headers=headers, content=b'{"query": "x"}')
        assert (answer.status_code, answer.json()["field"]) == (415, "Content-Type")


def test_an_answer_is_data_words_or_lines_as_the_client_accepts(
    served: Served, http: httpx.Client
) -> None:
    headers = _bearer(served.create("ana"))
    assert "turns" in http.post("/v1/stats", headers=headers, json={}).json()
    words = http.post("/v1/stats", headers={**headers, "Accept": "text/plain"}, json={})
    assert words.headers["content-type"].startswith("text/plain")
    assert words.text.startswith("ana (")
    lines = http.post("/v1/stats", headers={**headers, "Accept": "application/x-ndjson"}, json={})
    assert json.loads(lines.text.splitlines()[-1])["text"] == words.text


def test_the_document_lists_what_a_token_may_ask_for(served: Served, http: httpx.Client) -> None:
    def listed(**headers: str) -> set[str]:
        document = http.get("/openapi.json", headers=headers).json()
        assert document["openapi"] == "3.1.0"
        return {path.removeprefix("/v1/") for path in document["paths"]}

    assert listed() == listed(**_bearer(served.create("ana"))) == set(operations_for("entity"))
    core = str(
        served.link.call("token_issue", "", {"name": "ana", "toolsets": ["core"]})["data"]["token"]
    )
    assert listed(**_bearer(core)) == {
        name for name, one in operations_for("entity").items() if one.toolset == "core"
    }
    with served.owner() as owner:
        paths = owner.get("/openapi.json").json()["paths"]
        assert {"/v1/reindex", "/v1/entity_create"} <= set(paths)
        assert owner.get("/openapi.json", headers=_bearer("nonsense")).status_code == 401
    assert http.get("/openapi.json", headers=_bearer("nonsense")).status_code == 401


def test_a_body_beyond_the_bound_is_refused(served: Served, http: httpx.Client) -> None:
    body = b'{"entity": "' + b"a" * (16 * 1024 * 1024) + b'"}'
    answer = http.post("/v1/stats", headers={**_bearer(served.create("ana")), **JSON}, content=body)
    assert answer.status_code == 413


def test_an_unknown_path_or_method_tells_nothing(served: Served, http: httpx.Client) -> None:
    assert http.get("/nothing").status_code == 404
    assert http.post("/health").status_code == 405


def test_what_is_not_there_is_told_as_every_other_error(http: httpx.Client) -> None:
    for method, path, status in (
        ("GET", "/v1/stats", 405),
        ("POST", "/health", 405),
        ("POST", "/v1/", 404),
    ):
        answer = http.request(method, path)
        assert (answer.status_code, answer.json()["status"]) == (status, status)
        assert answer.headers["content-type"] == "application/problem+json"


async def test_an_error_before_an_answer_began_is_told_and_one_after_is_not() -> None:
    async def failing(scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        if scope["path"] == "/late":
            await send({"type": "http.response.start", "status": 200, "headers": []})
        raise OSError("/a/path")

    transport = httpx.ASGITransport(Answered(failing), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        answer = await client.get("/early")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "/a/path" not in answer.text
    with pytest.raises(OSError, match="/a/path"):
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(Answered(failing)), base_url="http://x"
        ) as client:
            await client.get("/late")


def test_import_reports_as_it_goes_and_a_second_time_adds_nothing(
    served: Served, tmp_path: Path
) -> None:
    served.create("importer")
    file = tmp_path / "talk.jsonl"
    turns = [
        {"content": f"Turn {n} about tea.", "session": "s", "source_ref": f"t{n}"}
        for n in range(250)
    ]
    file.write_text("\n".join(json.dumps(turn) for turn in turns))
    for stored in (250, 0):
        work = served.link.follow("import", "", {"entity": "importer", "paths": [str(file)]})
        reports = []
        while True:
            try:
                reports.append(next(work))
            except StopIteration as ended:
                result = ended.value["data"]
                break
        assert result["stored"] == stored
        assert result["duplicates"] == 250 - stored
    assert reports
    assert served.link.call("stats", "importer", {})["data"]["turns"] == 250
    with pytest.raises(InvalidRequest, match="absolute"):
        served.link.call("import", "", {"entity": "importer", "paths": ["talk.jsonl"]})


def test_reindex_and_reembed_bring_back_what_was_found_before(served: Served) -> None:
    served.create("rebuilt")
    served.link.call("remember", "rebuilt", {"content": "The oven runs hot."})
    before = served.link.call("recall", "rebuilt", {"query": "oven"})["data"]["channels"]
    for task in ("reindex", "reembed"):
        served.link.call(task, "", {"entity": "rebuilt"})
        after = served.link.call("recall", "rebuilt", {"query": "oven"})["data"]["channels"]
        assert {name: [hit["id"] for hit in one["hits"]] for name, one in after.items()} == {
            name: [hit["id"] for hit in one["hits"]] for name, one in before.items()
        }


def test_archived_and_deleted_entities_are_gone_for_callers(served: Served) -> None:
    token = served.create("resting")
    served.link.call("remember", "resting", {"content": "Still here."})
    served.link.call("entity_archive", "", {"name": "resting"})
    with pytest.raises(UnknownEntity, match="archived"):
        served.link.call("stats", "resting", {})
    served.link.call("entity_archive", "", {"name": "resting", "undo": True})
    assert served.link.call("stats", "resting", {})["data"]["turns"] == 1
    served.link.call("entity_delete", "", {"name": "resting"})
    with pytest.raises(UnknownEntity):
        served.link.call("stats", "resting", {})
    assert not (served.home / "entities" / "resting").exists()
    again = served.create("resting")
    assert again != token
    assert served.link.call("stats", "resting", {})["data"]["turns"] == 0


def test_health_fails_while_a_turn_cannot_be_taken_in_and_names_the_entity_to_operators(
    tmp_path: Path,
) -> None:
    away = {
        "PPS_EXTRACTOR__MODE": "model",
        "PPS_EXTRACTOR__PROVIDER": "compatible",
        "PPS_EXTRACTOR__BASE_URL": "http://127.0.0.1:1/v1",
        "PPS_EXTRACTOR__MODEL": "away",
        "PPS_EXTRACTOR__API_KEY": "unused",
    }
    with (
        serving(tmp_path / "home", **away) as served,
        httpx.Client(base_url=served.run.url, timeout=PATIENCE_S) as http,
    ):
        served.create("ana")
        assert http.get("/health").status_code == 200
        kept = served.link.call(
            "remember", "ana", {"content": "Nobody can read this now.", "wait": "journal"}
        )
        assert kept["data"]["state"] == "accepted"
        deadline = time.monotonic() + 60
        while http.get("/health").status_code == 200 and time.monotonic() < deadline:
            time.sleep(0.2)
        failing = http.get("/health")
        assert failing.status_code == 503
        assert failing.json() == {"status": "failing"}
        with served.owner() as owner:
            details = owner.get("/health").json()
        assert details["problems"][0]["entity"] == "ana"
        assert served.pps("doctor").returncode == 1
        assert served.link.call("stats", "ana", {})["data"]["turns"] == 1
