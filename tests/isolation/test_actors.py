"""Who writes belongs to the connection: no argument, header or query of a call changes a token's own actor."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest

from pps.core.errors import InvalidRequest
from pps.entities.registry import Registry
from pps.operations.catalog import operations_for
from pps.server.runfile import new_secret
from tests.integration.interfaces.serving import ERAS, Served, serving
from tests.isolation.test_verbs import ARGUMENTS

pytestmark = pytest.mark.timeout(300)
FALSE = {"PPS-Actor": "discuss"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("actors") / "home", PPS_LOG_LEVEL="info") as served:
        served.create("ana")
        yield served


@pytest.fixture
def http(served: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served.run.url, trust_env=False, timeout=60) as client:
        yield client


def token_of(served: Served, actor: str) -> str:
    return str(
        served.link.call("token_issue", "", {"name": "ana", "actor": actor})["data"]["token"]
    )


def logged(served: Served, operation: str) -> str:
    """Return who did an operation last, as the server's log has it."""
    lines = (served.home / "test-server.log").read_text().splitlines()
    line = next(one for one in reversed(lines) if f"operation={operation} " in one)
    found = re.search(r"entity=ana(?: actor=(\S+))?", line)
    return (found[1] or "") if found else line


def bearer(token: str, **more: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", **more}


def test_a_tokens_actor_is_its_own_whatever_a_call_says(served: Served, http: httpx.Client) -> None:
    plan, person = token_of(served, "plan"), token_of(served, "")
    assert http.post("/v1/stats?actor=discuss", headers=bearer(plan), json={}).status_code == 200
    assert logged(served, "stats") == "plan"
    assert (
        http.post("/v1/stats", headers=bearer(plan, **{"PPS-Actor": "plan"}), json={}).status_code
        == 200
    )
    for token in (plan, person):
        refused = http.post("/v1/stats", headers=bearer(token, **FALSE), json={})
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    for name, attacks in ARGUMENTS.items():
        answer = http.post(
            f"/v1/{name}", headers=bearer(plan), json={**attacks[0], "actor": "discuss"}
        )
        takes_a_speaker = "actor" in operations_for("entity")[name].input.model_fields
        assert takes_a_speaker or "actor" in answer.json()["detail"] + answer.json()["field"], name
        assert logged(served, name) == "plan", name


async def test_a_tokens_actor_holds_over_the_protocol_too(served: Served) -> None:
    for era in ERAS:
        async with served.client(token_of(served, "plan"), era, "all&actor=discuss") as client:
            await client.call_tool("stats", {})
            assert logged(served, "stats") == "plan"


def test_only_the_owner_says_who_writes_and_only_a_name_that_can_be_one(
    served: Served, http: httpx.Client
) -> None:
    assert served.pps("--actor", "discuss", "stats", "ana").returncode == 0
    assert logged(served, "stats") == "discuss"
    wrong = served.pps("--actor", "Not one", "stats", "ana")
    assert (wrong.returncode, "actor: must match" in wrong.stderr) == (2, True)
    for name in ("Plan", "plan:discuss", "a" * 41, "plan.x"):
        with served.owner(**{"PPS-Actor": name}) as owner:
            asked = owner.post("/v1/stats", json={})
        assert asked.status_code == 400, name
        assert (
            http.post("/mcp", headers=bearer(f"{new_secret()}.ana:{name}"), json={}).status_code
            == 401
        ), name
        with pytest.raises(InvalidRequest, match="actor"):
            Registry(served.home).issue_token("ana", (), name)
    assert served.pps("mcp", "--entity", "ana", "--actor", "Not one").returncode == 2


async def test_a_bridge_is_for_the_actor_that_it_was_started_for(served: Served) -> None:
    async with served.stdio("ana", ERAS[-1], "--actor", "execute") as client:
        await client.call_tool("stats", {})
    assert logged(served, "stats") == "execute"
    async with served.stdio("ana", ERAS[-1]) as client:
        await client.call_tool("stats", {})
    assert logged(served, "stats") == ""
