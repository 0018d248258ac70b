"""The page at 5,000 turns, 1,500 facts and a hub that 3,000 nodes join: what is listed, searched, paged and read."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.chromium import Chromium, Window
from tests.integration.interfaces.serving import Served, serving
from tests.large_memory import FACTS, HUB, HUB_NODES, TURNS, build_large_memory
from tests.page_load import load_view

pytestmark = [pytest.mark.chromium, pytest.mark.timeout(600)]

_MOST_BYTES = {"home": 80_000, "ask": 60_000, "turns": 70_000}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = tmp_path_factory.mktemp("large") / "home"
    home.mkdir(mode=0o700)
    with ThreadPoolExecutor(1) as beside:  # the browser's driver has this thread's loop
        beside.submit(asyncio.run, build_large_memory(home, "mira")).result()
    with serving(home) as served:
        yield served


@pytest.fixture
def window(browser: Chromium, large: Served) -> Iterator[Window]:
    with browser.window(large, "mira") as window:
        yield window
        window.is_well()


def _around(large: Served, **given: object) -> dict[str, list[dict[str, str]]]:
    return large.link.call("graph_around", "mira", dict(given))["data"]


def test_the_memory_has_the_size_that_is_spoken_of(window: Window) -> None:
    shown = window.text("dl.figures").split()
    assert dict(zip(shown[::2], shown[1::2], strict=True)) == {
        "turns": f"{TURNS:,}",
        "nodes": f"{1 + 1 + 200 + 40 + HUB_NODES:,}",
        "facts": f"{FACTS + HUB_NODES:,}",
        "anchors": "0",
    }


def test_turns_are_found_by_words_and_paged(window: Window) -> None:
    window.go("#/turns", ".turn")
    window.page.fill("#words", "TIDE 4242")
    window.page.keyboard.press("Enter")
    window.page.wait_for_function("() => document.querySelectorAll('.turn').length === 1")
    assert "Remark 4242: the tide turns at pier" in window.text(".turn")
    assert "words=TIDE+4242" in window.page.url
    window.go("#/turns?words=pier+7", ".turn")
    shown = window.page.locator(".turn")
    assert shown.count() == 30
    window.page.click("text=Show more turns")
    window.page.wait_for_function("() => document.querySelectorAll('.turn').length === 60")
    texts = shown.locator(".said").all_inner_texts()
    assert len(set(texts)) == 60
    assert all("pier" in text and "7" in text for text in texts)
    window.go("#/turns?words=walrus", "text=Nobody said all of these words")


def test_a_turn_has_what_was_said_before_and_after_it_and_its_facts(
    window: Window, large: Served
) -> None:
    found = large.link.call("turns_list", "mira", {"query": "Visits 600 written"})["data"]["turns"]
    window.go(f"#/item/{found[0]['turn']['id']}", "ol[aria-label='Said before and after'] .here")
    window.rest()
    near = window.page.locator("ol[aria-label='Said before and after'] > li")
    starts = [
        int(re.findall(r"\d+", text)[0]) for text in near.locator(".said.text").all_inner_texts()
    ]
    assert starts == [*range(450, 780, 30)]
    here = window.page.locator(".here")
    assert here.get_attribute("aria-current") == "true"
    assert "30 facts made of it" in here.inner_text()
    assert here.locator(".lines li").count() == 20
    assert "first 20 of 30" in here.inner_text()


def test_people_and_places_are_listed_by_kind_and_by_name(window: Window) -> None:
    window.go("#/names", "table")
    chips = window.page.locator(".chip")
    assert f"Boat {HUB_NODES:,}" in [" ".join(text.split()) for text in chips.all_inner_texts()]
    window.page.click(".chip:has-text('Person 200')")
    window.page.wait_for_selector(".chip[aria-current]:has-text('Person')")
    window.rest()
    rows = window.page.locator("tbody tr")
    assert rows.count() == 100
    window.page.click("text=Show more names")
    window.page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 200")
    names = rows.locator("th").all_inner_texts()
    assert names == sorted(names)
    assert len(set(names)) == 200
    assert window.page.locator("text=Show more names").count() == 0
    window.page.fill("#words", "town 3")
    window.page.click("button:has-text('Search')")
    window.page.wait_for_selector("text=Nobody and nothing of that kind")
    window.page.click(".chip:has-text('Place')")
    window.page.wait_for_selector("tbody tr:has-text('Town 39')")
    assert rows.count() == 11
    window.page.click("text=Town 39")
    window.page.wait_for_selector("h1:has-text('Town 39')")


def test_a_hub_of_three_thousand_is_reached_whole(window: Window, large: Served) -> None:
    seen: list[str] = []
    joined: set[str] = set()
    given: dict[str, object] = {"id": HUB, "limit": 999}
    while True:
        page = _around(large, **given)
        seen += [node["id"] for node in page["nodes"]]
        joined |= {fact["id"] for fact in page["facts"]}
        if not page.get("next_cursor"):
            break
        given["cursor"] = page["next_cursor"]
    assert len(seen) == len(set(seen)) == 1 + HUB_NODES
    assert len(joined) == HUB_NODES
    window.go(f"#/graph?node={seen[0]}", ".beside h2")
    window.page.wait_for_selector("text=61 nodes, 60 facts drawn")
    for nodes in (361, 661):
        window.page.click("text=Show more around it")
        window.page.wait_for_selector(f"text={nodes} nodes, {nodes - 1} facts drawn")
    window.page.click("text=Next to it (660)")
    window.page.click("text=Show more names")
    window.page.wait_for_function("() => document.querySelectorAll('.near li').length === 200")
    window.go(f"#/item/{seen[0]}", ".facts li")
    assert window.page.locator(".facts li").count() == 200
    window.page.click("text=Show more facts")
    window.page.wait_for_function("() => document.querySelectorAll('.facts li').length === 400")


def test_no_view_has_a_serious_or_moderate_finding(window: Window, large: Served) -> None:
    turn = large.link.call("turns_list", "mira", {"limit": 1, "query": "visits"})["data"]["turns"]
    [fact] = large.link.call("timeline", "mira", {"limit": 1})["data"]["facts"]
    addresses = [*window.views(), "#/ask?q=Who visited Town 7?", "#/turns?words=tide"]
    addresses += [f"#/item/{one}" for one in (turn[0]["turn"]["id"], fact["id"], fact["subject"])]
    for address in addresses:
        window.go(address)
        assert window.moderate() == [], address


@pytest.mark.parametrize("view", _MOST_BYTES)
def test_a_first_load_is_small_and_loading_again_takes_answers_alone(
    browser: Chromium, large: Served, view: str
) -> None:
    first, again = load_view(browser, large, "mira", view)
    assert first.bytes < _MOST_BYTES[view]
    assert again.bytes < first.bytes / 3
