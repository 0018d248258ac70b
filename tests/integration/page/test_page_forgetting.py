"""What the page says when somebody is forgotten: in words, with what still mentions them, and never what is not so."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chromium import Chromium
from tests.integration.interfaces.serving import Served

pytestmark = pytest.mark.chromium


def ask(served: Served, name: str, operation: str, **given: Any) -> Any:
    return served.link.call(operation, name, given)["data"]


def tell_of_wren(served: Served, name: str) -> str:
    """Tell a new memory of Wren in turns, facts and an anchor; return the id of the node."""
    served.create(name)
    for number in range(3):
        fact = {
            "subject": "Wren",
            "relation": "LIKES",
            "object": f"loaf {number}",
            "text": f"Wren likes loaf {number}.",
        }
        ask(served, name, "remember", content=f"Wren baked loaf {number}.", facts=[fact])
    told = {"subject": "Bob", "relation": "KNOWS", "object": "Rye", "text": "Bob met Wren in Rye."}
    ask(served, name, "remember", content="Bob told me so.", facts=[told])
    ask(served, name, "anchor_save", title="Party", text="Invite Wren and Bob.")
    [item] = ask(served, name, "get", ids=["Wren"])["items"]
    return str(item["id"])


def test_forgetting_a_person_shows_what_still_mentions_them_in_words(
    browser: Chromium, served: Served
) -> None:
    node = tell_of_wren(served, "ana")
    with browser.window(served, "ana") as window:
        window.go(f"#/item/{node}", "#forget")
        window.page.click("text=Show what would go")
        form = window.page.wait_for_selector("form[aria-label='What would go']")
        shown = form.inner_text()
        assert "This would go: 3 facts, 1 node" in shown
        assert "Wren likes loaf 2." in shown
        assert "Wren (Thing)" in shown
        assert "Take 3 turns along" in shown
        assert "Wren baked loaf 1." in shown
        assert "Take 1 fact along" in shown
        assert "Bob met Wren in Rye." in shown
        assert "Take 1 anchor along" in shown
        assert node[:8] not in shown
        assert window.moderate() == []
        window.page.click("text=Forget, with 30 days to restore it")
        done = window.page.wait_for_selector("section[aria-label='Just done']")
        said = done.inner_text()
        assert "Forgotten: 3 facts, 1 node." in said
        assert "3 turns, 1 fact, 1 anchor still mention Wren" in said
        assert "Bob met Wren in Rye." in said
        window.page.wait_for_selector("text=30 days left")
        assert "finds none" not in window.text()
        assert "Wren baked loaf 0." in str(ask(served, "ana", "recall", query="Wren"))
        window.page.click("summary:has-text('What still mentions it')")
        window.page.wait_for_selector("details[open] :text('still mention Wren')")
        assert window.moderate() == []
        window.page.click("section[aria-label='Just done'] >> text=Undo")
        window.page.wait_for_selector("text=Undone: it is as it was.")
        window.page.wait_for_selector("text=Nothing to restore")
        assert ask(served, "ana", "get", ids=[node])["items"][0]["name"] == "Wren"
        window.pass_over_what_is_gone()
        window.is_well()


def test_what_mentions_a_person_is_taken_along_where_that_is_ticked(
    browser: Chromium, served: Served
) -> None:
    node = tell_of_wren(served, "mira")
    with browser.window(served, "mira") as window:
        window.go(f"#/item/{node}", "#forget")
        window.page.click("text=Show what would go")
        window.page.check("input[name=along][value=turns]")
        window.page.wait_for_selector("h3:has-text('3 turns, 3 facts')")
        window.page.check("input[name=along][value=facts]")
        window.page.wait_for_selector("h3:has-text('3 turns, 4 facts')")
        window.page.check("input[name=along][value=anchors]")
        window.page.wait_for_selector("h3:has-text('1 anchor')")
        window.page.click("text=Forget, with 30 days to restore it")
        window.page.wait_for_selector("text=Nothing mentions Wren any more.")
        assert "Wren" not in str(ask(served, "mira", "recall", query="loaf")["channels"])
        assert ask(served, "mira", "anchor_list")["anchors"] == []
        assert window.moderate() == []
        window.pass_over_what_is_gone()
        window.is_well()
