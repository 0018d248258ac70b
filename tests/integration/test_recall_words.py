"""Misspelt words, quoted phrases, nodes by their descriptions, and how many results there are."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.core.values import FactDraft, NodeDraft
from pps.memory import Memory

THINGS = ["lantern", "harbour", "kettle", "violin", "compass", "carpet", "cupboard", "ladder"]
MISSPELT = ["lantren", "harbuor", "kettel", "violinn", "compas", "carpett", "cupbord", "laddre"]


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    settings = Settings(home=tmp_path / "home", embedder=EmbedderSettings(name="hash"))
    async with App.open(settings) as app:
        await app.create("ana")
        async with app.memory("ana") as opened:
            yield opened


async def best(memory: Memory, query: str) -> str:
    recalled = await memory.recall(query, limit=5)
    return recalled.channels["episodes"].hits[0].text


@pytest.mark.parametrize("number", range(len(THINGS)))
async def test_a_misspelt_word_finds_what_it_means(memory: Memory, number: int) -> None:
    for thing in THINGS:
        await memory.remember(f"The old {thing} was sold to a friend.", session=thing)
        await memory.remember(f"We talked about where the sun was {len(thing)}.", session="talk")
    assert await memory.settled()
    assert THINGS[number] in await best(memory, f"Who was the {MISSPELT[number]} sold to?")


async def test_a_quoted_phrase_is_a_phrase(memory: Memory) -> None:
    said = (
        "Door of the red house, red door frame, the door is red.",
        "A door, and the red paint for the door of the barn door.",
        "She wrote about the red door in her diary, among much else that nobody recalls today.",
    )
    for text in said:
        await memory.remember(text, session="s")
    assert await memory.settled()
    assert said[2] in await best(memory, 'Who mentioned "the red door"?')
    assert (await memory.recall('Who mentioned "the red door"?')).channels["episodes"].hits[
        0
    ].ranks["phrase"] == 1


async def test_a_node_is_found_by_its_summary_and_by_its_attributes(memory: Memory) -> None:
    nodes = [
        NodeDraft("Diesel", "Tool", summary="an ORM of the backend"),
        NodeDraft("Grafana", "Tool", attributes={"type": "dashboard"}),
        NodeDraft("Postgres", "Tool", summary="where rows are kept"),
        *(NodeDraft(f"Helper {number}", "Tool", summary="a helper") for number in range(12)),
    ]
    await memory.remember("Our tools.", session="s", nodes=nodes)
    assert await memory.settled()
    for question, name in (
        ("Which ORM do we use?", "Diesel"),
        ("Which dashboard do we use?", "Grafana"),
    ):
        [first, *_] = (await memory.recall(question)).channels["nodes"].hits
        assert first.text.startswith(name), question


SMALL_MEMORY = [
    "I am diabetic.",
    "My birthday is 4 May.",
    "I drive a Volvo.",
    "I'm training for a marathon.",
    "My mother is called Ruth.",
    "I don't drink alcohol.",
    "I'm afraid of flying.",
    "My budget is 900 euros.",
    "I speak Polish.",
    "I have two kids.",
    "My boss is Karin.",
]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How much can I spend?", "My budget is 900 euros."),
        ("How old will I be and when?", "My birthday is 4 May."),
        ("Which languages do I know?", "I speak Polish."),
    ],
)
async def test_in_a_small_memory_words_that_ask_are_no_match(
    tmp_path: Path, question: str, answer: str
) -> None:
    async with App.open(Settings(home=tmp_path / "home")) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            for number, text in enumerate(SMALL_MEMORY):
                fact = FactDraft("Sam", "SAYS", f"thing {number}", text)
                await memory.remember(text, session=f"s{number}", facts=[fact])
            assert await memory.settled()
            recalled = await memory.recall(question)
            assert recalled.channels["facts"].hits[0].text == answer


async def test_of_nodes_five_are_shown_unless_more_are_asked_for(memory: Memory) -> None:
    nodes = [NodeDraft(f"Rose {number}", "Plant", summary="a rose") for number in range(15)]
    await memory.remember("Roses.", session="s", nodes=nodes)
    assert await memory.settled()
    assert len((await memory.recall("rose")).channels["nodes"].hits) == 5
    assert len((await memory.recall("rose", limit=12)).channels["nodes"].hits) == 12


async def test_a_question_about_several_things_gets_more_turns(memory: Memory) -> None:
    await memory.remember_many(
        [(f"We read book number {number} in winter.", {"session": "s"}) for number in range(30)]
    )
    assert await memory.settled()
    several = await memory.recall("Which books did we read?")
    single = await memory.recall("Where is the book of winter?")
    assert len(several.channels["episodes"].hits) == 20
    assert len(single.channels["episodes"].hits) == 10
