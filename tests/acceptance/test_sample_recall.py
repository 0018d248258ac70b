"""The shipped sample, remembered and asked with the shipped model: the right things, of the right entity (S2-16)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from importlib.resources import as_file
from pathlib import Path
from typing import Any

import pytest

from pps.app import App
from pps.config import Neo4jSettings, Settings, shipped
from pps.core.recalled import Recall
from pps.core.time import parse
from pps.ingest.importing.formats import read_lines
from pps.memory import Memory
from tests.neo4j_server import Neo4jServer

QUESTIONS: dict[str, list[dict[str, Any]]] = json.loads(
    shipped("config/sample/questions.json").read_text(encoding="utf-8")
)
CASES = [(name, case) for name, cases in QUESTIONS.items() for case in cases]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both entities of the sample, remembered once for all tests of this module."""
    folder = tmp_path_factory.mktemp("sample") / "home"
    asyncio.run(fill(Settings(home=folder), list(QUESTIONS)))
    return folder


@pytest.fixture(scope="module", params=["embedded", pytest.param("neo4j", marks=pytest.mark.neo4j)])
def either(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings of a data folder on each store that has Mira's part of the sample."""
    if request.param != "neo4j":
        return Settings(home=request.getfixturevalue("home"))
    server: Neo4jServer = request.getfixturevalue("neo4j_server")
    where = Neo4jSettings(
        uri=server.uri, user=server.user, password=server.password, database=server.database
    )
    settings = Settings(
        home=tmp_path_factory.mktemp("neo4j_sample") / "home", store="neo4j", neo4j=where
    )
    asyncio.run(fill(settings, ["mira"]))
    return settings


async def fill(settings: Settings, names: list[str]) -> None:
    async with App.open(settings) as app:
        for name in names:
            await app.create(name)
            async with app.memory(name) as memory:
                await remember_sample(memory, name)


async def remember_sample(memory: Memory, name: str) -> None:
    with as_file(shipped("config/sample")) as sample:
        await memory.remember_many(list(read_lines(sample / name / "turns.jsonl")))
        assert await memory.settled(300)
        await memory.anchor_import(sample / name / "anchors")


@pytest.fixture
async def app(home: Path) -> AsyncIterator[App]:
    async with App.open(Settings(home=home)) as opened:
        yield opened


def texts(recalled: Recall) -> str:
    return "\n".join(
        hit.text for channel in recalled.channels.values() for hit in channel.hits
    ).casefold()


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("name", "case"), CASES, ids=[f"{name}: {case['question'][:50]}" for name, case in CASES]
)
async def test_each_question_finds_what_answers_it_and_nothing_of_the_other(
    app: App, name: str, case: dict[str, Any]
) -> None:
    as_of = parse(case["as_of"]) if case.get("as_of") else None
    async with app.memory(name) as memory:
        recalled = await memory.recall(case["question"], as_of=as_of, limit=10)
        turns = {getattr(hit.item, "source_ref", "") for hit in recalled["turns"]}
        found = (
            await memory.get([hit.id for hit in recalled["episodes"]])
            if recalled["episodes"]
            else []
        )
    turns |= {getattr(item, "source_ref", "") for item in found}
    assert [channel.error for channel in recalled.channels.values()] == [""] * len(
        recalled.channels
    )
    missing = {
        "turns": not case["turns"] or turns & set(case["turns"]),
        "facts": not case["facts"] or {hit.text for hit in recalled["facts"]} & set(case["facts"]),
        "anchors": not case["anchors"]
        or {hit.id.partition("#")[0] for hit in recalled["anchors"]} & set(case["anchors"]),
        "nodes": not case["nodes"]
        or {getattr(hit.item, "name", "") for hit in recalled["nodes"]} & set(case["nodes"]),
    }
    assert all(missing.values()), missing
    for word in case["never"]:
        assert word.casefold() not in texts(recalled)


@pytest.mark.timeout(600)
async def test_the_context_heavy_query_puts_coffee_tea_and_kitchen_into_the_facts(
    either: Settings,
) -> None:
    async with App.open(either) as app, app.memory("mira") as memory:
        assert (await memory.stats()).store == either.store
        recalled = await memory.recall("kitchen morning Saturday Haven", limit=10)
    facts = " ".join(hit.text for hit in recalled["facts"]).casefold()
    assert all(word in facts for word in ("coffee", "tea", "kitchen")), facts


@pytest.mark.timeout(600)
async def test_a_name_puts_its_node_first_and_its_facts_into_the_facts(either: Settings) -> None:
    async with App.open(either) as app, app.memory("mira") as memory:
        assert (await memory.stats()).store == either.store
        recalled = await memory.recall("Priya", limit=10)
    assert getattr(recalled["nodes"][0].item, "name", "") == "Priya"
    assert sum("Priya" in hit.text for hit in recalled["facts"]) >= len(recalled["facts"]) / 2
