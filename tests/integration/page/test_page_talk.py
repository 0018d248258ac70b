"""S2-17, Talk in a browser: a first answer, streaming, stopping, trying again, editing, forgetting, and coming back."""

from __future__ import annotations

import os
import signal

import pytest

from tests.chat_server import ChatServer
from tests.chromium import Chromium
from tests.integration.interfaces.serving import Served
from tests.room_socket import let_answer
from tests.talk_page import make_talkers, say, wait_for_answers

pytestmark = [pytest.mark.chromium, pytest.mark.xdist_group("chromium")]


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
        window.page.wait_for_selector(".alert:has-text('nora: nobody answers')")
        let_answer(served, "nora", server="openai", model="nora", base_url=chat.base_url)
        say(window, "What do you know of Aurora?")
        assert "My boat is called Aurora." in wait_for_answers(window, 1)
        assert window.moderate() == []
        window.page.click("text=was given >> nth=0")
        window.page.click("summary:has-text('What nora wrote down')")
        window.rest()
        # A conversation is called by its day: a room's id is nobody's name.
        for address in ("#/home", "#/turns", "#/search?q=Aurora"):
            window.go(address)
            assert "Aurora" in window.text() or address == "#/home"
            assert "room-" not in window.text()
    turns = served.link.call("turns_list", "nora", {})["data"]["turns"]
    assert len([one for one in turns if one["turn"]["source"] == "haven"]) == 3


def test_words_stream_and_an_answer_is_stopped_tried_again_and_taken_back(
    served: Served, browser: Chromium, chat: ChatServer
) -> None:
    make_talkers(served, chat, "otto")
    chat.answers["otto"] = ["One two three four five.", "Six seven eight.", "Nine."]
    chat.mode = "held"
    with browser.window(served, "otto") as window:
        window.go("#/talk", until=".composer")
        say(window, "Count for me.")
        window.page.wait_for_selector(".coming >> text=One two three")
        window.page.click(".coming >> text=Stop")
        window.page.wait_for_selector(".message.theirs:not(.coming) >> text=Stopped")
        chat.mode = "good"
        window.page.click("text=Try again")
        window.page.wait_for_selector(".message.theirs:not(.coming) >> text=Six seven eight.")
        assert "One two three" not in window.text()
        window.page.click(".message.mine >> text=Edit")
        window.page.fill("textarea[name=text]", "Never mind.")
        window.page.keyboard.press("Enter")
        window.page.wait_for_selector(".message.theirs:not(.coming) >> text=Nine.")
        assert "Count for me." not in window.text()
        window.page.click(".message.mine >> text=Forget")
        window.page.click("text=Forget it")
        window.page.wait_for_selector(".message.mine", state="detached")
        chat.mode = "silent"
        say(window, "Think.")
        window.page.wait_for_selector(".coming >> text=otto is thinking")
        assert window.moderate() == []
        window.page.click(".coming >> text=Stop")
        window.page.wait_for_selector(".coming", state="detached")
        window.is_well()


def test_what_is_typed_while_the_server_is_away_is_kept_and_sent_once(
    served: Served, browser: Chromium, chat: ChatServer
) -> None:
    make_talkers(served, chat, "pia")
    with browser.window(served, "pia") as window:
        window.go("#/talk", until=".composer")
        say(window, "First.")
        wait_for_answers(window, 1)
        os.kill(served.run.pid, signal.SIGSTOP)
        try:
            say(window, "Said to nobody.")
            window.page.wait_for_selector(".sending")
            window.page.wait_for_selector(".state.silent, .state.away", timeout=5_000)
            window.page.fill("textarea[name=text]", "A draft")
        finally:
            os.kill(served.run.pid, signal.SIGCONT)
        assert "Said to nobody." in wait_for_answers(window, 2)
        window.page.reload()
        window.page.wait_for_selector(".message.theirs >> nth=1")
        assert window.page.input_value("textarea[name=text]") == "A draft"
        assert window.page.locator(".message.mine").count() == 2
    turns = served.link.call("turns_list", "pia", {})["data"]["turns"]
    said = [one["turn"]["content"] for one in turns]
    assert said.count("Said to nobody.") == 1


def test_the_owners_page_has_all_entities_and_a_room_of_several(
    served: Served, browser: Chromium, chat: ChatServer
) -> None:
    make_talkers(served, chat, "rita", "timo")
    chat.answers = {"rita": ["Rita here."], "timo": ["Timo here."]}
    with browser.window(served, "") as window:
        window.go("#/new", until="form")
        window.page.fill("input[name=title]", "Tea")
        window.page.check("input[value=rita]")
        window.page.check("input[value=timo]")
        window.page.click("text=Open the room")
        window.page.wait_for_selector(".composer")
        say(window, "Who is there?")
        wait_for_answers(window, 2)
        assert "Rita here." in window.text()
        assert window.moderate() == []
        window.page.click(".about > summary")
        window.page.click("text=Send timo out")
        window.page.wait_for_selector("text=Call timo in")
        say(window, "Only you hear this.")
        wait_for_answers(window, 3)
        assert window.moderate() == []
        window.page.click("nav a[href='#/entities']")
        window.page.wait_for_selector("text=Open rita's own page")
        assert window.moderate() == []
        window.page.click("text=Open rita's own page")
        window.page.wait_for_selector("nav a[href='#/talk']")
        window.is_well()
    heard = served.link.call("turns_list", "timo", {})["data"]["turns"]
    assert [one for one in heard if "Only you" in one["turn"]["content"]] == []


def test_what_is_done_on_the_owners_page_is_undone_there(
    served: Served, browser: Chromium, chat: ChatServer
) -> None:
    make_talkers(served, chat, "vigo", "wanda")
    chat.answers = {"vigo": ["Good."], "wanda": ["Fine."]}
    with browser.window(served, "") as window:
        window.go("#/new", until="form")
        window.page.check("input[value=vigo]")
        window.page.check("input[value=wanda]")
        window.page.click("text=Open the room")
        window.page.wait_for_selector(".composer")
        say(window, "I live in Bergen.")
        wait_for_answers(window, 2)
        # A fact of a message, marked in one memory and undone: what is shown follows that memory.
        window.page.click(".message.mine summary:has-text('What vigo wrote down')")
        wrong = "button[aria-label='Was not so: I live in Bergen.']"
        window.page.click(wrong)
        window.page.wait_for_selector(wrong, state="detached")
        window.page.click("[aria-label='Just done'] button:has-text('Undo')")
        window.page.wait_for_selector("text=Undone")
        window.page.wait_for_selector(wrong)
        # The message itself, forgotten in both and brought back.
        window.page.click(".message.mine >> text=Forget >> nth=-1")
        window.page.click("text=Forget it")
        window.page.wait_for_selector(".message.mine", state="detached")
        window.page.click("[aria-label='Just done'] button:has-text('Undo')")
        window.page.wait_for_selector(".message.mine :text('I live in Bergen.')")
        assert window.page.locator(".message").count() == 3
        assert window.moderate() == []
        window.pass_over_what_is_gone()
        window.is_well()
    for name in ("vigo", "wanda"):
        turns = served.link.call("turns_list", name, {})["data"]["turns"]
        assert [one for one in turns if one["turn"]["content"] == "I live in Bergen."]


def test_a_room_is_usable_on_a_phone_in_the_dark(
    served: Served, browser: Chromium, chat: ChatServer
) -> None:
    make_talkers(served, chat, "uma")
    phone = {"width": 390, "height": 800}
    with browser.window(
        served, "uma", color_scheme="dark", viewport=phone, reduced_motion="reduce"
    ) as window:
        window.go("#/talk", until=".composer")
        say(window, "A long word: " + "x" * 300)
        wait_for_answers(window, 1)
        assert window.moderate() == []
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert window.page.evaluate(wide) <= 0
