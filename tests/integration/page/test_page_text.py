"""How the page shows stored text: Markdown without HTML, in the direction of its script, on the entity's clock."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pps.recall.perspectives import PERSPECTIVES
from tests.chromium import Chromium, Window
from tests.integration.interfaces.serving import Served

pytestmark = pytest.mark.chromium

_STATIC = Path(__file__).parents[3] / "pps/interfaces/http/page/static"
_CANARY = "https://canary.invalid"
_NOTE = f"""# A plan

Some *soft* and **strong** words, `let x = 1;`, see [the docs]({_CANARY}/docs).

- first
- second
  1. inner
  2. other

> quoted

```js
const tag = "<b>not bold</b>";
```

| who | what |
| --- | --- |
| Ana | sings |

snake_case_name and 3*4*5 stay
on two lines
"""
_HOSTILE = f"""<script>window.hit = 1</script> <img src="{_CANARY}/pixel.png" onerror="window.hit = 1">

![pixel]({_CANARY}/beacon.png) [press](javascript:window.hit=1) [x](data:text/html,<script>window.hit=1</script>)
[in](#/forgotten) <javascript:window.hit=1> <iframe src="{_CANARY}"></iframe> [v](vbscript:hit) [b](blob:hit)
<style>* {{ display: none }}</style> [e](https://user:pw@canary.invalid/%22onclick=%22window.hit=1) <svg onload=window.hit=1>
**<u onmouseover=window.hit=1>bold</u>** `<img src=x onerror=window.hit=1>` [<b>](java\tscript:window.hit=1)
"""
_NESTED = {
    "quotes": ">" * 60_000,
    "lists": "\n".join(" " * min(2 * depth, 30) + "- x" for depth in range(2_000)),
    "brackets": "[](" * 20_000,
    "emphasis": "**a *b " * 8_000 + "x* y** " * 1_000,
    "ticks": " ".join("`" * length for length in range(1, 340)),
    "addresses": "https://[" * 7_000,
    "tables": ("|" * 240 + "\n" + "|-" * 240 + "|\n") * 80,
}
_ARABIC = "تعيش مريم في القاهرة"


@pytest.fixture(scope="module")
def rex(served: Served) -> Served:
    served.link.call("entity_create", "", {"name": "rex", "time_zone": "Asia/Kathmandu"})
    for title, text in (("Plan", _NOTE), ("Hostile", _HOSTILE)):
        served.link.call("remember", "rex", {"content": text, "session": title})
        served.link.call("anchor_save", "rex", {"title": title, "text": text})
    node = {
        "name": "Rex",
        "kind": "Dog",
        "summary": "**Good** boy",
        "attributes": {"born": "2026-03-10T18:20:00Z"},
    }
    served.link.call("remember", "rex", {"content": "Rex barks.", "nodes": [node]})
    return served


@pytest.fixture
def window(browser: Chromium, rex: Served) -> Iterator[Window]:
    with browser.window(rex, "rex") as window:
        yield window
        window.is_well()


def test_markdown_and_code_are_shown_as_they_are_meant(window: Window) -> None:
    for address in ("#/turns?session=Plan", "#/anchors/plan"):
        window.go(address, ".said.text .heading")
        shown = window.page.locator(".said.text").first
        assert shown.locator(".heading").inner_text() == "A plan"
        assert shown.locator("em").inner_text() == "soft"
        assert shown.locator("strong").inner_text() == "strong"
        assert shown.locator("p > code").inner_text() == "let x = 1;"
        assert shown.locator("pre").inner_text().strip() == 'const tag = "<b>not bold</b>";'
        assert shown.locator("ul > li").count() == 2
        assert shown.locator("ul ol > li").all_inner_texts() == ["inner", "other"]
        assert shown.locator("blockquote").inner_text() == "quoted"
        assert shown.locator("td").all_inner_texts() == ["Ana", "sings"]
        assert "snake_case_name and 3*4*5 stay\non two lines" in shown.inner_text()
        link = shown.locator("a")
        assert link.get_attribute("rel") == "noopener noreferrer nofollow"
        assert "(canary.invalid)" in shown.inner_text()  # where it leads is seen
    window.page.click("text=As it was written")
    assert "# A plan" in window.text(".said.text")


@pytest.mark.parametrize("address", ["#/turns?session=Hostile", "#/anchors/hostile"])
def test_hostile_markdown_is_text_and_calls_nobody(window: Window, address: str) -> None:
    window.go(address, ".said.text")
    shown = window.page.locator(".said.text").first
    assert shown.locator("img, script, style, iframe, svg, u, b").count() == 0
    assert '<img src="https://canary.invalid/pixel.png"' in shown.inner_text()
    assert "[press](javascript:window.hit=1)" in shown.inner_text()
    for link in shown.locator("a").all():
        assert re.match(r"https://(user:pw@)?canary\.invalid/", link.get_attribute("href") or "")
        assert link.get_attribute("target") == "_blank"
        assert link.get_attribute("onclick") is None
    assert shown.locator("a:has-text('picture: pixel')").count() == 1  # not loaded: is_well looks
    assert window.page.evaluate("window.hit ?? 0") == 0
    assert (
        window.page.evaluate("getComputedStyle(document.querySelector('main')).display") != "none"
    )


@pytest.mark.parametrize("name", _NESTED)
def test_text_that_nests_without_end_is_shown_and_the_page_answers(
    browser: Chromium, rex: Served, name: str
) -> None:
    rex.link.call("anchor_save", "rex", {"title": f"Nested {name}", "text": _NESTED[name]})
    with browser.window(rex, "rex") as window:
        window.go(f"#/anchors/nested-{name}", ".said.text")
        depth = window.page.evaluate(
            """() => { let deepest = 0; for (let one of document.querySelectorAll('.said.text *')) {
                let depth = 0; for (; !one.matches('.said.text'); one = one.parentElement) depth += 1;
                deepest = Math.max(deepest, depth) } return deepest }"""
        )
        assert depth <= 80
        window.page.click("nav a[href='#/turns']")
        window.page.wait_for_selector(".turn")
        window.is_well()


def test_a_value_that_is_an_instant_is_shown_on_the_entitys_clock(
    window: Window, rex: Served
) -> None:
    found = rex.link.call("get", "rex", {"ids": ["Rex"]})["data"]["items"][0]
    window.go(f"#/item/{found['id']}", ".times")
    assert "2026-03-11 00:05" in window.text(".times")
    assert window.page.inner_text(".said.text strong") == "Good"


def test_every_text_has_the_direction_of_its_script(browser: Chromium, served: Served) -> None:
    served.create("nur")
    fact = {"subject": _ARABIC, "relation": "IS", "object": f"{_ARABIC} ٢", "text": f"{_ARABIC}."}
    node = {"name": _ARABIC, "kind": "Person", "summary": f"{_ARABIC} ٣", "aliases": ["مريم"]}
    said = {"session": _ARABIC, "actor": _ARABIC, "source": _ARABIC, "tags": ["وسم"]}
    served.link.call(
        "remember", "nur", {"content": f"{_ARABIC} ٤", "facts": [fact], "nodes": [node], **said}
    )
    served.link.call("anchor_save", "nur", {"title": _ARABIC, "text": _ARABIC, "slug": "arabic"})
    served.link.call("ambient_recall", "nur", {"context": _ARABIC, "session": _ARABIC})
    [known] = served.link.call("timeline", "nur", {})["data"]["facts"]
    items = [known["id"], known["subject"], known["episodes"][0]]
    with browser.window(served, "nur") as window:
        addresses = [*window.views(), f"#/ask?q={_ARABIC}", f"#/injected?session={_ARABIC}"]
        addresses += ["#/anchors/arabic", *(f"#/item/{one}" for one in items)]
        seen = 0
        for address in addresses:
            window.go(address)
            texts, wrong = window.page.evaluate(
                r"""() => {
                    const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
                    const wrong = []; let texts = 0;
                    while (walker.nextNode()) {
                        const own = walker.currentNode;
                        if (!/^\P{L}*\p{Script=Arabic}/u.test(own.data) || own.parentElement.closest('option, svg')) continue;
                        texts += 1;
                        if (getComputedStyle(own.parentElement).direction !== 'rtl') wrong.push(own.parentElement.outerHTML);
                    }
                    for (const field of document.querySelectorAll('main input:not([type]), main input[type=search], main textarea'))
                        if (field.dir !== 'auto') wrong.push(field.outerHTML);
                    return [texts, wrong];
                }"""
            )
            assert wrong == [], address
            seen += texts
        assert seen > 30
        window.is_well()


def test_no_list_has_its_numbers_outside(window: Window) -> None:
    for address in ("#/turns", "#/jobs", "#/ask?q=Rex", "#/anchors/plan", "#/time", "#/health"):
        window.go(address)
        for summary in window.page.locator("main summary").all()[:5]:
            summary.click()
        outside = window.page.evaluate(
            """() => [...document.querySelectorAll('main :is(ol, ul)')].filter((list) => {
                const style = getComputedStyle(list);
                return style.listStyleType !== 'none' && style.listStylePosition === 'outside'
                    && parseFloat(style.paddingInlineStart) < 30;
            }).map((list) => list.outerHTML.slice(0, 200))"""
        )
        assert outside == [], address


def test_an_unknown_name_clears_what_was_found_for_another(browser: Chromium, rex: Served) -> None:
    fact = {"subject": "Rex", "relation": "EATS", "object": "bone", "valid_at": "2026-03-01"}
    rex.link.call("remember", "rex", {"content": "Rex eats a bone.", "facts": [fact]})
    with browser.window(rex, "rex") as window:
        window.go("#/time?about=Rex", ".lines li")
        window.page.fill("#about", "Nobody Of This Name")
        window.page.keyboard.press("Enter")
        window.page.wait_for_selector("main [role=alert]")
        window.rest()
        assert "Rex EATS bone" not in window.text()
        window.page.fill("#about", "Rex")
        window.page.keyboard.press("Enter")
        window.page.wait_for_selector(".lines li:has-text('bone')")
        window.said.clear()  # the browser notes the 404 itself


def test_a_thin_pack_is_shown_line_by_line_and_why_is_in_words(
    browser: Chromium, served: Served
) -> None:
    served.create("thin")
    served.link.call("remember", "thin", {"content": "Wren is allergic to walnuts."})
    asked = {"context": "What is Wren allergic to?", "budget_tokens": 1200, "mode": "preview"}
    pack = served.link.call("ambient_recall", "thin", asked)["data"]
    assert "## " not in pack["text"]
    assert "\n- " in pack["text"]
    with browser.window(served, "thin") as window:
        window.go("#/ask?q=What is Wren allergic to?", "section .lines li summary")
        line = window.page.locator("section .lines li").first
        line.locator("summary").first.click()
        why = line.inner_text()
        assert "It was found because" in why
        assert "its words are those of the question" in why
        assert "#1" not in why
        line.locator("text=Its ranks").click()
        assert "#1" in line.inner_text()
        window.is_well()


def test_each_perspective_has_a_reason_in_words() -> None:
    text = (_STATIC / "reasons.js").read_text(encoding="utf-8")
    table = text[text.index("const REASONS") : text.index("};")]
    assert set(re.findall(r"^  (\w+): ", table, re.MULTILINE)) == set(PERSPECTIVES)
