"""Correcting and undoing on the page: two verdicts, words that agree with fields, and Undo after each act and later."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chromium import Chromium, Window
from tests.integration.interfaces.serving import Served

pytestmark = pytest.mark.chromium


def ask(served: Served, name: str, operation: str, **given: Any) -> Any:
    return served.link.call(operation, name, given)["data"]


def lives_in_lisbon(served: Served, name: str) -> str:
    """Make a memory that believes that Ana lives in Lisbon; return the fact's id."""
    served.create(name)
    fact = {
        "subject": "Ana",
        "relation": "LIVES_IN",
        "object": "Lisbon",
        "text": "Ana lives in Lisbon.",
        "valid_at": "2026-01-05",
    }
    ask(served, name, "remember", content="I live in Lisbon.", facts=[fact], extraction="none")
    told = "As Ana lives in Lisbon, we met there."
    ask(served, name, "remember", content=told, extraction="none")
    return str(ask(served, name, "timeline")["facts"][0]["id"])


def open_facts(served: Served, name: str) -> list[str]:
    facts = ask(served, name, "timeline")["facts"]
    return [fact["text"] for fact in facts if "invalid_at" not in fact]


def undo_just_now(window: Window) -> None:
    window.page.click("section[aria-label='Just done'] >> button:text-is('Undo')")
    window.page.wait_for_selector("section[aria-label='Just done'] >> text=Undone")


def test_words_that_contradict_the_object_are_refused_and_a_changed_object_changes_them(
    browser: Chromium, served: Served
) -> None:
    fact = lives_in_lisbon(served, "ana")
    with browser.window(served, "ana") as window:
        window.go(f"#/item/{fact}", "#correct")
        assert window.moderate() == []
        window.page.fill("textarea[name=text]", "Ana lives in Porto.")
        window.page.click("text=Keep that")
        window.page.wait_for_selector(
            "[role=alert]:has-text(\"does not name the object 'Lisbon'\")"
        )
        assert window.page.get_attribute("textarea[name=text]", "aria-invalid") == "true"
        assert window.moderate() == []
        assert open_facts(served, "ana") == ["Ana lives in Lisbon."]
        window.page.fill("textarea[name=text]", "Ana lives in Lisbon.")
        window.page.fill("input[name=object]", "Porto")
        window.page.click("text=Keep that")
        window.page.wait_for_selector("#still")
        window.page.wait_for_selector("a:has-text('Ana lives in Porto.')")
        assert open_facts(served, "ana") == ["Ana lives in Porto."]
        window.page.wait_for_selector("dd:has-text('at no time')")
        assert window.moderate() == []
        undo_just_now(window)
        window.page.wait_for_selector("#correct")
        assert open_facts(served, "ana") == ["Ana lives in Lisbon."]
        window.said.clear()  # the browser notes the 400 itself
        window.is_well()


def test_subject_and_relation_are_edited_and_what_is_no_longer_true_ends(
    browser: Chromium, served: Served
) -> None:
    fact = lives_in_lisbon(served, "mira")
    with browser.window(served, "mira") as window:
        window.go(f"#/item/{fact}", "#correct")
        window.page.check("input[value=no_longer_true]")
        window.page.fill("input[name=since]", "2026-03-01")
        window.page.fill("input[name=subject]", "Bob")
        window.page.fill("input[name=relation]", "WORKS_IN")
        window.page.fill("textarea[name=text]", "Bob works in Lisbon.")
        window.page.click("text=Keep that")
        window.page.wait_for_selector("#still")
        facts = {one["text"]: one for one in ask(served, "mira", "timeline")["facts"]}
        assert facts["Ana lives in Lisbon."]["invalid_at"].startswith("2026-03-01")
        right = facts["Bob works in Lisbon."]
        assert (right["relation"], right["subject_name"]) == ("WORKS_IN", "Bob")
        window.is_well()


def test_turns_that_still_say_the_old_thing_are_named_marked_and_forgotten(
    browser: Chromium, served: Served
) -> None:
    fact = lives_in_lisbon(served, "iris")
    with browser.window(served, "iris") as window:
        window.go(f"#/item/{fact}", "#correct")
        window.page.fill("input[name=object]", "Porto")
        window.page.click("text=Keep that")
        window.page.wait_for_selector("#still ~ ul li:has-text('I live in Lisbon.')")
        window.page.wait_for_selector("#still ~ ul li:has-text('As Ana lives in Lisbon')")
        window.page.click("[aria-label^='Mark as outdated: user: As Ana lives']")
        window.page.wait_for_selector("text=Marked as outdated.")
        said = str(ask(served, "iris", "recall", query="we met there")["channels"])
        assert "[Outdated. Right is: Ana lives in Porto.]" in said
        undo_just_now(window)
        window.page.click("[aria-label^='Forget: user: As Ana lives']")
        window.page.wait_for_selector("text=Forgotten: 1 turn.")
        window.page.wait_for_selector("#still ~ ul li:has-text('As Ana lives')", state="detached")
        assert "we met there" not in str(ask(served, "iris", "turns_list")["turns"])
        assert window.moderate() == []
        undo_just_now(window)
        window.page.wait_for_selector("#still ~ ul li:has-text('As Ana lives')")
        assert "we met there" in str(ask(served, "iris", "turns_list")["turns"])
        window.is_well()


def test_every_change_is_undone_in_changes(browser: Chromium, served: Served) -> None:
    fact = lives_in_lisbon(served, "noor")
    turn = ask(served, "noor", "remember", content="Tea at ten.", extraction="none")["turn_id"]
    ask(served, "noor", "anchor_save", title="Bread", text="Rye.", slug="bread")
    ask(served, "noor", "anchor_save", title="Bread", text="Oats.", slug="bread")
    ask(served, "noor", "update", id=turn, content="Tea at eleven.")
    ask(served, "noor", "fact_correct", id=fact, verdict="never_true")
    gone = ask(served, "noor", "remember", content="A moot point.", extraction="none")["turn_id"]
    ask(served, "noor", "forget", ids=[gone], dry_run=False, soft=True)
    with browser.window(served, "noor") as window:
        window.go("#/changes", "ul[aria-label=Changes] li:nth-child(4)")
        assert window.moderate() == []
        for shown, done in (
            ("Forgotten: A moot", "Undone: Forgotten."),
            ("Correction: Never true", "Undone: Correction."),
            ("Words changed: Tea at eleven", "Undone: Words changed."),
            ("Anchor edited", "Undone: Anchor edited."),
        ):
            window.page.click(f"[aria-label^='Undo: {shown}']")
            window.page.wait_for_selector(f"section[aria-label='Just done'] >> text={done}")
        assert open_facts(served, "noor") == ["Ana lives in Lisbon."]
        assert ask(served, "noor", "anchor_get", slug="bread")["text"] == "Rye."
        turns = str(ask(served, "noor", "turns_list")["turns"])
        assert "Tea at ten." in turns
        assert "A moot point." in turns
        assert window.moderate() == []
        window.is_well()


def test_an_edit_of_an_anchor_and_of_a_turn_is_undone_right_after(
    browser: Chromium, served: Served
) -> None:
    served.create("lena")
    turn = ask(served, "lena", "remember", content="Tea at ten.", extraction="none")["turn_id"]
    ask(served, "lena", "anchor_save", title="Bread", text="Rye.", slug="bread")
    with browser.window(served, "lena") as window:
        window.go("#/anchors/bread", "button:text-is('Edit')")
        window.page.click("button:text-is('Edit')")
        window.page.fill("[name=text]", "Oats.")
        window.page.click("button:text-is('Save')")
        window.page.wait_for_selector("text=The anchor is changed.")
        window.page.click("summary:has-text('What it was')")
        window.page.wait_for_selector("del:has-text('Rye.')")
        assert window.moderate() == []
        undo_just_now(window)
        assert ask(served, "lena", "anchor_get", slug="bread")["text"] == "Rye."
        window.page.wait_for_selector(".card:has-text('Rye.')")
        window.go(f"#/item/{turn}", "summary:has-text('Correct its words')")
        window.page.click("summary:has-text('Correct its words')")
        window.page.fill("textarea[name=content]", "Tea at noon.")
        window.page.click("button:text-is('Keep that')")
        window.page.wait_for_selector("text=The words are changed.")
        undo_just_now(window)
        [item] = ask(served, "lena", "get", ids=[turn])["items"]
        assert item["content"] == "Tea at ten."
        window.is_well()
