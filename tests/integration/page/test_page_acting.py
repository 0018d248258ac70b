"""S2-17, what a person changes on the page: records, anchors, what was forgotten, topics, a squad's pool."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from tests.chromium import Chromium, Window
from tests.integration.interfaces.serving import Served
from tests.squads import write_squad

pytestmark = pytest.mark.chromium
PHONE = {"color_scheme": "dark", "viewport": {"width": 390, "height": 800}}
XSS = "<img src=x onerror=window.hit=1>\"'><svg onload=window.hit=1></textarea><style>*{display:none}</style>"


def ask(served: Served, name: str, operation: str, **given: Any) -> Any:
    return served.link.call(operation, name, given)["data"]


@pytest.fixture(scope="module")
def iris(served: Served) -> Served:
    served.link.call("entity_create", "", {"name": "iris", "packs": ["constitution"]})
    goal = {"kind": "Goal", "title": "Run a marathon", "summary": "Before forty."}
    task = {
        "kind": "Task",
        "title": "Buy shoes",
        "summary": "That fit.",
        "fields": {"priority": "p1"},
    }
    ask(served, "iris", "record_save", records=[goal, task])
    return served


@pytest.fixture(scope="module")
def team(served: Served) -> Served:
    write_squad(served.home, "trio")
    served.link.call("squad_create", "", {"name": "trio", "file": "trio"})
    return served


@pytest.fixture
def window(browser: Chromium, iris: Served) -> Iterator[Window]:
    with browser.window(iris, "iris") as window:
        yield window
        window.is_well()


def test_a_record_is_made_by_a_form_of_its_packs_fields_and_moved_and_related_by_keyboard(
    window: Window, iris: Served
) -> None:
    window.go("#/records", ".kinds")
    window.page.click(".kinds a:has-text('Task')")
    window.page.click("text=New Task")
    window.page.fill("[name=title]", "Find a trail")
    window.page.fill("[name=summary]", "Soft ground, no cars.")
    window.page.select_option("[name=priority]", "p2")
    window.page.fill("[name=effort_hours]", "1.5")
    window.page.fill("[name=due_date]", "2026-05-01")
    window.page.fill("[name=tags]", "run\noutside")
    window.page.click("text=Keep this Task")
    window.page.wait_for_selector("h1:has-text('Find a trail')")
    [kept] = [
        one
        for one in ask(iris, "iris", "record_list", kinds=["Task"])["items"]
        if one["title"] == "Find a trail"
    ]
    assert kept["fields"] == {"priority": "p2", "effort_hours": 1.5, "due_date": "2026-05-01"}
    assert (kept["tags"], kept["state"], kept["id"] in window.page.url) == (
        ["run", "outside"],
        "todo",
        True,
    )
    window.page.select_option("[name=type]", "SERVES")
    window.page.fill("[name=target]", "Run a marathon")
    window.page.keyboard.press("Enter")
    window.page.wait_for_selector(".lines:has-text('SERVES') a:has-text('Run a marathon')")
    assert window.moderate() == []
    window.go("#/records/Task", ".board")
    window.page.focus("[aria-label='Move Find a trail to in progress']")
    window.page.keyboard.press("Enter")
    window.page.keyboard.type("Spring is here.")
    window.page.keyboard.press("Enter")
    window.page.wait_for_selector("section[aria-label='in progress'] >> text=Find a trail")
    window.page.wait_for_selector("[role=status]:has-text('Find a trail is in progress now.')")
    [move] = ask(iris, "iris", "record_get", ids=[kept["id"]])["transitions"]
    assert (move["after"], move["why"]) == ("in_progress", "Spring is here.")
    assert window.moderate() == []
    window.go("#/records/Task?view=table&order=-title", "tr:first-child a:has-text('Find a trail')")
    assert [one.inner_text() for one in window.page.query_selector_all("tbody th a")] == [
        "Find a trail",
        "Buy shoes",
    ]


def test_of_two_who_change_a_record_the_second_is_shown_what_stands_before_it_is_replaced(
    window: Window, iris: Served
) -> None:
    goal = ask(iris, "iris", "record_list", kinds=["Goal"])["items"][0]
    window.go(f"#/records/Goal/{goal['id']}", "text=Edit")
    window.page.click("text=Edit")
    window.page.fill("[name=summary]", "Before fifty.")
    ask(iris, "iris", "record_save", records=[{"id": goal["id"], "summary": "Before thirty."}])
    window.page.click("text=Save")
    window.page.wait_for_selector("text=It was changed meanwhile")
    assert window.text("del").strip() == "thirty."
    assert window.text("ins").strip() == "fifty."
    assert window.moderate() == []
    window.page.click("text=Keep mine")
    window.page.wait_for_selector("text=version 3")
    assert (
        ask(iris, "iris", "record_get", ids=[goal["id"]])["records"][0]["summary"]
        == "Before fifty."
    )
    window.said.clear()  # the browser notes the 409 itself


def test_an_anchor_is_written_edited_against_a_conflict_forgotten_and_restored(
    browser: Chromium, iris: Served
) -> None:
    iris.create("ana")
    with browser.window(iris, "ana", **PHONE) as window:
        window.go("#/records", "text=pps pack enable ana")  # without packs: how to get one
        window.go("#/forgotten", "text=Nothing to restore")
        window.go("#/anchors/%2B", "form")
        window.page.fill("[name=title]", "Bread")
        window.page.fill("[name=text]", "Rye, water, salt.")
        window.page.click("text=Keep it")
        window.page.wait_for_selector("h1:has-text('Bread')")
        window.page.click("text=Edit")
        window.page.fill("[name=text]", "Rye, water, salt, time.")
        ask(iris, "ana", "anchor_save", title="Bread", text="Oats, water, salt.", slug="bread")
        window.page.click("text=Save")
        window.page.wait_for_selector("text=It was changed meanwhile")
        assert "Oats," in window.text("del >> nth=0")
        assert window.moderate() == []
        window.page.click("text=Take what stands")
        assert window.page.input_value("[name=text]") == "Oats, water, salt."
        window.page.click("text=Leave it as it is")
        window.page.click("text=Show what would go")
        window.page.fill("[name=reason]", "Moot.")
        window.page.click("text=Forget, with 30 days to restore it")
        window.page.wait_for_selector("text=30 days left")
        assert "Moot." in window.text()
        assert ask(iris, "ana", "anchor_list")["anchors"] == []
        assert window.moderate() == []
        window.page.click("button:has-text('Restore')")
        window.page.wait_for_selector("text=It is back, as it was")
        assert [one["slug"] for one in ask(iris, "ana", "anchor_list")["anchors"]] == ["bread"]
        window.said.clear()  # the browser notes the 409 itself
        assert window.page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_graph_shows_a_moment_and_topics_are_looked_for_while_one_watches(
    browser: Chromium, iris: Served
) -> None:
    iris.create("mira")
    moved = {
        "subject": "Wren",
        "relation": "LIVES_AT",
        "object": "loft",
        "text": "Wren lives in the loft.",
    }
    lived = {
        **moved,
        "object": "Haven",
        "text": "Wren lives at Haven.",
        "valid_at": "2026-01-01T00:00:00Z",
    }
    ask(iris, "mira", "remember", content="She lives at Haven.", facts=[lived])
    moved |= {"valid_at": "2026-03-01T00:00:00Z", "invalidates": ["Wren LIVES_AT"]}
    ask(iris, "mira", "remember", content="She has moved.", facts=[moved])
    for at in range(7):
        said = (
            "I reboot the router as the office wifi breaks"
            if at % 2
            else "The rye dough of the loaf rests in the oven"
        )
        ask(
            iris,
            "mira",
            "remember",
            content=f"{said}, {at}.",
            wait="done" if at == 6 else "journal",
        )
    with browser.window(iris, "mira") as window:
        window.go("#/graph?at=2026-02-01", ".beside .facts li")
        assert "Wren lives at Haven." in window.text(".beside .facts")
        assert "loft" not in window.text(".beside")
        window.page.wait_for_selector(".beside .turns:has-text('She lives at Haven.')")
        window.page.click("a:has-text('Now')")
        window.page.wait_for_selector(".beside .facts:has-text('Wren lives in the loft.')")
        window.go("#/topics", "text=Topics were not looked for yet")
        window.page.click("text=Look for topics now")
        window.page.click("svg.topics a:has-text('dough')")
        window.page.wait_for_selector("#topic ~ ul li:has-text('rests in the oven')")
        window.page.wait_for_selector("text=nothing to compare with")
        assert window.moderate() == []
        topic = {
            "id": "t",
            "name": XSS,
            "terms": [XSS],
            "named": [XSS],
            "size": 3,
            "confidence": 0.5,
            "age_h": 1,
        }
        members = [
            one["id"]
            for one in ask(iris, "mira", "recall", query="rye")["channels"]["episodes"]["hits"]
        ]
        made = {
            "topics": [{**topic, "phase": "stable", "members": members}],
            "consolidate": False,
            "at": "2026-11-25",
        }
        window.page.route("**/v1/get_topic_portfolio", lambda route: route.fulfill(json=made))
        window.go("#/topics", "svg.topics a")
        window.page.focus("svg.topics a")
        window.page.keyboard.press("Enter")
        window.page.wait_for_selector("#topic ~ ul li")
        assert window.page.evaluate("window.hit ?? 0") == 0
        assert window.moderate() == []
        window.is_well()


def test_a_member_sees_the_pool_reviews_and_shares_and_nothing_of_anothers_own(
    browser: Chromium, team: Served
) -> None:
    secret = {
        "content": "Mongke's canary-4711 stays at home.",
        "type": "Belief",
        "confidence": 0.9,
        "private": True,
    }
    ask(team, "trio_mongke", "memory_store", **secret)
    fields = {
        "target_process": "handoff",
        "current_state": "By word.",
        "proposed_state": "By letter.",
    }
    made = {
        "type": "WorkflowImprovement",
        "title": "Write it down",
        "content": "Hand over in writing.",
    }
    made = ask(team, "trio_mongke", "memory_store", **made, fields=fields)
    ask(team, "trio_mongke", "proposal_submit", id=made["id"])
    said = {"subject": "Ana", "relation": "LIKES", "object": "tea", "text": "Ana likes tea."}
    ask(team, "trio_jochi", "remember", content="Ana said so.", facts=[said])
    with (
        browser.window(team, "trio_kublai") as kublai,
        browser.window(team, "trio_jochi", **PHONE) as jochi,
    ):
        kublai.go("#/squad/inbox", "button:has-text('Seen')")
        assert badges(kublai) == {
            "nav": "2 waiting",
            "inbox": "1 waiting",
            "approvals": "1 waiting",
        }
        assert badges(jochi) == {}  # what waits for one is nobody else's to see
        kublai.page.click("button:has-text('Seen')")
        kublai.page.wait_for_selector("text=Nothing new")
        kublai.page.wait_for_selector(".tabs a:has-text('Inbox') .badge", state="detached")
        assert badges(kublai) == {"nav": "1 waiting", "approvals": "1 waiting"}
        kublai.go("#/squad/approvals", "ins")
        assert (kublai.text("del").strip(), kublai.text("ins").strip()) == (
            "word.",
            "letter.",
        )
        assert kublai.moderate() == []
        kublai.page.fill("[name=notes]", "Good.")
        kublai.page.click("button:text-is('Approve')")
        kublai.page.wait_for_selector("text=Nothing waits")
        kublai.page.wait_for_selector(".badge", state="detached")
        fact = ask(team, "trio_jochi", "timeline")["facts"][0]
        jochi.go(f"#/item/{fact['id']}", "#share")
        jochi.page.click("text=Show what the squad would read")
        jochi.page.wait_for_selector("text=Share this fact")
        assert "Ana said so." not in jochi.text("section[aria-labelledby=share]")
        assert jochi.moderate() == []
        assert "Ana likes tea." not in str(ask(team, "trio_kublai", "squad_pool"))
        jochi.page.click("text=Share this fact")
        jochi.page.wait_for_selector("text=All members can read it now")
        kublai.go("#/squad", "text=Ana likes tea.")
        kublai.page.click("li:has-text('Hand over in writing.') >> text=All of it")
        kublai.page.wait_for_selector("dd:has-text('By letter.')")
        assert kublai.moderate() == []
        jochi.go("#/squad/approvals", "text=Nothing waits")
        jochi.go("#/squad", "text=Take back …")
        assert jochi.moderate() == []
        jochi.page.click("text=Take back …")
        jochi.page.click("text=Take it back")
        jochi.page.wait_for_selector("text=Ana likes tea.", state="detached")
        for window in (kublai, jochi):  # of the third's own nothing, on any of the views
            for view in (
                "ask?q=canary",
                "squad",
                "squad/inbox",
                "squad/approvals",
                "records/Belief",
                "time",
                "graph",
            ):
                window.go(f"#/{view}")
                assert "4711" not in window.text(), view
            window.is_well()


def badges(window: Window) -> dict[str, str]:
    """Return what the badges say: of the navigation, and of the squad's tabs where they are seen."""
    window.rest()
    found = {}
    for link in window.page.locator("a:has(> .badge)").all():
        address = link.get_attribute("href")
        name = "nav" if address == "#/squad" else address.rpartition("/")[2]
        found[name] = link.locator(".badge").inner_text().replace("\n", " ")
    return found


def test_who_is_of_no_squad_has_no_such_view(window: Window) -> None:
    window.page.wait_for_selector("nav a:has-text('Upkeep')")
    assert window.page.query_selector("nav a:has-text('Squad')") is None
    window.go("#/squad", "text=Of no squad")


def test_no_field_of_a_record_an_anchor_a_pool_or_a_bin_is_ever_more_than_text(
    browser: Chromium, team: Served
) -> None:
    who = "trio_mongke"
    fields = {"domain": XSS[:90], "description": XSS, "source": "user"}
    concept = {"kind": "Concept", "title": XSS, "summary": XSS, "fields": fields, "tags": ["x"]}
    other = {
        "kind": "Research",
        "title": f"r {XSS}",
        "summary": XSS,
        "fields": {"topic": XSS, "findings": XSS},
    }
    other["relations"] = [{"type": "DISCOVERED", "target": XSS}]
    kept = ask(team, who, "record_save", records=[concept, other])["records"][0]
    ask(team, who, "record_save", records=[{"id": kept["id"], "summary": f"Now {XSS}"}])
    ask(team, who, "memory_share", id=kept["id"])
    sent = {
        "target_process": XSS,
        "current_state": XSS,
        "proposed_state": f"{XSS} now",
        "metrics_before": {XSS: XSS},
    }
    made = {"type": "WorkflowImprovement", "title": XSS, "content": f"{XSS} it", "fields": sent}
    ask(team, who, "proposal_submit", id=ask(team, who, "memory_store", **made)["id"])
    ask(team, who, "anchor_save", title=XSS, text=XSS, slug="hostile")
    ask(team, who, "anchor_save", title=XSS, text=XSS, slug="gone")
    ask(team, who, "forget", ids=["gone"], dry_run=False, soft=True, reason=XSS)
    of = quote(kept["id"])
    views = [
        f"records/Concept/{of}",
        "records/Research",
        "records/Research?view=table",
        f"graph?node={of}",
    ]
    views += ["anchors", "anchors/hostile", "forgotten", "squad", "squad/inbox", "squad/approvals"]
    views += [f"{one}/{quote(XSS, safe='')}" for one in ("records", "topics", "anchors", "squad")]
    views += [f"records/Concept?order={quote(XSS)}", f"squad?type={quote(XSS)}"]
    for entity, shown in ((who, views), ("trio_kublai", [one for one in views if "squad" in one])):
        with browser.window(team, entity) as window:
            for view in shown:
                window.go(f"#/{view}")
                assert window.page.evaluate("window.hit ?? 0") == 0, view
                assert (
                    window.page.query_selector("main img, main iframe, main script, main style")
                    is None
                ), view
            window.go("#/squad", ".card b:has-text('onerror')")
            assert XSS in window.text()
            window.said[:] = [one for one in window.said if "40" not in one]  # of what is none
            window.is_well()
