"""S2-17, what is typed and not yet answered: kept over closed tabs and killed servers, sent once, and never off the record."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.chat_server import ChatServer
from tests.chromium import Chromium
from tests.integration.interfaces.serving import killed_at_the_end, serving
from tests.ports import lasting_port
from tests.talk_page import make_talkers, messages_of, say, wait_for_answers

pytestmark = [
    pytest.mark.chromium,
    pytest.mark.timeout(600),
    pytest.mark.xdist_group("chromium"),
]
_KEPT_HERE = "JSON.stringify(Object.entries(localStorage))"
_COMPOSER = "textarea[name=text]"


def test_what_tabs_keep_while_the_server_is_away_is_sent_once_though_they_are_closed(
    browser: Chromium, chat: ChatServer, tmp_path: Path
) -> None:
    home, port = tmp_path / "home", {"PPS_SERVER__PORT": str(lasting_port())}
    with browser.blank() as window:
        with killed_at_the_end(home, **port) as served:
            make_talkers(served, chat, "quin")
            window.open(str(served.link.call("page_open", "", {"name": "quin"})["data"]["url"]))
            window.go("#/talk", until=".composer")
            say(window, "First.")
            wait_for_answers(window, 1)
            other = window.page.context.new_page()
            other.goto(window.page.url)
            other.wait_for_selector(".message.theirs:not(.coming)")
            os.kill(served.run.pid, signal.SIGKILL)
            window.page.wait_for_selector(".state.away")
            other.wait_for_selector(".state.away")
        say(window, "From one tab.")
        window.page.wait_for_selector(".sending :text('From one tab.')")
        other.fill(_COMPOSER, "From the other tab.")
        other.press(_COMPOSER, "Enter")
        other.wait_for_selector(".sending :text('From the other tab.')")
        # Each shows what the other keeps.
        window.page.wait_for_selector(".sending :text('From the other tab.')")
        other.close()
        window.page.goto("about:blank")
        with serving(home, **port) as served:
            window.go("#/talk", until=".composer")
            wait_for_answers(window, 3)
            mine = [words for who, words, _ in messages_of(window) if who == "You"]
            assert mine == ["First.", "From one tab.", "From the other tab."]
            turns = served.link.call("turns_list", "quin", {"limit": 100})["data"]["turns"]
            said = [one["turn"]["content"] for one in turns if one["turn"]["role"] == "user"]
            assert sorted(said) == sorted(mine)


def test_what_is_typed_in_a_room_off_the_record_is_kept_in_no_browser_and_stays_off_it(
    browser: Chromium, chat: ChatServer, tmp_path: Path
) -> None:
    home, port = tmp_path / "home", {"PPS_SERVER__PORT": str(lasting_port())}
    with browser.blank() as window:
        with killed_at_the_end(home, **port) as served:
            make_talkers(served, chat, "rolf")
            window.open(str(served.link.call("page_open", "", {"name": "rolf"})["data"]["url"]))
            window.go("#/talk", until=".composer")
            window.page.click(".about > summary")
            window.page.check("text=nothing that is said is kept")
            window.page.wait_for_selector(".composer .tag:has-text('Off the record')")
            window.page.fill(_COMPOSER, "A draft of zeppelin93")
            assert "zeppelin93" not in window.page.evaluate(_KEPT_HERE)
            os.kill(served.run.pid, signal.SIGKILL)
            window.page.wait_for_selector(".state.away")
        say(window, "The surprise is a zeppelin93.")
        window.page.wait_for_selector(".sending")
        assert "zeppelin93" not in window.page.evaluate(_KEPT_HERE)
        with serving(home, **port) as served:
            # Whatever the room is by then: it was said off the record.
            assert "zeppelin93" in wait_for_answers(window, 1)
            tags = [marks for _, _, marks in messages_of(window)]
            assert tags == ["Off the record"] * 2
            assert served.link.call("turns_list", "rolf", {})["data"]["turns"] == []


def test_who_has_not_answered_is_let_answer_after_a_failure_and_a_killed_server(
    browser: Chromium, chat: ChatServer, tmp_path: Path
) -> None:
    """Of those who heard the last message; the one that has answered is not asked again."""
    home, port = tmp_path / "home", {"PPS_SERVER__PORT": str(lasting_port())}
    with browser.blank() as window:
        with killed_at_the_end(home, **port) as served:
            make_talkers(served, chat, "sara", "tore")
            chat.answers = {"sara": ["Sara here."]}
            chat.by_model["tore"] = "failing"
            window.open(str(served.link.call("haven_open", "", {})["data"]["url"]))
            window.go("#/new", until="form")
            window.page.check("input[value=sara]")
            window.page.check("input[value=tore]")
            window.page.click("text=Open the room")
            window.page.wait_for_selector(".composer")
            say(window, "Who is there?")
            window.page.wait_for_selector("[role=alert]:has-text('tore:')")
            window.page.wait_for_selector("text=Let tore answer too")
            assert window.page.locator("text=Let sara answer too").count() == 0
            chat.by_model["tore"] = "good"
            chat.answers["tore"] = ["Tore here."]
            window.page.click("text=Let tore answer too")
            assert wait_for_answers(window, 2) == "Tore here."
            assert window.page.locator("text=answer too").count() == 0
            assert window.moderate() == []
            # Acknowledged, and nobody has said a word of an answer as the server is killed.
            chat.by_model = {"sara": "silent", "tore": "silent"}
            say(window, "And now?")
            window.page.wait_for_selector(".coming >> text=sara is thinking")
            window.page.wait_for_selector(".message.sending", state="detached")
            os.kill(served.run.pid, signal.SIGKILL)
            window.page.wait_for_selector(".state.away")
        chat.by_model = {}
        chat.answers = {"sara": ["Sara again."], "tore": ["Tore again."]}
        with serving(home, **port):
            window.page.click("text=Ask for an answer")
            assert wait_for_answers(window, 4) == "Tore again."
            assert [words for _, words, _ in messages_of(window)] == [
                "Who is there?",
                "Sara here.",
                "Tore here.",
                "And now?",
                "Sara again.",
                "Tore again.",
            ]
