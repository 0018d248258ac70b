"""S2-17, the page in a real Chromium: what each view shows, by address, by keyboard, on a phone, in the dark."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chromium import Chromium, Window
from tests.integration.interfaces.serving import Served

pytestmark = pytest.mark.chromium
_MOVED = {
    "content": "Wren has moved to the loft.",
    "facts": [
        {
            "subject": "Wren",
            "relation": "LIVES_AT",
            "object": "loft",
            "text": "Wren lives in the loft.",
            "invalidates": ["Wren LIVES_AT"],
        },
    ],
    "occurred_at": "2026-02-20T09:00:00Z",
}
_TOLD = {
    "content": "Wren is allergic to walnuts. She lives at Haven.",
    "nodes": [{"name": "Wren", "kind": "Person", "summary": "nine years old"}],
    "facts": [
        {
            "subject": "Wren",
            "relation": "IS_ALLERGIC_TO",
            "object": "walnuts",
            "text": "Wren is allergic to walnuts.",
        },
        {
            "subject": "Wren",
            "relation": "LIVES_AT",
            "object": "Haven",
            "text": "Wren lives at Haven.",
        },
    ],
    "occurred_at": "2026-01-31T09:00:00Z",
}


@pytest.fixture(scope="module")
def mira(served: Served) -> Served:
    served.create("mira")
    for told in (_TOLD, _MOVED):
        served.link.call("remember", "mira", told)
    return served


@pytest.fixture
def window(browser: Chromium, mira: Served) -> Iterator[Window]:
    with browser.window(mira, "mira") as window:
        yield window
        window.is_well()


def test_the_secret_leaves_the_address_and_the_page_is_accessible(window: Window) -> None:
    assert "open=" not in window.page.url
    assert window.text("dl.figures").split() == [
        "turns",
        "2",
        "nodes",
        "5",
        "facts",
        "3",
        "anchors",
        "0",
    ]
    assert window.serious() == []


def test_ask_shows_the_pack_that_an_agent_gets_and_why(window: Window, mira: Served) -> None:
    window.go("#/ask", "#q")
    window.page.fill("#q", "What is Wren allergic to?")
    window.page.keyboard.press("Enter")
    window.page.wait_for_selector(".channels")
    pack = mira.link.call(
        "ambient_recall", "mira", {"context": "What is Wren allergic to?", "budget_tokens": 1200}
    )
    lines = [
        line[2:].rpartition(" [")[0]
        for line in str(pack["data"]["text"]).splitlines()
        if line.startswith("- ")
    ]
    assert lines
    for line in lines:
        assert line in window.text()
    window.page.click(".lines summary >> nth=0")
    assert "at place 1" in window.text(".lines details[open]")
    window.page.click(".lines details[open] >> text=Its ranks")
    assert "#1" in window.text(".lines details[open] .ranks")
    assert "q=What+is+Wren" in window.page.url  # an address of its own
    assert window.serious() == []


def test_a_memory_without_anything_says_what_to_do(browser: Chromium, mira: Served) -> None:
    mira.create("empty")
    with browser.window(
        mira, "empty", color_scheme="dark", viewport={"width": 380, "height": 780}
    ) as window:
        window.page.wait_for_selector("text=remembers nothing yet")
        assert "pps import empty" in window.text()
        assert window.serious() == []
        mira.link.call("remember", "empty", {"content": "Hello."})
        window.page.wait_for_selector("dl.figures")  # it is live
        window.is_well()


def test_time_pages_past_two_hundred_changes_newest_first(browser: Chromium, mira: Served) -> None:
    mira.create("many")
    days = [f"2026-{1 + number // 28:02}-{1 + number % 28:02}" for number in range(230)]
    for start in range(0, 230, 46):
        facts = [
            {
                "subject": "Mo",
                "relation": "SAW",
                "object": f"film {number}",
                "text": f"Mo saw film {number}.",
                "valid_at": days[number],
            }
            for number in range(start, start + 46)
        ]
        told = {"content": f"Films from {start}.", "facts": facts, "wait": "done"}
        mira.link.call("remember", "many", told)
    with browser.window(mira, "many") as window:
        window.go("#/time", "section[aria-label=Began] li")
        assert "230 changes" in window.text()
        shown = window.page.locator("section[aria-label=Began] li")
        assert shown.first.inner_text().startswith("Mo saw film 229.")
        for pages in (200, 230):
            window.page.click("text=Show more changes")
            window.page.wait_for_function(
                "n => document.querySelectorAll('section[aria-label=Began] li').length === n",
                arg=pages,
            )
        assert shown.last.inner_text().startswith("Mo saw film 0.")
        assert window.page.locator("text=Show more changes").count() == 0
        window.page.click("button:has-text('Week')")
        window.page.wait_for_selector("text=6 changes")
        assert window.serious() == []
        window.is_well()


def _fact(mira: Served, text: str) -> str:
    found = mira.link.call("timeline", "mira", {"limit": 100})["data"]["facts"]
    return str(next(one["id"] for one in found if one["text"] == text))


def test_the_graph_begins_small_and_grows_by_what_is_opened(window: Window) -> None:
    window.go("#/graph", ".beside")
    window.page.wait_for_selector("canvas")
    window.page.click("text=Next to it")
    window.page.click(".near button:has-text('loft')")
    window.page.wait_for_selector("#chosen:has-text('loft')")
    assert "node=" in window.page.url
    assert "drawn" in window.text("main [role=status]")
    assert "Wren lives in the loft." in window.text()
    window.page.uncheck(".chip:has-text('LIVES_AT') input")
    assert window.serious() == []


def test_time_shows_what_began_ended_and_was_replaced(window: Window) -> None:
    window.go("#/time?since=2026-02-01&until=2026-03-01", ".changes")
    window.page.wait_for_selector(".pair")
    assert "Wren lives at Haven." in window.text(".pair .ended")
    assert "Wren lives in the loft." in window.text("section[aria-label=Replaced]")
    window.go("#/time?since=2026-01-31&until=2026-02-05&about=Wren", ".changes")
    window.page.wait_for_selector("section[aria-label=Began] li")
    assert "Wren is allergic to walnuts." in window.text("section[aria-label=Began]")
    window.page.focus("input[type=range] >> nth=1")  # the slider goes by keyboard too
    window.page.keyboard.press("End")
    window.page.wait_for_selector(".pair")
    assert "until=2026-02-21" in window.page.url
    assert window.serious() == []


def test_a_fact_is_corrected_and_forgotten_only_after_what_would_go_was_shown(
    window: Window, mira: Served
) -> None:
    window.go(f"#/item/{_fact(mira, 'Wren is allergic to walnuts.')}", ".turn")
    assert "She lives at Haven." in window.text(".turn")  # the turn that supports it
    window.page.fill("textarea[name=text]", "Wren is allergic to hazelnuts.")
    window.page.fill("input[name=object]", "hazelnuts")
    window.page.click("text=Keep that")
    window.page.wait_for_selector("#still")
    window.page.wait_for_selector("text=Corrected.")
    facts = mira.link.call("timeline", "mira", {"limit": 100})["data"]["facts"]
    ended = {one["text"]: "invalid_at" in one for one in facts}
    assert (ended["Wren is allergic to walnuts."], ended["Wren is allergic to hazelnuts."]) == (
        True,
        False,
    )
    assert window.serious() == []
    window.go(f"#/item/{_fact(mira, 'Wren is allergic to hazelnuts.')}", "h1:has-text('hazelnuts')")
    window.page.click("text=Show what would go")
    window.page.wait_for_selector("text=This would go")
    _fact(mira, "Wren is allergic to hazelnuts.")  # nothing is gone yet
    window.page.click("text=Forget this fact")
    window.page.wait_for_selector("main[data-view=home] h1")
    window.rest()
    window.pass_over_what_is_gone()
    assert "hazelnuts." not in str(mira.link.call("timeline", "mira", {"limit": 100})["text"])


def test_an_id_of_nothing_is_told_as_that(window: Window) -> None:
    window.go("#/item/00000000-0000-4000-8000-000000000000", "text=There is nothing of that id")
    window.said.clear()  # the browser notes the 404 itself


def test_health_says_whether_all_is_well_and_what_only_the_owner_does(window: Window) -> None:
    window.go("#/health", "table")
    window.page.wait_for_selector("text=All is well")
    window.page.click("main a:has-text('Isolation')")
    window.page.wait_for_selector("h1:has-text('Isolation')")
    assert "pps verify-isolation" in window.text()
    assert window.serious() == []
