"""Talking on a page in Chromium, as a person does: type, send, wait for answers, read what stands there."""

from __future__ import annotations

from tests.chat_server import ChatServer
from tests.chromium import Window
from tests.integration.interfaces.serving import Served
from tests.room_socket import let_answer

_ARE_ANSWERED = """(count) =>
    document.querySelectorAll('.message.theirs:not(.coming)').length >= count
    && !document.querySelector('.coming, .sending')"""
_MESSAGES = """() => [...document.querySelectorAll('.messages > .message')].map((message) => [
    message.querySelector('bdi')?.textContent ?? '',
    message.querySelector('.said')?.innerText ?? '',
    [...message.querySelectorAll(':scope > p .tag')].map((tag) => tag.textContent).join(', '),
])"""


def make_talkers(served: Served, chat: ChatServer, *names: str) -> None:
    """Make entities, each answered for by a model of its own name on a local server."""
    for name in names:
        served.create(name)
        let_answer(served, name, server="openai", model=name, base_url=chat.base_url)


def say(window: Window, text: str) -> None:
    window.page.fill("textarea[name=text]", text)
    window.page.keyboard.press("Enter")


def wait_for_answers(window: Window, count: int) -> str:
    """Wait until the room shows so many whole answers and nothing is on its way; return the last answer's words."""
    window.page.wait_for_function(_ARE_ANSWERED, arg=count)
    return str(window.page.locator(".message.theirs:not(.coming) > .said").last.inner_text())


def messages_of(window: Window) -> list[tuple[str, str, str]]:
    """Return what the room shows: speaker, words and marks of each message, in order."""
    return [
        (str(who), str(words), str(marks)) for who, words, marks in window.page.evaluate(_MESSAGES)
    ]
