"""Home in a real Chromium: each line opens what it is about, it is live, small, and text stays text."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from tests.chromium import Chromium, Window
from tests.integration.interfaces.serving import Served
from tests.squads import write_squad
from tests.taken_in import wait_until_taken_in

pytestmark = pytest.mark.chromium
XSS = "<img src=x onerror=window.hit=1>"


def lives(who: str, place: str, **more: object) -> dict[str, object]:
    fact = {"subject": who, "relation": "LIVES_AT", "object": place, **more}
    return {**fact, "text": f"{who} lives at {place}."}


@pytest.fixture(scope="module")
def wren(served: Served) -> Served:
    served.create("wren_home")
    served.link.call(
        "remember",
        "wren_home",
        {
            "content": "Wren lives at Haven.",
            "nodes": [{"name": "Wren", "kind": "Person"}, {"name": "Haven", "kind": "Place"}],
            "facts": [lives("Wren", "Haven")],
            "occurred_at": "2026-01-31T09:00:00Z",
            "session": "kitchen",
        },
    )
    served.link.call(
        "remember",
        "wren_home",
        {
            "content": "Wren has moved to the loft.",
            "nodes": [{"name": "loft", "kind": "Place"}],
            "facts": [lives("Wren", "loft", invalidates=["Wren LIVES_AT"])],
            "occurred_at": "2026-02-20T09:00:00Z",
            "session": "loft talk",
        },
    )
    wait_until_taken_in(served, "wren_home")
    (served.home / "entities" / "wren_home" / "identity.md").write_text("I keep **house**.")
    return served


@pytest.fixture
def window(browser: Chromium, wren: Served) -> Iterator[Window]:
    with browser.window(wren, "wren_home") as window:
        yield window
        window.is_well()


def _section(window: Window, name: str) -> str:
    return window.text(f"section[aria-labelledby=home-{name}]")


def test_home_is_what_the_page_begins_with_and_each_line_opens_what_it_is_about(
    window: Window,
) -> None:
    window.page.wait_for_selector("main[data-view=home] h1:has-text('wren_home')")
    window.rest()
    assert window.page.inner_text(".identity strong") == "house"
    assert "Wren lives at loft." in _section(window, "current")
    assert "until then: Wren lives at Haven." in _section(window, "changes")
    assert "All is well." in window.text()
    assert window.moderate() == []
    for link, title in (
        ("section[aria-label=People] a:has-text('Wren')", "Wren"),
        ("section[aria-labelledby=home-changes] a:has-text('Wren lives at Haven.')", "Haven"),
        ("section[aria-labelledby=home-talks] a:has-text('kitchen')", "Conversations"),
        ("a:has-text('All is well')", "Health"),
        ("a:has-text('What is known of')", "Wren Home"),
        ("a[aria-label='All turns']", "Conversations"),
        ("a[aria-label='All nodes']", "People and places"),
        ("a[aria-label='All facts']", "Time"),
        ("a[aria-label='All anchors']", "Anchors"),
    ):
        window.go("#/home", link)
        window.page.click(link)
        window.page.wait_for_selector("main:not([data-view=home]) h1")
        window.rest()
        assert title.lower() in window.text("h1").lower()


def test_what_waits_leads_to_what_failed_and_to_the_pairs_that_may_be_one(
    browser: Chromium, served: Served
) -> None:
    served.create("waits")
    nodes = [{"name": name, "kind": "Person"} for name in ("Priya Nair", "Dr. Priya Nair")]
    facts = [
        {
            "subject": one["name"],
            "relation": "LIKES",
            "object": "clay",
            "text": f"{one['name']} likes clay.",
        }
        for one in nodes
    ]
    served.link.call(
        "remember", "waits", {"content": "Priya likes clay.", "nodes": nodes, "facts": facts}
    )
    wait_until_taken_in(served, "waits")
    with browser.window(served, "waits") as window:
        window.go("#/home", "section[aria-labelledby=home-waiting]")
        assert "1 pair may be one and the same" in _section(window, "waiting")
        with sqlite3.connect(served.home / "entities" / "waits" / "data" / "memory.db") as db:
            db.execute("UPDATE jobs SET state = 'failed', error = 'the model was away'")
        db.close()
        window.page.wait_for_selector("text=1 turn could not be taken in")  # it is live
        assert "the model was away" in _section(window, "waiting")
        with sqlite3.connect(served.home / "entities" / "waits" / "data" / "memory.db") as db:
            db.execute("UPDATE jobs SET state = 'done', error = ''")
        db.close()
        window.page.click(
            "section[aria-labelledby=home-waiting] .lines a:has-text('Priya Nair and')"
        )
        window.page.wait_for_selector("[aria-label='What would come of it']")
        assert window.moderate() == []
        window.page.click("text=Keep the other name")
        window.rest()
        window.page.click("button:has-text('They are one')")
        window.page.wait_for_selector("[aria-label='Just done'] b:has-text('is one now')")
        window.page.wait_for_selector("text=No two names look like one")
        names = served.link.call("nodes_list", "waits", {"query": "Priya"})["data"]["nodes"]
        assert len(names) == 1
        window.page.click("[aria-label='Just done'] button:has-text('Undo')")
        window.page.wait_for_selector("text=Undone: it is as it was.")
        names = served.link.call("nodes_list", "waits", {"query": "Priya"})["data"]["nodes"]
        assert len(names) == 2
        window.is_well()


def test_shares_to_review_wait_on_the_home_of_the_reviewer_alone(
    browser: Chromium, served: Served
) -> None:
    write_squad(served.home, "crew")
    served.link.call("squad_create", "", {"name": "crew", "file": "crew"})
    fields = {
        "target_process": "handoff",
        "current_state": "An agent says in passing that something is ready.",
        "proposed_state": "An agent gives a task that says what is ready.",
        "risk_level": "low",
        "implementation_steps": ["Tell all members"],
    }
    analysis = {"type": "metric", "findings": "14 of 19 handoffs waited more than a day."}
    basis = {"type": "Analysis", "content": "Handoffs wait.", "confidence": 0.8, "fields": analysis}
    cited = served.link.call("memory_store", "crew_jochi", basis)["data"]["copy"]["id"]
    proposal = {
        "type": "WorkflowImprovement",
        "title": "Hand over in writing",
        "content": "Each handoff is a task.",
        "fields": fields,
        "cites": [cited],
    }
    kept = served.link.call("memory_store", "crew_jochi", proposal)["data"]["id"]
    served.link.call("proposal_submit", "crew_jochi", {"id": kept})
    with browser.window(served, "crew_kublai") as reviewer:
        reviewer.go("#/home", "section[aria-labelledby=home-waiting]")
        reviewer.page.click("section[aria-labelledby=home-waiting] a:has-text('1 share to review')")
        reviewer.page.wait_for_selector("main[data-view=squad] :text('Hand over in writing')")
        reviewer.is_well()
    with browser.window(served, "crew_jochi") as author:
        author.go("#/home", "h1")
        author.rest()
        assert "to review" not in author.text()
        author.is_well()


def test_operators_views_are_in_one_place_and_features_that_are_off_are_in_none(
    browser: Chromium, served: Served, window: Window
) -> None:
    titles = window.page.locator("nav a").all_inner_texts()
    window.rest()
    assert "Upkeep" in titles
    assert not {"Health", "Jobs", "Injected", "Isolation", "Graph", "Time"} & set(titles)
    window.page.click("nav a:has-text('Upkeep')")
    window.page.wait_for_selector("h1:has-text('Health')")
    for title in ("Jobs", "Injected", "Isolation"):
        window.page.click(f".tabs a:has-text('{title}')")
        window.page.wait_for_selector(f"h1:has-text('{title}')")
        assert window.page.inner_text("nav a[aria-current]") == "Upkeep"
    assert "Topics" in window.page.locator("nav a").all_inner_texts()
    served.link.call("feature_disable", "", {"name": "topics"})
    try:
        window.page.reload()
        window.page.wait_for_selector("nav a")
        window.rest()
        assert "Topics" not in window.page.locator("nav a").all_inner_texts()
    finally:
        served.link.call("feature_enable", "", {"name": "topics"})


def test_names_and_texts_of_home_stay_text_however_long(browser: Chromium, served: Served) -> None:
    served.create("hostile_home")
    long = f"{XSS} " + "w" * 300
    said = {
        "content": long,
        "session": XSS,
        "nodes": [{"name": long, "kind": "Person"}, {"name": f"{XSS} town", "kind": "Place"}],
        "facts": [
            {"subject": long, "relation": "IS", "object": f"{XSS} town", "text": long + "y" * 900}
        ],
    }
    served.link.call("remember", "hostile_home", said)
    wait_until_taken_in(served, "hostile_home")
    served.link.call("ambient_recall", "hostile_home", {"context": XSS, "session": XSS})
    (served.home / "entities" / "hostile_home" / "identity.md").write_text(
        f"{XSS}\n\n" + "q" * 9000
    )
    with browser.window(served, "hostile_home", viewport={"width": 360, "height": 740}) as window:
        window.go("#/home", "section[aria-label=People] li")
        assert window.page.evaluate("window.hit ?? 0") == 0
        assert window.page.query_selector("main img, main script, main style") is None
        assert XSS in window.text()
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert window.page.evaluate(wide) <= 0
        assert window.moderate() == []
        window.is_well()


def test_another_entitys_id_in_an_address_shows_nothing_of_it(
    browser: Chromium, wren: Served
) -> None:
    wren.create("stranger")
    theirs = wren.link.call("nodes_list", "wren_home", {"query": "Wren"})["data"]["nodes"][0]["id"]
    with browser.window(wren, "stranger") as window:
        for address in (f"#/item/{theirs}", f"#/merges?keep={theirs}&drop={theirs}"):
            window.go(address)
            assert "Wren" not in window.text()
        window.said[:] = [one for one in window.said if "404" not in one]
        window.is_well()
