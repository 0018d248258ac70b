"""S2-11 on one `pps serve` with two entities that know the same people: long work, operators, the proof itself.

Every tool, route and command has its attack in ``test_surfaces.py``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.integration.interfaces.serving import ERAS, Served, serving
from tests.isolation.house import One
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.timeout(300)

A, B = "ana", "ana_2"
MARKS = {A: "kanariequinceana", B: "kanariezwetschgeana"}


@dataclass
class Pair:
    """A server with two entities, what each was told, and their tokens."""

    served: Served
    tokens: dict[str, str]
    ones: dict[str, One]

    def dump(self, name: str) -> str:
        """Return everything that an entity shows of itself."""
        link, one = self.served.link, self.ones[name]
        calls: list[tuple[str, dict[str, Any]]] = [
            ("timeline", {"limit": 1000}),
            ("get", {"ids": [one.turn, one.fact, one.node]}),
            ("anchor_list", {}),
        ]
        said = json.dumps(
            [link.call(verb, name, arguments)["data"] for verb, arguments in calls], sort_keys=True
        )
        assert MARKS[name] in said
        return said


def tell(served: Served, name: str) -> One:
    """Tell an entity what both are told, and a word that is only its own."""
    link, mark = served.link, MARKS[name]
    facts = [
        {"subject": "Ana", "relation": "DRINKS", "object": "Coffee", "text": "Ana drinks coffee."},
        {"subject": "Ana", "relation": "KNOWS", "object": mark, "text": f"Ana knows {mark}."},
    ]
    nodes = [{"name": "Ana", "kind": "Person", "summary": mark}]
    text = f"Ana came into the kitchen. The word is {mark}."
    receipt = link.call(
        "remember", name, {"content": text, "facts": facts, "nodes": nodes, "wait": "done"}
    )["data"]
    slug = link.call(
        "anchor_save", name, {"title": f"Kitchen {mark}", "text": f"# Kitchen\n\n{mark}"}
    )["data"]["slug"]
    page = link.call("timeline", name, {"limit": 100})["data"]["facts"]
    fact = next(one for one in page if mark in one["text"])
    item = link.call("get", name, {"ids": [fact["id"]]})["data"]["items"][0]
    found = link.call("recall", name, {"query": "Ana", "profile": "nodes", "limit": 5})["data"]
    node = found["channels"]["nodes"]["hits"][0]["id"]
    assert item["id"] == fact["id"]
    return One(None, mark, receipt["turn_id"], fact["id"], node, slug)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with serving(tmp_path_factory.mktemp("isolated") / "home") as served:
        tokens = {name: served.create(name) for name in (A, B)}
        yield Pair(served, tokens, {name: tell(served, name) for name in (A, B)})


def foreign(pair: Pair, viewer: str, said: object, arguments: dict[str, Any]) -> bool:
    """Tell whether something shows what only the other entity has; a query's own echo is no news."""
    other = pair.ones[B if viewer == A else A]
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False, default=str)
    asked = str(arguments.get("query") or arguments.get("context") or "")
    return other.mark in text.replace(asked, "") if asked else other.mark in text


async def test_two_clients_at_once_stay_apart(pair: Pair) -> None:
    async def talk(name: str) -> list[str]:
        said: list[str] = []
        async with pair.served.client(pair.tokens[name], ERAS[-1]) as client:
            for number in range(12):
                await client.call_tool(
                    "remember",
                    {"content": f"Again {number}. {MARKS[name]}", "source_ref": f"{number}"},
                )
                said.append(
                    (
                        await client.call_tool("recall", {"query": "again Ana coffee"})
                    ).model_dump_json()
                )
        return said

    for name, said in zip((A, B), await asyncio.gather(talk(A), talk(B)), strict=True):
        assert not any(foreign(pair, name, one, {}) for one in said)
        assert all(MARKS[name] in one for one in said)


def test_an_operators_token_reads_no_memory(pair: Pair) -> None:
    operator = str(pair.served.link.call("operator_issue", "", {})["data"]["token"])
    with httpx.Client(base_url=pair.served.run.url, trust_env=False, timeout=PATIENCE_S) as http:
        headers = {
            "Authorization": f"Bearer {operator}",
            "Accept": "application/json, text/event-stream",
        }
        for path in ("/v1/timeline", "/mcp"):
            answer = http.post(path, headers=headers, json={})
            assert answer.status_code == (404 if path == "/v1/timeline" else 401)
            assert MARKS[A] not in answer.text
        for path in ("/metrics", "/health"):
            said = http.get(path, headers=headers).text
            assert MARKS[A] not in said
            assert MARKS[B] not in said


def test_verify_isolation_runs_from_the_command_line_and_says_what_it_did(pair: Pair) -> None:
    before = [pair.dump(name) for name in (A, B)]
    done = pair.served.pps("verify-isolation", "--operations", "60", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["ok"] is True
    # What a feature attacks by itself, such as rooms, is tried whole and comes on top.
    assert report["operations"].pop("feature") > 0
    assert sum(report["operations"].values()) == 60
    assert (report["leaks"], report["told_apart"], report["broken"]) == ([], [], [])
    assert [pair.dump(name) for name in (A, B)] == before
    assert not list((pair.served.home).glob("verify-*"))


def test_the_last_proof_says_numbers_alone_and_the_same_to_all(pair: Pair) -> None:
    done = pair.served.pps("verify-isolation", "--operations", "40", "--json")
    tried = sum(json.loads(done.stdout)["operations"].values())
    said = [pair.served.link.call("last_proof", name, {})["data"]["proof"] for name in (A, B)]
    assert said[0] == said[1]
    assert tried >= 40
    assert (said[0]["operations"], said[0]["ok"], said[0]["leaks"], said[0]["store"]) == (
        tried,
        True,
        0,
        "embedded",
    )
    kept = pair.served.home / "proof.json"
    assert {type(value) for value in json.loads(kept.read_text()).values()} <= {
        str,
        int,
        float,
        bool,
    }
    kept.write_text("{")
    assert pair.served.link.call("last_proof", A, {})["data"] == {"entity": A}


def test_deleting_one_leaves_the_other(pair: Pair) -> None:
    pair.served.create("gone")
    tell_gone = pair.served.link.call(
        "remember", "gone", {"content": f"Gone soon. {MARKS[A][::-1]}"}
    )
    assert tell_gone["data"]["turn_id"]
    before = pair.dump(B)
    assert pair.served.pps("entity", "archive", "gone").returncode == 0
    assert pair.served.pps("recall", "gone", "soon").returncode != 0
    assert pair.served.pps("entity", "delete", "gone", "--yes").returncode == 0
    assert not (pair.served.home / "entities" / "gone").exists()
    assert pair.dump(B) == before
