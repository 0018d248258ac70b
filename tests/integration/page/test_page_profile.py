"""Profiles and conversations in a real Chromium: read without ids, corrected, forgotten, merged, undone in place."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.chromium import Chromium, Window
from tests.integration.interfaces.serving import Served
from tests.taken_in import wait_until_taken_in

pytestmark = pytest.mark.chromium
XSS = "<img src=x onerror=window.hit=1>"
_IS_ID = re.compile(r"\b[0-9a-f]{8}\b")


def fact(relation: str, value: str, text: str, **more: object) -> dict[str, object]:
    return {"subject": "Wren", "relation": relation, "object": value, "text": text, **more}


@pytest.fixture(scope="module")
def rhea(served: Served) -> Served:
    served.create("rhea")
    nodes = [
        {"name": "Wren", "kind": "Person", "summary": "nine years old"},
        {"name": "Wren Hale", "kind": "Person"},
    ]
    turns: list[dict[str, object]] = [
        {
            "content": "Wren lives at Haven and likes cocoa.",
            "facts": [
                fact("LIVES_AT", "Haven", "Wren lives at Haven."),
                fact("LIKES", "cocoa", "Wren likes cocoa."),
            ],
            "nodes": nodes,
            "occurred_at": "2026-01-31T09:00:00Z",
            "session": "kitchen",
            "actor": "Jonas",
        },
        {
            "content": "Wren has moved to the loft.",
            "facts": [
                fact("LIVES_AT", "loft", "Wren lives at loft.", invalidates=["Wren LIVES_AT"])
            ],
            "occurred_at": "2026-02-20T09:00:00Z",
            "session": "kitchen",
            "actor": "Ruth",
        },
        {
            "content": "Wren is allergic to walnuts.",
            "facts": [fact("IS_ALLERGIC_TO", "walnuts", "Wren is allergic to walnuts.")],
            "occurred_at": "2026-02-21T09:00:00Z",
            "session": "11111111-2222-4333-8444-555555555555",
        },
    ]
    for turn in turns:
        served.link.call("remember", "rhea", turn)
    wait_until_taken_in(served, "rhea")
    served.link.call(
        "anchor_save", "rhea", {"title": "The red pouch", "text": "Wren's EpiPen is in it."}
    )
    served.link.call("anchor_save", "rhea", {"title": "Tides", "text": "High at noon."})
    return served


@pytest.fixture
def window(browser: Chromium, rhea: Served) -> Iterator[Window]:
    with browser.window(rhea, "rhea") as window:
        yield window
        window.is_well()


def _open(window: Window, served: Served, name: str, until: str = ".profile-fact") -> None:
    nodes = served.link.call("nodes_list", "rhea", {"query": name})["data"]["nodes"]
    node = next(one["id"] for one in nodes if one["name"] == name)
    window.go(f"#/item/{node}", until)


def _sentences(served: Served) -> dict[str, bool]:
    """Return sentence → whether the fact has ended."""
    facts = served.link.call("timeline", "rhea", {"limit": 100})["data"]["facts"]
    return {one["text"]: "invalid_at" in one for one in facts}


def test_a_profile_has_what_holds_by_topic_what_held_and_who_spoke_of_it_without_ids(
    window: Window, rhea: Served
) -> None:
    _open(window, rhea, "Wren")
    assert "Wren lives at loft." in window.text("section[aria-label='Home and places']")
    assert "Wren likes cocoa." in window.text("section[aria-label='Likes and habits']")
    assert "Wren is allergic to walnuts." in window.text("section[aria-label=Health]")
    assert "Wren lives at Haven." in window.text("section[aria-labelledby=before]")
    assert "Wren lives at Haven." not in window.text("section[aria-labelledby=now]")
    assert "The red pouch" in window.text("section[aria-labelledby=of-anchors]")
    assert "Tides" not in window.text("section[aria-labelledby=of-anchors]")
    assert "Wren has moved to the loft." in window.text("section[aria-labelledby=spoken]")
    assert _IS_ID.search(window.text()) is None
    assert window.moderate() == []


def test_graph_and_time_open_from_a_profile_and_from_a_fact_and_show_names(
    window: Window, rhea: Served
) -> None:
    _open(window, rhea, "Wren")
    fact = str(window.page.get_attribute(".profile-fact a.item", "href"))
    profile = window.page.url.rpartition("#")[2]
    for address in (f"#{profile}", fact):
        window.go(address)
        window.page.click("main >> text=In time")
        window.page.wait_for_selector("main[data-view=time] .changes")
        # The node that it is about is called by its name, and stays that very node when it is sent again.
        window.page.wait_for_function("document.querySelector('#about').value === 'Wren'")
        window.page.click("main form.asking button")
        window.rest()
        assert "about=" in window.page.url
        assert "about=Wren" not in window.page.url
        assert "Wren lives at loft." in window.text()
        window.go(address)
        window.page.click("main >> text=In the graph")
        window.page.wait_for_selector("main[data-view=graph] h1")
        window.rest()
        assert "Wren" in window.text()


def test_a_fact_is_corrected_over_and_forgotten_where_it_stands_and_all_of_it_undone(
    window: Window, rhea: Served
) -> None:
    _open(window, rhea, "Wren")
    before = _sentences(rhea)
    window.page.click("button[aria-label='Wrong: Wren likes cocoa.']")
    window.page.fill("input[name=object]", "ginger tea")
    window.page.fill("textarea[name=text]", "Wren likes ginger tea.")
    assert window.moderate() == []
    window.page.click("text=Keep that")
    window.page.wait_for_selector(".profile-fact:has-text('Wren likes ginger tea.')")
    assert _sentences(rhea)["Wren likes cocoa."]
    window.page.click("[aria-label='Just done'] button:has-text('Undo')")
    window.page.wait_for_selector("text=Undone")
    window.page.wait_for_selector(".profile-fact:has-text('ginger tea')", state="detached")

    window.page.click("button[aria-label='Over: Wren is allergic to walnuts.']")
    window.page.fill("input[name=since]", "2026-03-01")
    window.page.click("text=Keep that")
    window.page.wait_for_selector("section[aria-labelledby=before] :text('walnuts')")
    window.page.click("[aria-label='Just done'] button:has-text('Undo')")
    window.page.wait_for_selector("section[aria-label=Health] :text('walnuts')")

    window.page.click("button[aria-label='Forget: Wren likes cocoa.']")
    window.page.click("li section[aria-label=Forget] button:has-text('Show what would go')")
    window.page.wait_for_selector("text=This would go")
    window.page.click("button:has-text('Forget, with 30 days')")
    window.page.wait_for_selector(".profile-fact:has-text('cocoa')", state="detached")
    assert window.page.inner_text("h1") == "Wren"  # still here
    window.page.click("[aria-label='Just done'] button:has-text('Undo')")
    window.page.wait_for_selector(".profile-fact:has-text('cocoa')")
    assert _sentences(rhea) == before


def test_two_are_made_one_from_a_profile_and_two_again(window: Window, rhea: Served) -> None:
    _open(window, rhea, "Wren")
    window.page.click("summary:has-text('Is it the same as another?')")
    window.page.fill("details input[name=name]", "Hale")
    window.page.keyboard.press("Enter")
    window.page.click("button[aria-label='Same as Wren Hale']")
    window.page.click("button:has-text('They are one')")
    window.page.wait_for_selector("text=Wren is one now.")
    window.page.wait_for_selector("main :text('Also Wren Hale')")
    window.page.click("[aria-label='Just done'] button:has-text('Undo')")
    window.page.wait_for_selector("main :text('Also Wren Hale')", state="detached")
    names = rhea.link.call("nodes_list", "rhea", {"query": "Wren"})["data"]["nodes"]
    assert {one["name"] for one in names} == {"Wren", "Wren Hale"}


def test_a_conversation_is_read_in_order_by_days_and_speakers_with_what_was_made_beside(
    window: Window,
) -> None:
    window.go("#/turns?session=kitchen", ".turn")
    texts = window.page.locator(".turn > .said").all_inner_texts()
    assert texts == ["Wren lives at Haven and likes cocoa.", "Wren has moved to the loft."]
    days = window.page.locator(".day h2").all_inner_texts()
    assert [day.replace(",", "") for day in days] == [
        "Saturday 31 January 2026",
        "Friday 20 February 2026",
    ]
    assert window.page.locator(".speaker b").all_inner_texts() == ["Jonas", "Ruth"]
    assert "Wren likes cocoa." in window.text(".turn >> nth=0 >> .made")
    assert _IS_ID.search(window.text()) is None
    said, made = (
        window.page.locator(f".turn >> nth=0 >> {part}").bounding_box()
        for part in (".speech", ".made")
    )
    assert made["x"] > said["x"] + said["width"]
    window.page.fill("#words", "LOFT moved")
    window.page.keyboard.press("Enter")
    window.page.wait_for_selector(".turn mark")
    assert window.page.locator("mark").all_inner_texts() == ["moved", "loft"]
    window.go("#/turns?words=walnuts", ".turn mark")
    assert "its conversation" in window.text(".speaker")  # its name is an id
    assert _IS_ID.search(window.text(".talk")) is None
    assert window.moderate() == []


def test_matches_are_marked_whatever_their_letters_become_and_far_into_a_long_text(
    browser: Chromium, served: Served
) -> None:
    served.create("marks")
    for text in (
        "Der Fluß steigt.",
        f"{'word ' * 300} the İstanbul 🐝 harbour {'tail ' * 20}",
        XSS,
    ):
        served.link.call("remember", "marks", {"content": text})
    wait_until_taken_in(served, "marks")
    with browser.window(served, "marks") as window:
        for words, marked in (
            ("FLUSS", ["Fluß"]),
            ("harbour", ["harbour"]),
            ("🐝", ["🐝"]),
            ("onerror img", ["img", "onerror"]),
        ):
            window.go(f"#/turns?words={words}", ".turn mark")
            assert window.page.locator("mark").all_inner_texts() == marked
            assert window.page.locator("mark").first.is_visible()
        assert window.page.evaluate("window.hit ?? 0") == 0
        assert window.page.query_selector("main img") is None
        window.is_well()


def test_names_and_texts_of_a_profile_stay_text_however_long(
    browser: Chromium, served: Served
) -> None:
    served.create("odd")
    name = f"{XSS} " + "w" * 300
    said = {
        "content": f"{XSS} " + "x" * 5000,
        "actor": XSS,
        "session": XSS,
        "nodes": [{"name": name, "kind": "Person", "aliases": [XSS], "summary": XSS * 20}],
        "facts": [
            {"subject": name, "relation": "LIKES", "object": XSS, "text": f"{name} {'y' * 3000}"}
        ],
    }
    served.link.call("remember", "odd", said)
    served.link.call("anchor_save", "odd", {"title": XSS, "text": XSS, "slug": "odd"})
    wait_until_taken_in(served, "odd")
    [known] = served.link.call("timeline", "odd", {})["data"]["facts"]
    with browser.window(served, "odd", viewport={"width": 360, "height": 740}) as window:
        window.go(f"#/item/{known['subject']}", ".profile-fact")
        window.page.click("button[aria-label^='Wrong: ']")
        window.rest()
        assert window.page.evaluate("window.hit ?? 0") == 0
        assert window.page.query_selector("main img, main script, main style") is None
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert window.page.evaluate(wide) <= 0
        assert window.moderate() == []
        window.is_well()


def test_a_profile_of_another_entitys_node_is_nobodys(browser: Chromium, rhea: Served) -> None:
    rhea.create("outsider")
    nodes = rhea.link.call("nodes_list", "rhea", {"query": "Wren"})["data"]["nodes"]
    with browser.window(rhea, "outsider") as window:
        for node in nodes:
            window.go(f"#/item/{node['id']}", "text=There is nothing of that id")
            window.go(f"#/turns?about={node['id']}")
            assert "Wren" not in window.text()
        window.said[:] = [one for one in window.said if "404" not in one]
        window.is_well()
