"""The page while the server hangs, while something is typed, and when a second link is opened in its tab."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from tests.chromium import Chromium, Window
from tests.integration.interfaces.serving import Served

pytestmark = pytest.mark.chromium


@pytest.fixture
def ida(served: Served) -> Served:
    if "ida" not in [
        one["name"] for one in served.link.call("entity_list", "", {})["data"]["entities"]
    ]:
        served.create("ida")
        served.link.call("remember", "ida", {"content": "Ida keeps bees.", "wait": "done"})
    return served


@pytest.fixture
def window(browser: Chromium, ida: Served) -> Iterator[Window]:
    with browser.window(ida, "ida") as window:
        yield window


def link_of(served: Served) -> str:
    return str(served.link.call("page_open", "", {"name": "ida"})["data"]["url"])


def test_a_link_that_is_opened_in_the_same_tab_works_and_its_secret_leaves_the_address(
    window: Window, ida: Served
) -> None:
    window.page.click("text=Leave")
    window.page.wait_for_selector("text=pps open ida")
    window.page.evaluate("url => { location.href = url; }", link_of(ida))
    window.page.wait_for_selector("nav a")
    assert "open=" not in window.page.url
    window.page.evaluate("() => { location.hash = '#open=spent'; }")
    window.page.wait_for_selector("main.outside [role=alert]")
    assert "spent" not in window.page.url
    window.said.clear()  # the browser notes the refusal itself


def test_what_is_typed_is_not_left_without_a_question(window: Window) -> None:
    window.go("#/anchors", "h1")
    window.page.click("text=Write one")
    window.page.fill("textarea", "Bees sleep in winter.")
    asked: list[str] = []

    def answer(dialog: object, *, leaves: bool) -> None:
        asked.append(dialog.message)  # type: ignore[attr-defined]
        dialog.accept() if leaves else dialog.dismiss()  # type: ignore[attr-defined]

    window.page.once("dialog", lambda dialog: answer(dialog, leaves=False))
    with window.page.expect_event("dialog"):
        window.page.click("nav a[href='#/turns']")
    window.rest()
    assert asked == ["Leave without keeping what you typed?"]
    assert window.page.input_value("textarea") == "Bees sleep in winter."
    window.page.once("dialog", lambda dialog: answer(dialog, leaves=True))
    with window.page.expect_event("dialog"):
        window.page.click("nav a[href='#/turns']")
    window.page.wait_for_selector("h1:has-text('Conversations')")
    assert len(asked) == 2
    window.is_well()


@pytest.mark.timeout(180)
def test_a_server_that_hangs_is_not_live_and_its_answers_time_out_with_words(
    window: Window, ida: Served
) -> None:
    window.page.wait_for_selector("text=Live")
    os.kill(ida.run.pid, signal.SIGSTOP)
    try:
        window.page.evaluate("() => { location.hash = '#/health'; }")
        window.page.wait_for_selector("text=Not connected", timeout=30_000)
        assert window.page.locator("text=Live").count() == 0
        window.page.wait_for_selector("text=has not answered for 30 seconds", timeout=60_000)
    finally:
        os.kill(ida.run.pid, signal.SIGCONT)
    window.page.wait_for_selector("text=Live", timeout=60_000)
    window.said.clear()  # the browser notes what was given up
