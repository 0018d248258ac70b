"""S2-17, Talk in a browser: a first answer, streaming, stopping, trying again, editing, forgetting, and coming back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chat_server import ChatServer, chat_server
from tests.chromium import Chromium, Window
from tests.integration.interfaces.serving import Served
from tests.room_socket import let_answer

pytestmark = [pytest.mark.chromium, pytest.mark.xdist_group("chromium")]


@pytest.fixture
def chat() -> Iterator[ChatServer]:
    with chat_server() as chat:
        yield chat


def say(window: Window, text: str) -> None:
    window.page.fill("textarea[name=text]", text)
    window.page.keyboard.press("Enter")


def answered(window: Window, count: int = 1) -> str:
    """Wait until so many answers are there; return the last one's words."""
    window.page.wait_for_function(
        "(count) => document.querySelectorAll('.message.theirs:not(.coming)').length >= count && !document.querySelector('.coming')",
        arg=count,
    )
    return str(window.page.inner_text(".message.theirs:last-of-type .said >> nth=-1"))


def test_a_new_user_goes_to_a_first_answer(
    served: Served, browser: Chromium, chat: ChatServer
) -> None:
    served.create("nora")
    with browser.window(served, "nora") as window:
        window.go("#/talk", until=".composer")
        # Nobody answers yet: the room says what to set, and what is said is kept.
        assert "[talk]" in window.text(".alert")
        say(window, "My boat is called Aurora.")
        window.page.wait_for_selector(".message.mine:not(.sending)")
        let_answer(served, "nora", server="openai", model="nora", base_url=chat.base_url)
        say(window, "What do you know of Aurora?")
        assert "My boat is called Aurora." in answered(window)
        assert window.moderate() == []
        window.page.click("text=was given >> nth=0")
        window.page.click("summary:has-text('What nora wrote down')")
        window.rest()
    turns = served.link.call("turns_list", "nora", {})["data"]["turns"]
    assert len([one for one in turns if one["turn"]["source"] == "haven"]) == 3
