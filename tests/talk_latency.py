"""Measures how long after the model's first word a room shows it: over the socket, and in Chromium.

``python -m tests.talk_latency`` prints medians and the slowest, in milliseconds, of answers of a local server.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.browser_session import page_of
from tests.chat_server import ChatServer, chat_server
from tests.chromium import Chromium, chromium
from tests.integration.interfaces.serving import Served, serving
from tests.room_socket import room_socket
from tests.talk_page import make_talkers, say, wait_for_answers

_RUNS = 15
_WATCH = """() => {
    window.shownAt = [];
    const seen = new Set();
    new MutationObserver(() => {
        const words = document.querySelector(".coming .said");
        const id = document.querySelectorAll(".message.theirs").length;
        if (!words || seen.has(id)) return;
        seen.add(id);
        window.shownAt.push((performance.timeOrigin + performance.now()) / 1000);
    }).observe(document.body, { childList: true, subtree: true, characterData: true });
}"""


def over_the_socket(served: Served, chat: ChatServer) -> list[float]:
    """Return the seconds from the model's first word to its event at a page's socket, of each answer."""
    delays: list[float] = []
    with room_socket(page_of(served, "mira")) as socket:
        room = str(socket.ask("rooms")["rooms"][0]["id"])
        socket.ask("subscribe", rooms={room: 0})
        for number in range(_RUNS):
            heard = len(socket.heard("words"))
            socket.say(room, f"Number {number}.")
            while len(socket.heard("words")) == heard:
                time.sleep(0.0005)
            delays.append(time.time() - chat.first_words_at[-1])
            socket.wait(lambda number=number: len(socket.heard("ended")) > number)
    return delays


def in_a_browser(browser: Chromium, served: Served, chat: ChatServer) -> list[float]:
    """Return the seconds from the model's first word to its place in the page, of each answer."""
    with browser.window(served, "nora") as window:
        window.go("#/talk", until=".composer")
        window.page.evaluate(_WATCH)
        begun = len(chat.first_words_at)
        for number in range(_RUNS):
            say(window, f"Number {number}.")
            wait_for_answers(window, number + 1)
        shown = list(window.page.evaluate("window.shownAt"))
    return [at - said for at, said in zip(shown, chat.first_words_at[begun:], strict=True)]


def _line(title: str, delays: Sequence[float]) -> str:
    middle, slowest = statistics.median(delays) * 1000, max(delays) * 1000
    return f"{title:<12} median {middle:>6.1f} ms, slowest of {len(delays)} {slowest:>6.1f} ms\n"


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder) / "home") as served,
        chat_server() as chat,
        chromium() as browser,
    ):
        make_talkers(served, chat, "mira", "nora")
        chat.word_pause_s = 0.02
        sys.stdout.write(_line("socket", over_the_socket(served, chat)))
        sys.stdout.write(_line("in the page", in_a_browser(browser, served, chat)))


if __name__ == "__main__":
    main()
