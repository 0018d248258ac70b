"""A life of eighty turns from Home: somebody in it is corrected, and forgotten; a question in Talk shows both at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.chat_server import ChatServer
from tests.chromium import Chromium, Window
from tests.integration.interfaces.serving import Served
from tests.room_socket import let_answer
from tests.taken_in import wait_until_taken_in
from tests.talk_page import messages_of, say, wait_for_answers

pytestmark = pytest.mark.chromium
LIFE = Path(__file__).parents[2] / "life"
BEGIN = datetime(2026, 5, 20, 9, tzinfo=UTC)
PEOPLE = ("Karolina", "Diego", "Tomek", "Ingrid", "Beatriz", "Pawel", "Halina")
SMALL_TALK = [
    f"{thing} today, {when}."
    for thing in ("It rained", "I slept well", "The tram was late", "I cooked soup", "I was tired")
    for when in ("as ever", "for once", "again", "a little")
]


def _turns() -> list[dict[str, Any]]:
    """Return the life's turns with the facts that each brings, then small talk: eighty in all."""
    turns = json.loads((LIFE / "turns.json").read_text("utf-8"))
    facts = json.loads((LIFE / "facts.json").read_text("utf-8"))
    told: list[dict[str, Any]] = []
    for number, turn in enumerate(turns):
        brought = [
            {name: fact[name] for name in ("subject", "relation", "object", "text")}
            for fact in facts
            if (fact["said"] if isinstance(fact["said"], str) else fact["said"][-1]) in turn["text"]
        ]
        at = BEGIN + timedelta(days=turn["day"], minutes=number)
        names = [
            name for name in PEOPLE if any(name in (f["subject"], f["object"]) for f in brought)
        ]
        told.append(
            {
                "content": turn["text"],
                "facts": brought,
                "nodes": [{"name": name, "kind": "Person"} for name in names],
                "session": f"day {turn['day']}",
                "occurred_at": at.isoformat(),
            }
        )
    for number, text in enumerate(SMALL_TALK):
        at = BEGIN + timedelta(days=40 + number)
        told.append({"content": text, "session": "small talk", "occurred_at": at.isoformat()})
    return told


@pytest.fixture(scope="module")
def jonas(served: Served) -> Served:
    served.create("jonas")
    turns = _turns()
    assert len(turns) == 80
    for turn in turns:
        served.link.call("remember", "jonas", {**turn, "extraction": "given", "wait": "journal"})
    wait_until_taken_in(served, "jonas")
    return served


@pytest.fixture
def window(browser: Chromium, jonas: Served) -> Iterator[Window]:
    with browser.window(jonas, "jonas") as window:
        yield window
        window.pass_over_what_is_gone()
        window.is_well()


def _pack(served: Served, question: str) -> str:
    wait_until_taken_in(served, "jonas")
    request = {"context": question, "budget_tokens": 1500, "mode": "preview"}
    return str(served.link.call("ambient_recall", "jonas", request)["data"]["text"])


def _asked_in_talk(window: Window, served: Served, question: str, answers: int) -> str:
    """Ask in the entity's own room; return the answer, which has each line of the prompt with the question's last word."""
    wait_until_taken_in(served, "jonas")
    window.go("#/talk", until=".composer")
    say(window, question)
    return wait_for_answers(window, answers)


def _open_from_home(window: Window, name: str) -> None:
    window.go("#/home", "section[aria-label=People] li")
    more = window.page.locator("section[aria-label=People] summary")
    if more.count():
        more.first.click()
    window.page.click(f"section[aria-label=People] a:has-text('{name}')")
    window.page.wait_for_selector(f"h1:has-text('{name}')")
    window.page.wait_for_selector(".profile-fact")


def test_somebody_is_corrected_and_then_forgotten_from_home_and_a_question_shows_it(
    window: Window, jonas: Served, chat: ChatServer
) -> None:
    let_answer(jonas, "jonas", server="openai", model="jonas", base_url=chat.base_url)
    assert "Toledo" in _pack(jonas, "Where is Karolina getting married?")
    _open_from_home(window, "Karolina")
    sentence = next(
        str(fact["text"])
        for fact in jonas.link.call("timeline", "jonas", {"id": "Karolina"})["data"]["facts"]
        if fact["relation"] == "MARRIES_IN"
    )
    window.page.click(f'button[aria-label="Wrong: {sentence}"]')
    window.page.fill("input[name=object]", "Evora")
    window.page.fill("textarea[name=text]", "Karolina gets married on 12 September in Evora.")
    window.page.click("text=Keep that")
    window.page.wait_for_selector(".profile-fact:has-text('Evora')")
    pack = _pack(jonas, "Where is Karolina getting married?")
    assert "Evora" in pack
    stale = [line for line in pack.splitlines() if "married" in line and "Toledo" in line]
    assert all("superseded" in line or "outdated" in line or "until" in line for line in stale)
    window.go("#/home", "section[aria-labelledby=home-changes]")
    assert "in Evora" in window.text("section[aria-labelledby=home-changes]")
    question = "My sister's wedding is soon. Which town was it, and what do you know of married?"
    answer = _asked_in_talk(window, jonas, question, 1)
    assert "Evora" in answer
    stale = [line for line in answer.split(" / ") if "married" in line and "Toledo" in line]
    assert all("superseded" in line or "outdated" in line or "until" in line for line in stale)

    _open_from_home(window, "Karolina")
    window.page.locator("section[aria-label=Forget]").last.locator("button").click()
    window.page.wait_for_selector("input[name=along]")
    for kind in window.page.locator("input[name=along]").all():
        kind.check()
        window.rest()
    window.page.click("button:has-text('Forget, with 30 days')")
    window.page.wait_for_selector("main[data-view=forgotten]")
    window.page.click("[aria-label='Just done'] button:has-text('Close')")
    for question in ("Where is Karolina getting married?", "Who is Jonas's sister?"):
        assert "Karolina" not in _pack(jonas, question)
    window.go("#/home", "section[aria-label=People] li")
    assert "Karolina" not in window.text()
    window.page.fill("#search", "Karolina")
    window.page.keyboard.press("Enter")
    window.page.wait_for_selector("main[data-view=search] [role=status]")
    window.rest()
    assert "Karolina" not in window.text()
    # The earlier answer in this room named her: it is forgotten along.
    window.go("#/talk", until=".composer")
    left = len([message for message in messages_of(window) if message[0] == "jonas"])
    question = (
        "Whom shall I ring first on the morning of 12 September? What do you know of Karolina?"
    )
    assert _asked_in_talk(window, jonas, question, left + 1) == "I know nothing of that."
    given = chat.prompts("jonas")[-1]
    assert given.count("Karolina") == 1, "the question alone says her name"
