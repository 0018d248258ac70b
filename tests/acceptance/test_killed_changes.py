"""A process is killed while a model reads a text, and after steps of a change of one: it comes to the same end.

Each round gives one text other words in a real memory whose process dies by SIGKILL at one step. The next round's
process takes up what is left; at the end only what the last words say holds, and every earlier fact is there once.
On each store.
"""

from __future__ import annotations

import itertools
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from pps.config import Settings
from pps.journal.links import holds
from tests.acceptance.killed_changes import STEPS, killed_at, read, text
from tests.acceptance.killed_steps import killed, process, taken_up
from tests.model_server import ModelServer, memory_read_by, model_server, reading_by


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


@pytest.fixture
def reading(settings: Settings, server: ModelServer) -> Settings:
    """Settings of texts that a model reads."""
    return settings.model_copy(update={"extractor": reading_by(server.base_url)})


async def test_a_kill_after_any_step_of_a_change_leaves_what_the_last_words_say(
    reading: Settings, server: ModelServer
) -> None:
    async with memory_read_by(reading, server) as memory:
        turn = (await memory.remember(text(0))).turn_id
    rounds = killed(STEPS, killed_at, reading, turn)
    async with taken_up(reading) as memory:
        facts = await memory.parts.client.scan_facts("", 100)
        told = [f"Ana lives in City{number}" for number in (0, *(one + 1 for one in rounds))]
        assert sorted(fact.text for fact in facts) == sorted([*told, "Ben knows Ana"])
        assert {fact.episodes for fact in facts} == {(turn,)}
        moment = datetime.now(UTC)
        assert {fact.text for fact in facts if holds(fact, moment)} == {told[-1], "Ben knows Ana"}
        assert len(await memory.records.history(turn)) == len(rounds) + 1


def killed_at_question(server: ModelServer, number: int, found: Settings) -> bool:
    """Kill a process that reads while the model holds this answer back; False when it has read before it was asked."""
    server.first, server.answered = [*["good"] * number, "held"], []
    child = process(read, found)
    while child.is_alive() and "held" not in server.answered:
        time.sleep(0.01)
    child.kill()
    child.join(60)
    assert child.exitcode == (-signal.SIGKILL if "held" in server.answered else 0)
    return "held" in server.answered


async def test_a_kill_in_the_middle_of_reading_at_any_question_to_the_model_leaves_the_text_read_once(
    reading: Settings, server: ModelServer
) -> None:
    """The model holds its answer to the first question, then to the second, and so on, while the process dies."""
    async with memory_read_by(reading, server) as memory:
        await memory.remember(text(0))
    questions = next(
        number for number in itertools.count() if not killed_at_question(server, number, reading)
    )
    assert questions >= 3, "a model is asked for nodes, for facts and for what is the same"
    server.first = []
    async with taken_up(reading) as memory:
        stats = await memory.stats()
        assert (stats.turns, stats.episodes) == (2, 2)
        facts = await memory.parts.client.scan_facts("", 100)
        told = {fact.text: len(fact.episodes) for fact in facts}
        assert told == {"Ana lives in City0": 1, "Ana lives in City1": 1, "Ben knows Ana": 2}
        assert len(facts) == len(told)
        nodes = await memory.parts.client.scan_nodes("", 100)
        assert sorted(node.name for node in nodes) == ["Ana", "Ben", "City0", "City1"]
