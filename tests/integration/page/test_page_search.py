"""The search box in a real Chromium: by `/` from everywhere, while one types, by kind, of a time, and only one's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chromium import Chromium, Window
from tests.integration.interfaces.serving import Served
from tests.taken_in import wait_until_taken_in

pytestmark = pytest.mark.chromium
XSS = "<img src=x onerror=window.hit=1>"


@pytest.fixture(scope="module")
def noa(served: Served) -> Served:
    served.create("noa")
    served.link.call("pack_enable", "", {"entity": "noa", "pack": "constitution"})
    for day, content in (
        ("2026-01-31", "Wren bit into a cake with walnuts."),
        ("2026-03-10", "The walnuts are out of the kitchen."),
    ):
        served.link.call(
            "remember",
            "noa",
            {
                "content": content,
                "occurred_at": f"{day}T09:00:00Z",
                "session": f"talk {day}",
                "nodes": [{"name": "Walnut Street", "kind": "Place"}],
                "facts": [
                    {
                        "subject": "Wren",
                        "relation": "IS_ALLERGIC_TO",
                        "object": "walnuts",
                        "text": "Wren is allergic to walnuts.",
                        "valid_at": "2026-01-31",
                    }
                ],
            },
        )
    served.link.call(
        "anchor_save", "noa", {"title": "Baking", "text": "No walnuts in any cake of ours."}
    )
    fields = {"priority": "p2", "effort_hours": 1.5}
    task = {
        "kind": "Task",
        "title": "Order walnuts back",
        "summary": "Return them.",
        "fields": fields,
    }
    served.link.call("record_save", "noa", {"records": [task]})
    wait_until_taken_in(served, "noa")
    return served


@pytest.fixture
def window(browser: Chromium, noa: Served) -> Iterator[Window]:
    with browser.window(noa, "noa") as window:
        yield window
        window.is_well()


def _group(window: Window, title: str) -> str:
    return window.text(f"section[aria-label='{title}']")


def test_a_slash_goes_to_the_box_and_results_of_every_kind_come_while_one_types(
    window: Window,
) -> None:
    window.go("#/health", "table")
    window.page.keyboard.press("/")
    assert window.page.evaluate("document.activeElement.id") == "search"
    window.page.keyboard.type("walnu")  # a part of a word, and no Enter
    window.page.wait_for_selector("section[aria-label=Facts] mark")
    assert window.page.evaluate("document.activeElement.id") == "search"  # one types on
    assert "Walnut Street" in _group(window, "People, places and things")
    assert "Wren is allergic to walnuts." in _group(window, "Facts")
    assert "Wren bit into a cake with walnuts." in _group(window, "Turns")
    assert "Order walnuts back" in _group(window, "Records")
    assert "Baking" in _group(window, "Anchors")
    assert "q=walnu" in window.page.url
    assert window.moderate() == []
    window.page.keyboard.type("ts out")
    window.page.wait_for_function(
        """() => location.hash.includes('out')
            && !document.querySelector('section[aria-label=Turns]')?.innerText.includes('Wren bit')"""
    )
    assert "out of the kitchen" in _group(window, "Turns")
    window.page.keyboard.press("ArrowDown")
    assert window.page.evaluate("document.activeElement.matches('.result')")
    window.page.keyboard.press("Enter")
    window.page.wait_for_selector("main:not([data-view=search]) h1")
    window.page.go_back()
    window.page.wait_for_selector("main[data-view=search]")
    window.page.go_back()  # all that was typed is one step
    window.page.wait_for_selector("main[data-view=health]")


def test_a_slash_in_a_field_is_a_slash(window: Window) -> None:
    window.go("#/anchors/+", "textarea")
    window.page.focus("textarea")
    window.page.keyboard.type("1/2 cup")
    assert window.page.input_value("textarea") == "1/2 cup"
    window.page.evaluate("document.querySelector('textarea').form.reset()")
    window.page.once("dialog", lambda dialog: dialog.accept())


def test_a_time_leaves_out_what_is_not_of_it(window: Window) -> None:
    window.go("#/search?q=walnuts", "section[aria-label=Turns]")
    window.page.select_option("main select", "between")
    window.page.fill("input[name=since]", "2026-01-01")
    window.page.fill("input[name=until]", "2026-01-31")
    window.rest()
    assert "Wren bit into a cake" in _group(window, "Turns")
    assert "out of the kitchen" not in window.text()
    assert "since=2026-01-01" in window.page.url  # a search has an address of its own
    window.page.fill("input[name=since]", "2026-03-01")
    window.page.fill("input[name=until]", "2026-03-10")
    window.rest()
    assert "out of the kitchen" in _group(window, "Turns")
    assert "Wren bit into a cake" not in window.text()
    assert window.moderate() == []


def test_what_nothing_has_says_so_and_a_failure_is_no_empty_result(window: Window) -> None:
    window.go("#/search?q=zzxqy", "main [role=status]")
    assert "walnuts" not in window.text()
    window.page.route("**/v1/recall", lambda route: route.abort())
    window.go("#/search?q=walnuts", "main [role=alert]")
    window.page.unroute("**/v1/recall")
    window.said.clear()  # the browser notes the failure itself


def test_nothing_of_another_is_found_and_every_result_stays_text(
    browser: Chromium, noa: Served
) -> None:
    noa.create("own_search")
    long = f"{XSS} pudding " + "w" * 3000
    noa.link.call(
        "remember",
        "own_search",
        {
            "content": long,
            "session": XSS,
            "actor": XSS,
            "nodes": [{"name": f"{XSS} pudding", "kind": "Person", "summary": XSS}],
            "facts": [
                {
                    "subject": f"{XSS} pudding",
                    "relation": "IS",
                    "object": "sweet",
                    "text": long[:3500],
                }
            ],
        },
    )
    noa.link.call(
        "anchor_save", "own_search", {"title": f"{XSS} pudding", "text": long, "slug": "odd"}
    )
    wait_until_taken_in(noa, "own_search")
    with browser.window(noa, "own_search", viewport={"width": 360, "height": 740}) as window:
        window.go("#/search?q=pudding", ".result mark")
        for title in ("People, places and things", "Facts", "Turns", "Anchors"):
            assert XSS in _group(window, title), title
        for query in ("walnuts", "Wren", XSS, "%", "\\", '"', "a " * 400):
            window.page.fill("#search", query)
            window.page.keyboard.press("Enter")
            window.rest()
            assert "walnuts" not in window.text(), query
            assert "Wren" not in window.text(), query
            assert window.page.query_selector("main [role=alert]") is None, query
        assert window.page.evaluate("window.hit ?? 0") == 0
        assert window.page.query_selector("main img, main script, main style") is None
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert window.page.evaluate(wide) <= 0
        window.is_well()
