"""A life told in sixty prompts through the hooks, and twenty-five questions to it: what facts and packs answer.

``tests/life``: the turns; the facts that a stand-in for an agent's own command reads in them, written from the turns
alone; the questions, each with the words that answer it; prompts that need nothing of a memory.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import stand_in
from tests.integration.hooks.acting import Session
from tests.integration.interfaces.serving import Served, serving
from tests.waiting import wait_until

LIFE = Path(__file__).parents[2] / "life"
QUESTIONS: list[dict[str, str]] = json.loads((LIFE / "questions.json").read_text())
TOLD: list[dict[str, Any]] = json.loads((LIFE / "turns.json").read_text())


@pytest.fixture
def reader(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """Settings of who reads facts in turns."""
    if request.param == "rules":
        return {"PPS_EXTRACTOR__MODE": "rules"}
    shutil.copy(LIFE / "facts.json", tmp_path / "script.json")
    command = shlex.join([sys.executable, stand_in.__file__, str(tmp_path)])
    return {
        "PPS_EXTRACTOR__MODE": "command",
        "PPS_EXTRACTOR__COMMAND": command,
        "PPS_EXTRACTOR__IDLE_S": "1",
    }


@pytest.fixture
def lived(reader: dict[str, str], tmp_path: Path) -> Iterator[tuple[Served, Path]]:
    """A server whose entity ``jonas`` was told the life through the hooks, and has read it."""
    project = tmp_path / "life"
    project.mkdir()
    with serving(tmp_path / "lived" / "home", PPS_EMBEDDER__NAME="minilm", **reader) as served:
        served.create("jonas")
        served.link.call("route_add", "", {"path": str(project), "entity": "jonas"})
        session = Session(served.home, project)
        for number, turn in enumerate(TOLD):
            if number and turn["day"] != TOLD[number - 1]["day"]:
                session = Session(served.home, project)
            assert (
                session.run("UserPromptSubmit", prompt=turn["text"], prompt_id=str(number)).code
                == 0
            )
        session.run("SessionEnd")
        wait_until(lambda: answer(served, "stats")["turns"] == len(TOLD))
        wait_until(lambda: not answer(served, "stats")["unfinished_jobs"])
        yield served, project


def answer(served: Served, verb: str, **arguments: Any) -> dict[str, Any]:
    data = served.link.call(verb, "jonas", arguments)["data"]
    assert isinstance(data, dict)
    return data


def missed_by_facts(served: Served) -> list[str]:
    """Return the questions that none of the first five facts answers."""
    missed: list[str] = []
    for one in QUESTIONS:
        found = answer(served, "recall", query=one["question"], channels=["facts"], limit=5)
        if not any(one["answer"] in hit["text"] for hit in found["channels"]["facts"]["hits"]):
            missed.append(one["question"])
    return missed


def _given(served: Served, project: Path, question: str) -> str:
    """Return what a new session is given at its first prompt."""
    session = Session(served.home, project)
    ended = session.run("UserPromptSubmit", prompt=question, prompt_id="1")
    assert (ended.code, ended.err) == (0, b"")
    return ended.context


@pytest.mark.parametrize("reader", ["command"], indirect=True)
def test_what_a_command_read_answers_and_packs_hold_the_answers(lived: tuple[Served, Path]) -> None:
    served, project = lived
    missed = missed_by_facts(served)
    assert len(QUESTIONS) - len(missed) >= 22, missed
    # The first packs come late, as long as the server has its models to load.
    # "Where do I live?" has one word to go by, and lies below the floor.
    wait_until(lambda: QUESTIONS[0]["answer"] in _given(served, project, QUESTIONS[0]["question"]))
    packs: dict[str, str] = {}
    for one in QUESTIONS:  # each in a session of its own, which is all that it says
        packs[one["question"]] = _given(served, project, one["question"])
    missed = [one["question"] for one in QUESTIONS if one["answer"] not in packs[one["question"]]]
    assert len(QUESTIONS) - len(missed) >= 24, missed


@pytest.mark.parametrize("reader", ["rules"], indirect=True)
def test_rules_alone_answer_half_of_it(lived: tuple[Served, Path]) -> None:
    missed = missed_by_facts(lived[0])
    assert len(QUESTIONS) - len(missed) >= 13, missed
