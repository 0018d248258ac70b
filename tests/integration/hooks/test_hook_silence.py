"""What a prompt is given: nothing, what is new and near, and all of it again once the session was compacted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.integration.hooks.acting import Session
from tests.integration.interfaces.serving import Served
from tests.waiting import wait_until

TOLD = (
    "The oven in the shop runs 20 degrees hot.",
    "Ovens are cleaned by Zerbinetta every Friday.",
    "Zerbinetta is on holiday in August.",
    "The landlord of the shop is called Oblomov.",
)


@pytest.fixture(scope="module")
def bakery(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bakery")
    served.create("bakery")
    served.link.call("route_add", "", {"path": str(folder), "entity": "bakery"})
    for number, text in enumerate(TOLD):
        served.link.call(
            "remember", "bakery", {"content": text, "session": f"before {number}", "wait": "done"}
        )
    return folder


def ask(session: Session, prompt: str) -> str:
    ended = session.run("UserPromptSubmit", prompt=prompt, prompt_id=prompt)
    assert (ended.code, ended.err) == (0, b"")
    return ended.context


def test_a_prompt_that_needs_nothing_is_given_nothing(served: Served, bakery: Path) -> None:
    session = Session(served.home, bakery)
    for needless in ("thanks!", "ok", "Good morning!", "hm, never mind", "yes please", ":)"):
        assert ask(session, needless) == "", needless


def test_what_was_shown_is_not_shown_again_until_the_session_is_compacted(
    served: Served, bakery: Path
) -> None:
    session = Session(served.home, bakery)
    first = ask(session, "When does Zerbinetta clean the ovens?")
    assert TOLD[1] in first
    again = ask(session, "And Zerbinetta cleans the ovens on which day?")
    assert not [text for text in TOLD if text in first and text in again]
    session.run("PreCompact")
    assert TOLD[1] in ask(session, "When does Zerbinetta clean the ovens then?")


def test_what_the_beginning_showed_is_not_shown_at_the_first_prompt(
    served: Served, bakery: Path
) -> None:
    session = Session(served.home, bakery)
    assert TOLD[3] in session.run("SessionStart").context
    assert TOLD[3] not in ask(session, "Who is Oblomov, the landlord?")


def test_how_much_was_given_is_counted_by_session(served: Served, bakery: Path) -> None:
    session = Session(served.home, bakery)
    for prompt in ("Who is Oblomov, the landlord?", "thanks!"):
        ask(session, prompt)

    def of_this_session() -> list[dict[str, Any]]:
        report = served.link.call("injected", "bakery", {"days": 1})["data"]
        return [one for one in report["latest"] if one["session"] == session.id]

    # What was given is noted after the answer.
    wait_until(lambda: [one["prompts"] for one in of_this_session()] == [2])
    [mine] = of_this_session()
    assert mine["empty"] == 1
    assert 0 < mine["tokens"] < 1_000
    report = served.link.call("injected", "bakery", {"days": 1})
    assert f"{session.id}: 2 prompts, 1 with nothing" in str(report["text"])
