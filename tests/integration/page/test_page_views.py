"""S2-17, the page in a real Chromium: what each view shows, by address, by keyboard, on a phone, in the dark."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chromium import Chromium, Window
from tests.integration.interfaces.serving import Served

pytestmark = pytest.mark.chromium
_TOLD = {
    "content": "Wren is allergic to walnuts. She lives at Haven.",
    "nodes": [{"name": "Wren", "kind": "Person", "summary": "nine years old"}],
    "facts": [
        {"subject": "Wren", "relation": "IS_ALLERGIC_TO", "object": "walnuts", "text": "Wren is allergic to walnuts."},
        {"subject": "Wren", "relation": "LIVES_AT", "object": "Haven", "text": "Wren lives at Haven."},
    ],
    "occurred_at": "2026-01-31T09:00:00Z",
}


@pytest.fixture(scope="module")
def mira(served: Served) -> Served:
    served.create("mira")
    served.link.call("remember", "mira", _TOLD)
    return served


@pytest.fixture
def window(browser: Chromium, mira: Served) -> Iterator[Window]:
    with browser.window(mira, "mira") as window:
        yield window
        window.is_well()


def test_the_secret_leaves_the_address_and_the_page_is_accessible(window: Window) -> None:
    assert "open=" not in window.page.url
    assert window.page.inner_text("dl.figures").split() == ["turns", "1", "nodes", "4", "facts", "2", "anchors", "0"]
    assert window.serious() == []


def test_ask_shows_the_pack_that_an_agent_gets_and_why(window: Window, mira: Served) -> None:
    window.page.fill("#q", "What is Wren allergic to?")
    window.page.keyboard.press("Enter")
    window.page.wait_for_selector(".channels")
    pack = mira.link.call("ambient_recall", "mira", {"context": "What is Wren allergic to?", "budget_tokens": 1200})
    lines = [line[2:].rpartition(" [")[0] for line in str(pack["data"]["text"]).splitlines() if line.startswith("- ")]
    assert lines
    for line in lines:
        assert line in window.text()
    window.page.click(".lines summary >> nth=0")
    assert "at place 1" in window.page.inner_text(".lines details[open]")
    assert "#1" in window.page.inner_text(".lines details[open] .ranks")
    assert "q=What+is+Wren" in window.page.url  # an address of its own
    assert window.serious() == []


def test_a_memory_without_anything_says_what_to_do(browser: Chromium, mira: Served) -> None:
    mira.create("empty")
    with browser.window(mira, "empty", color_scheme="dark", viewport={"width": 380, "height": 780}) as window:
        window.page.wait_for_selector("text=remembers nothing yet")
        assert "pps import empty" in window.text()
        assert window.serious() == []
        mira.link.call("remember", "empty", {"content": "Hello."})
        window.page.wait_for_selector("dl.figures")  # it is live
        window.is_well()
