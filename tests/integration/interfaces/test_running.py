"""Running a server: logs with request ids that rotate, ``/health`` and ``/ready``, metrics by Prometheus' own parser."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp_types import CallToolResult
from prometheus_client.parser import text_string_to_metric_families
from starlette.types import Message

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.interfaces.http.health import HealthProbe, Probes
from pps.interfaces.http.requests import REQUEST_ID, Activity, RequestLog, RequestTallies
from pps.operations.calls import Calls
from pps.server import connect, stop
from tests.acceptance.outage import embedding
from tests.integration.interfaces.serving import ERAS, Served, clean_env, pps, serving
from tests.model_server import model_server
from tests.waiting import PATIENCE_S, wait_until


def get(served: Served, path: str) -> httpx.Response:
    return httpx.get(f"{served.run.url}{path}", trust_env=False, timeout=PATIENCE_S)


def get_as_owner(served: Served, path: str) -> Any:
    with served.owner() as client:
        return client.get(path)


def log_lines(file: Path) -> list[dict[str, Any]]:
    lines = file.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def test_metrics_are_read_by_prometheus_own_parser_and_named_by_its_conventions(
    served: Served,
) -> None:
    served.create("ana")
    served.link.call("stats", "ana", {})
    answer = get_as_owner(served, "/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    families = {family.name: family for family in text_string_to_metric_families(answer.text)}
    assert len(families) == answer.text.count("# TYPE ")
    for name, family in families.items():
        assert name.startswith(("pps_", "process_"))
        assert family.documentation.endswith(".")
        assert family.type in ("gauge", "counter", "histogram"), "every one is typed"
        if family.type == "counter":
            assert all(sample.name == f"{name}_total" for sample in family.samples)
        assert not name.endswith(("_ms", "_milliseconds", "_kb", "_count"))
        keys = [(sample.name, tuple(sorted(sample.labels.items()))) for sample in family.samples]
        assert len(set(keys)) == len(keys), "each series is there once"
    [stats] = [
        sample
        for sample in families["pps_calls"].samples
        if sample.labels == {"operation": "stats", "outcome": "ok"}
    ]
    assert stats.value >= 1
    buckets = [
        sample
        for sample in families["pps_http_request_duration_seconds"].samples
        if sample.labels.get("route") == "/v1/{operation}"
    ]
    counts = [sample.value for sample in buckets if sample.name.endswith("_bucket")]
    assert counts == sorted(counts)
    assert buckets[-3].labels["le"] == "+Inf"
    assert buckets[-1].name.endswith("_count")
    assert buckets[-1].value == counts[-1]
    assert abs(families["process_start_time_seconds"].samples[0].value - time.time()) < 3_600


def test_an_answer_has_the_id_under_which_the_log_knows_the_request(tmp_path: Path) -> None:
    with serving(tmp_path / "home", PPS_LOGS__FORMAT="json") as served:
        served.create("ana")
        url = "/v1/stats"
        with served.owner(**{"PPS-Entity": "ana"}) as http:
            proposed = http.post(url, headers={REQUEST_ID: "trace-7.b"}, json={})
            made = [http.post(url, json={}) for _ in range(2)]
            refused = http.post(url, json={"nonsense": 1})
        lines = log_lines(served.home / "test-server.log")
    ids = [one.headers[REQUEST_ID] for one in (proposed, *made, refused)]
    assert ids[0] == "trace-7.b"
    assert len(set(ids)) == 4
    assert refused.json()["request"] == ids[3]
    calls = {line["request"]: line for line in lines if line.get("operation") == "stats"}
    for id_, outcome in zip(ids, ("ok", "ok", "ok", "invalid_request"), strict=True):
        line = calls[id_]
        assert (line["caller"], line["outcome"], line["level"]) == ("entity=ana", outcome, "info")
        assert line["ms"] >= 0
        assert line["time"].endswith("+00:00")
        assert line["logger"] == "pps.operations.calls"


@pytest.mark.parametrize("era", ERAS)
async def test_each_call_of_an_mcp_session_has_a_request_id_of_its_own(
    served: Served, era: str
) -> None:
    name = f"ids_{ERAS.index(era)}"
    token = served.create(name)
    async with served.client(token, era) as client:
        for _ in range(3):
            result: CallToolResult = await client.call_tool("stats", {})
            assert not result.is_error
    log = (served.home / "test-server.log").read_text().splitlines()
    mine = [line for line in log if f"entity={name} operation=stats outcome=ok" in line]
    assert len({line.split("[")[1].split("]")[0] for line in mine}) == 3


def test_the_log_of_a_server_started_by_need_rotates_while_it_runs_and_is_private(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    env = clean_env(home, PPS_LOGS__FORMAT="json", PPS_LOGS__MAX_BYTES="10000", PPS_LOGS__FILES="2")
    try:
        assert pps(env, "entity", "create", "ana").returncode == 0
        link = connect(home, start=False)
        for _ in range(200):
            link.call("stats", "ana", {})
        logs = sorted(home.glob("server.log*"))
        assert [file.name for file in logs] == ["server.log", "server.log.1", "server.log.2"]
        for file in logs:
            assert file.stat().st_size <= 10_000
            assert file.stat().st_mode & 0o077 == 0
            assert log_lines(file)
        pid = link.status()["pid"]
        for descriptor in (1, 2):
            target = Path(f"/proc/{pid}/fd/{descriptor}").resolve()
            assert target == (home / "server.log").resolve(), "what crashes says is in the newest"
    finally:
        stop(home)


def test_health_and_ready_say_that_the_disk_takes_no_writes_and_when_it_does_again(
    served: Served,
) -> None:
    assert get(served, "/ready").json() == {"status": "ready"}
    probe = served.home / f".probe.{served.run.pid}"
    probe.mkdir()  # as root nothing else refuses a write, short of a full disk
    try:
        wait_until(lambda: get(served, "/ready").status_code == 503)
        assert get(served, "/ready").json() == {"status": "not ready"}
        told = get_as_owner(served, "/ready").json()
        assert told["failing"].keys() == {"disk"}
        assert "takes no writes" in told["failing"]["disk"]
        unwell = get_as_owner(served, "/health")
        assert (unwell.status_code, unwell.json()["status"]) == (503, "failing")
        assert get(served, "/health").json() == {"status": "failing"}
    finally:
        probe.rmdir()
    wait_until(lambda: get(served, "/ready").status_code == 200)
    wait_until(lambda: get(served, "/health").status_code == 200)


def test_ready_and_health_say_that_the_registry_cannot_be_read_and_when_it_can_again(
    tmp_path: Path,
) -> None:
    with serving(tmp_path / "home") as served:
        served.create("ana")
        registry = served.home / "registry.db"
        away = served.home / "registry.away"
        registry.rename(away)
        try:
            wait_until(lambda: get(served, "/ready").status_code == 503)
            assert get_as_owner(served, "/ready").json()["failing"].keys() == {"registry"}
            assert get(served, "/health").json() == {"status": "failing"}
            assert not registry.exists(), "what is gone is not made anew"
        finally:
            registry.unlink(missing_ok=True)
            away.rename(registry)
        wait_until(lambda: get(served, "/ready").status_code == 200)
        wait_until(lambda: get(served, "/health").status_code == 200)


def test_ready_and_health_say_that_an_embedder_is_away_and_when_it_answers_again(
    tmp_path: Path,
) -> None:
    with model_server(retry_after="0") as model:
        settings = {**embedding(model), "PPS_JOBS__BREAKER_FAILURES": "1"}
        with serving(tmp_path / "home", **settings) as served:
            served.create("ana")
            served.link.call("remember", "ana", {"content": "Ana lives in Lisbon.", "wait": "done"})
            assert get(served, "/ready").status_code == 200
            model.mode = "closed"
            served.link.call("remember", "ana", {"content": "Ana rows.", "wait": "journal"})
            wait_until(lambda: get(served, "/ready").status_code == 503)
            failing = get_as_owner(served, "/ready").json()["failing"]
            assert failing.keys() == {"outage"}
            assert "embed" in failing["outage"]
            wait_until(lambda: get(served, "/health").status_code == 503)
            model.mode = "good"
            wait_until(lambda: get(served, "/ready").status_code == 200)
            wait_until(lambda: get(served, "/health").status_code == 200)


async def test_a_server_that_ends_is_not_ready_but_healthy(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, embedder=EmbedderSettings(name="hash"))
    async with App.open(settings) as app:
        activity = Activity()
        condition = HealthProbe(app, Calls(app), activity)
        assert await condition.unready() == {}
        activity.stopping.set()
        assert list(await condition.unready()) == ["stopping"]
        assert await condition.problems() == []


async def test_neo4j_that_does_not_answer_is_told_where_a_graph_is_published_and_fails_nothing(
    tmp_path: Path,
) -> None:
    settings = Settings.model_validate(
        {"home": tmp_path, "embedder": {"name": "hash"}, "neo4j": {"uri": "bolt://127.0.0.1:1"}}
    )
    async with App.open(settings) as app:
        await app.create("ana")
        assert await Probes(app).publishing() == ""
        app.registry.register("far", store="neo4j")
        probes = Probes(app)
        assert await probes.failing() == {}
        assert "bolt://127.0.0.1:1" in await probes.publishing()


async def test_a_request_that_breaks_before_its_answer_is_counted_as_an_error() -> None:
    async def broken(*_: object) -> None:
        raise ValueError("broken")

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    async def send(_: Message) -> None:
        return None

    tallies = RequestTallies([])
    scope: dict[str, object] = {"type": "http", "method": "BREW", "path": "/x", "headers": []}
    with pytest.raises(ValueError, match="broken"):
        await RequestLog(broken, tallies)(scope, receive, send)
    assert dict(tallies.requests) == {("OTHER", "none", 500): 1}
