"""S2-17, the page's views of the journal in a real Chromium: turns, jobs, what was injected, the last proof."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator

import pytest

from tests.chromium import Chromium, Window
from tests.integration.interfaces.serving import Served

pytestmark = pytest.mark.chromium
_SAID = 64


@pytest.fixture(scope="module")
def theo(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Served:
    """An entity with two conversations, the longer one of several pages."""
    served.create("theo")
    fact = {"subject": "Theo", "relation": "KEEPS", "object": "bees", "text": "Theo keeps bees."}
    lines = [{"content": f"Line {at} of the long talk.", "session": "long"} for at in range(_SAID)]
    talk = tmp_path_factory.mktemp("talk") / "talk.jsonl"
    talk.write_text("\n".join(map(json.dumps, lines)))
    served.link.call("import", "", {"entity": "theo", "paths": [str(talk)]})
    told = {
        "content": "Theo keeps bees on the roof.",
        "session": "short",
        "actor": "Ana",
        "facts": [fact],
    }
    served.link.call("remember", "theo", told)
    return served


@pytest.fixture
def window(browser: Chromium, theo: Served) -> Iterator[Window]:
    with browser.window(theo, "theo") as window:
        yield window
        window.is_well()


def test_turns_are_newest_first_by_page_and_by_conversation_with_what_was_made_of_them(
    window: Window, theo: Served
) -> None:
    window.go("#/turns", ".turn")
    first = window.text(".turn >> nth=0")
    assert "Ana" in first
    assert "Theo keeps bees on the roof." in first
    assert "1 fact made of it" in first  # beside it, not behind a click
    window.page.click(".turn >> nth=0 >> .lines a")
    window.page.wait_for_selector(".kind:has-text('Fact')")
    window.go("#/turns", ".turn")
    for shown in (60, _SAID + 1):
        window.page.click("text=Show more turns")
        window.page.wait_for_selector(f"text={shown} turns shown")
    assert window.page.query_selector("text=Show more turns") is None
    texts = list(
        window.page.eval_on_selector_all(".turn > .said", "all => all.map((one) => one.innerText)")
    )
    assert texts[1:] == [f"Line {at} of the long talk." for at in reversed(range(_SAID))]
    window.page.select_option("select", "short")
    window.page.wait_for_selector("text=1 turn shown")
    assert "session=short" in window.page.url
    theo.link.call("remember", "theo", {"content": "It is live here.", "session": "short"})
    window.page.wait_for_selector(".turn:has-text('It is live here.')")


def test_what_is_superseded_names_what_took_its_place_in_answers_and_on_the_page(
    window: Window, theo: Served
) -> None:
    ids: list[str] = []
    for day, text in (("01", "My dog is called Rex."), ("09", "My dog is called Bruno, not Rex.")):
        told = {"content": text, "session": f"dog {day}", "occurred_at": f"2026-03-{day}T10:00:00Z"}
        told["extraction"] = "none"
        ids.append(theo.link.call("remember", "theo", told)["data"]["turn_id"])
    found = theo.link.call("recall", "theo", {"query": "What is my dog called?"})["data"]
    hits = {hit["id"]: hit for hit in found["channels"]["episodes"]["hits"]}

    assert hits[ids[0]]["superseded_by"] == {
        "id": ids[1],
        "text": "My dog is called Bruno, not Rex.",
        "at": "2026-03-09T10:00:00Z",
        "sure": True,
    }
    assert "superseded_by" not in hits[ids[1]]
    assert list(hits).index(ids[1]) < list(hits).index(ids[0])
    window.go("#/turns?session=dog%2001", ".superseded")
    assert "Superseded 2026-03-09: My dog is called Bruno" in window.text(".superseded")
    window.page.click(".superseded a")
    window.page.wait_for_selector(".said:has-text('not Rex')")


def test_jobs_show_what_failed_and_why_and_try_it_again(window: Window, theo: Served) -> None:
    window.go("#/jobs", "section[aria-label=Failed]")
    window.page.wait_for_selector("text=None: all that was said could be taken in.")
    with sqlite3.connect(theo.home / "entities" / "theo" / "data" / "memory.db") as db:
        db.execute(
            "UPDATE jobs SET state = 'failed', error = 'the model was away' WHERE id IN (1, 2, 3)"
        )
    db.close()
    window.page.wait_for_selector(
        "section[aria-label=Failed] li:has-text('the model was away')"
    )  # it is live
    assert "pps jobs drop theo --all" in window.text()
    assert window.serious() == []
    window.page.click("section[aria-label=Failed] button:has-text('Attempts') >> nth=0")
    window.page.wait_for_selector("section[aria-label=Failed] ol li:has-text('save: done')")
    window.page.click("section[aria-label=Failed] button:has-text('Try again') >> nth=0")
    window.page.wait_for_selector("text=1 job tried again.")
    window.page.click("text=Try all of them again")
    window.page.wait_for_selector("text=None: all that was said could be taken in.")
    assert theo.link.call("ingestion_stats", "theo", {})["data"]["failed"] == 0


def test_injected_shows_tokens_a_session_and_of_which_parts(window: Window, theo: Served) -> None:
    window.go("#/injected", ".empty")
    assert "pps hooks install --entity theo" in window.text()
    event = {"session": "morning", "context": "bees"}
    pack = theo.link.call("ambient_recall", "theo", event)["data"]
    window.page.click("a:has-text('morning')")  # it is live
    window.page.wait_for_selector("section[aria-label='Given to morning'] li")
    assert f"at its prompts: {pack['tokens']} tokens in 1 pack" in window.text()
    row = window.text("tbody tr").split()
    assert row[:4] == ["morning", "1", "0", str(pack["tokens"])]
    packs = window.text("section[aria-label='Packs']")
    assert "at a prompt" in packs
    assert "bees" in packs.lower(), "each line that was given is listed"
    assert window.serious() == []
    window.page.click("text=its turns")
    window.page.wait_for_selector("text=Nothing was said in this conversation.")


def test_what_a_person_asks_on_the_page_is_not_counted_as_injected(
    window: Window, theo: Served
) -> None:
    before = theo.link.call("injected", "theo", {})["data"]
    window.go("#/ask?q=bees", "#pack")
    assert theo.link.call("injected", "theo", {})["data"] == before


def test_isolation_shows_the_last_proof_and_the_owners_commands(
    window: Window, theo: Served
) -> None:
    window.go("#/isolation", ".empty:has-text('No proof was run here yet')")
    assert "pps verify-isolation" in window.text()
    proof = json.loads(theo.pps("verify-isolation", "--operations", "40", "--json").stdout)
    tried = sum(
        proof["operations"].values()
    )  # those asked for, and what features attack by themselves
    assert tried >= 40
    window.go("#/health", "table")
    window.go("#/isolation", "text=Nothing of one memory reached another.")
    assert window.text(".figures dd >> nth=0") == f"{tried:,}"
    assert "pps import theo theo.jsonl" in window.text()
