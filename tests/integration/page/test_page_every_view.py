"""S2-17, all views of the page alike: light, dark, phone, keyboard, screen reader, no data, no server."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chromium import Chromium, Window
from tests.integration.interfaces.serving import Served, serving
from tests.ports import lasting_port

pytestmark = pytest.mark.chromium
_WITHOUT_DATA = ("ask", "graph", "time", "turns", "jobs", "injected", "isolation")
_WIDE = "The word is " + "w" * 300 + ".\n\n" + "https://example.org/" + "path/" * 60


@pytest.fixture(scope="module")
def mira(served: Served) -> Served:
    served.create("mira")
    facts = [
        {"subject": "Mira", "relation": "READS", "object": f"book {at}", "valid_at": "2026-03-01"}
        for at in range(9)
    ]
    for session in ("morning", "s" * 150):
        served.link.call("remember", "mira", {"content": _WIDE, "session": session, "facts": facts})
        served.link.call("ambient_recall", "mira", {"context": "books", "session": session})
    served.link.call("anchor_save", "mira", {"title": "Kitchen", "text": "Coffee and tea."})
    return served


@pytest.fixture
def window(browser: Chromium, mira: Served) -> Iterator[Window]:
    with browser.window(mira, "mira") as window:
        yield window
        window.is_well()


def test_no_view_has_a_serious_finding_in_light_or_dark_or_scrolls_sideways_on_a_phone(
    window: Window,
) -> None:
    for view in window.views():
        window.page.set_viewport_size({"width": 1280, "height": 860})
        window.page.emulate_media(color_scheme="light")
        window.go(view)
        assert window.moderate() == [], view
        window.page.emulate_media(
            color_scheme="dark", reduced_motion="reduce"
        )  # colours change at once
        assert window.serious("color-contrast") == [], view
        window.page.set_viewport_size({"width": 360, "height": 740})
        wide = window.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert wide <= 0, view


def test_each_view_is_reached_and_lists_are_walked_by_keyboard_alone(window: Window) -> None:
    keys = window.page.keyboard
    views = window.navigation()
    window.go("#/ask")
    while not window.page.evaluate("document.activeElement.matches('nav a')"):
        keys.press("Shift+Tab")  # back from the heading, where a view begins
    for _ in views:
        keys.press("ArrowUp")
    for at, view in enumerate(views):
        if at:
            keys.press("ArrowDown")
        assert window.page.evaluate("document.activeElement.getAttribute('href')") == view
        keys.press("Enter")
        window.page.wait_for_selector(f"nav a[aria-current][href='{view}']")
        assert (
            window.page.evaluate("document.activeElement.tagName") == "H1"
        )  # a screen reader reads where it is
        window.page.focus(f"nav a[href='{view}']")
    window.go("#/turns", ".turn >> nth=1")
    window.page.focus(".turn >> nth=0 >> a")
    keys.press("ArrowDown")
    here = "[...document.querySelectorAll('.turn')].findIndex((one) => one.contains(document.activeElement))"
    assert window.page.evaluate(here) == 1
    keys.press("ArrowUp")
    assert window.page.evaluate(here) == 0
    outline = window.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"  # where one is, is seen


def test_a_first_start_without_data_says_in_every_view_what_to_do(
    browser: Chromium, served: Served
) -> None:
    served.create("empty")
    with browser.window(served, "empty") as window:
        for view in window.views():
            window.go(view)
            assert window.page.query_selector("main [role=alert]") is None, view
            if view.removeprefix("#/") in _WITHOUT_DATA:
                window.page.wait_for_selector(".empty")
                assert "pps " in window.text(), view
        window.is_well()


def test_a_server_that_is_gone_is_told_and_its_return_is_seen(
    browser: Chromium, tmp_path: Path
) -> None:
    port = str(lasting_port())
    with contextlib.ExitStack() as stack:
        with serving(tmp_path / "home", PPS_SERVER__PORT=port) as first:
            first.create("ana")
            first.link.call("remember", "ana", {"content": "Said before."})
            window = stack.enter_context(browser.window(first, "ana"))
            window.go("#/turns", ".turn:has-text('Said before.')")
            window.page.wait_for_selector(".state.live")
        window.page.wait_for_selector("[role=alert]:has-text('The server does not answer')")
        assert "Said before." in window.text()  # what was shown stays
        window.page.click("nav a:has-text('Upkeep')")
        window.page.wait_for_selector("[role=alert]:has-text('the server does not answer')")
        window.page.click("nav a:has-text('Conversations')")
        with serving(tmp_path / "home", PPS_SERVER__PORT=port) as second:
            second.link.call("remember", "ana", {"content": "Said after."})
            window.page.wait_for_selector(".turn:has-text('Said after.')")
            assert window.page.query_selector("[role=alert]") is None
