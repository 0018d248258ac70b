"""S2-17, the page against hostile text, hostile pages, a session that is ended, and a large graph."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote

import pytest

from tests.browser_session import link_of
from tests.chromium import Chromium
from tests.integration.interfaces.serving import Served

pytestmark = pytest.mark.chromium

XSS = (
    "<img src=x onerror=window.hit=1>",
    "<script>window.hit=1</script>",
    '"><svg onload=window.hit=1>',
    "'-window.hit=1-'",
    "javascript:window.hit=1",
    "<iframe srcdoc='<script>parent.hit=1</script>'>",
    "${window.hit=1} {{constructor.constructor('window.hit=1')()}}",
    "</textarea><style>*{display:none}</style>",
)


@pytest.fixture(scope="module")
def hostile(served: Served) -> Served:
    """An entity each of whose fields is a script: texts, names, kinds, tags, sessions, actors, titles."""
    for name in ("mal", "ana", "ben"):
        served.create(name)
    for at, text in enumerate(XSS):
        facts = [
            {
                "subject": f"{text} {at}",
                "relation": "IS",
                "object": f"it {text}",
                "text": f"bees {text}",
            }
        ]
        nodes = [
            {
                "name": f"{text} {at}",
                "kind": "Thing",
                "summary": f"bees {text}",
                "aliases": [f"alias {text} {at}"],
            }
        ]
        said = {
            "session": text,
            "actor": text,
            "source": text,
            "tags": ["tag"],
            "nodes": nodes,
            "facts": facts,
        }
        wait = "journal" if at < len(XSS) - 1 else "done"
        served.link.call("remember", "mal", {"content": f"bees {text}", "wait": wait, **said})
        served.link.call(
            "anchor_save", "mal", {"title": f"bees {text}", "text": text, "slug": f"bees-{at}"}
        )
    return served


def test_no_text_of_a_memory_is_ever_more_than_text(browser: Chromium, hostile: Served) -> None:
    facts = hostile.link.call("timeline", "mal", {"limit": 100})["data"]["facts"]
    ids = [facts[0]["id"], facts[0]["subject"], facts[0]["episodes"][0]]
    hostile.link.call("ambient_recall", "mal", {"context": "bees", "session": XSS[0]})
    views = [
        "#/home",
        "#/merges",
        "#/search?q=bees",
        "#/search?q=%3Cimg%20src%3Dx%20onerror%3Dwindow.hit%3D1%3E",
        "#/ask?q=bees",
        "#/graph",
        "#/time",
        *(f"#/item/{one}" for one in ids),
        "#/jobs",
        "#/isolation",
    ]
    views += [
        "#/turns",
        "#/injected",
        *(f"#/{one}?session={quote(XSS[0])}" for one in ("turns", "injected")),
    ]
    views += [
        "#/ask?q=" + "%3Cimg%20src%3Dx%20onerror%3Dwindow.hit%3D1%3E",
        "#/time?about=%3Csvg%20onload%3Dwindow.hit%3D1%3E",
    ]
    with browser.window(hostile, "mal") as window:
        for view in views:
            window.go(view)
            assert window.page.evaluate("window.hit ?? 0") == 0, view
            assert (
                window.page.query_selector("main img, main iframe, main script, main style") is None
            ), view
        window.go("#/ask?q=bees", ".lines li")
        assert any(text in window.text() for text in XSS)
        # What would make HTML of a text is stopped by the page's policy, whatever a script tries.
        made = window.page.evaluate(
            "(() => { const a = document.createElement('p'); a.innerHTML = '<b>x</b>'; return a.innerHTML })()"
        )
        assert made == ""
        window.said[:] = [one for one in window.said if "404" not in one]  # of a node that is none
        window.is_well()


def test_two_entities_in_two_tabs_stay_apart_and_a_session_that_is_ended_is_seen(
    browser: Chromium, hostile: Served
) -> None:
    hostile.link.call("remember", "ana", {"content": "Ana keeps bees in the loft."})
    hostile.link.call("remember", "ben", {"content": "Ben keeps bees in the cellar."})
    with browser.window(hostile, "ana") as ana:
        tab = ana.page.context.new_page()
        tab.goto(str(hostile.link.call("page_open", "", {"name": "ben"})["data"]["url"]))
        tab.wait_for_selector("nav a")
        for page, mine, theirs in ((ana.page, "loft", "cellar"), (tab, "cellar", "loft")):
            page.evaluate("location.hash = '#/ask?q=bees'")
            page.wait_for_selector(".channels")
            assert mine in page.inner_text("main")
            assert theirs not in page.inner_text("main")
        asked = """async (path) => (await fetch(path, {method: 'POST', body: '{}', headers: {
            'Content-Type': 'application/json',
            'PPS-Page': localStorage.getItem(`pps page ${path.split('/')[2]}`)}})).status"""
        assert ana.page.evaluate(asked, "/page/ana/v1/stats") == 200
        # Even with both keys at hand: from the page of one, the browser sends the other's cookie to its own path only.
        mixed = asked.replace("path.split('/')[2]", "'ana'")
        assert ana.page.evaluate(mixed, "/page/ben/v1/stats") == 401
        hostile.link.call("page_close", "", {"name": "ana"})
        ana.page.wait_for_selector("text=session has ended")
        assert "pps open ana" in ana.page.inner_text("main")
        assert tab.evaluate(asked, "/page/ben/v1/stats") == 200


@contextlib.contextmanager
def _another_server(page: str) -> Iterator[tuple[str, list[str]]]:
    """Serve a page of somebody else's on another port of this host; note the cookies that are sent there."""
    seen: list[str] = []

    class Theirs(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers.get("cookie", ""))
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Theirs)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        server.server_close()


def test_a_page_on_another_port_gets_nothing_by_fetch_form_frame_or_the_cookie_itself(
    browser: Chromium, hostile: Served
) -> None:
    base = hostile.run.url
    form = (
        f"<form method=post action={base}/page/ana/v1/stats enctype=text/plain target=_top></form>"
    )
    page = f"{form}<iframe src={base}/page/ana/></iframe>"
    with browser.window(hostile, "ana") as ana, _another_server(page) as (url, seen):
        theirs = ana.page.context.new_page()
        theirs.goto(f"{url}/page/ana/")
        assert "pps_" in seen[0]  # browsers do send it: cookies ignore ports
        framed = next(one for one in theirs.frames if one is not theirs.main_frame)
        assert "ana" not in framed.evaluate("document.body ? document.body.innerText : ''")
        tried = """async ([url, headers]) => { try {
            const answer = await fetch(url, {method: 'POST', body: '{}', credentials: 'include', headers});
            return [answer.status, await answer.text()];
        } catch (problem) { return [0, String(problem)] } }"""
        for headers in (
            {"Content-Type": "text/plain"},
            {"Content-Type": "application/json", "PPS-Page": "x" * 20},
        ):
            status, said = theirs.evaluate(tried, [f"{base}/page/ana/v1/stats", headers])
            assert status in (0, 403)
            assert "turns" not in said
        assert (
            theirs.evaluate("Object.keys(localStorage).length") == 0
        )  # the key is this origin's alone
        with theirs.expect_navigation():
            theirs.evaluate("document.forms[0].submit()")
        assert json.loads(theirs.inner_text("body"))["status"] == 403
        # With the cookie that it was sent, but without the key, a server has nothing either.
        import httpx

        stolen = {
            "Cookie": seen[0],
            "Origin": base,
            "Sec-Fetch-Site": "same-origin",
            "PPS-Page": "x" * 20,
        }
        assert (
            httpx.post(
                f"{base}/page/ana/v1/stats", json={}, headers=stolen, trust_env=False
            ).status_code
            == 401
        )


def test_a_link_that_was_used_or_is_anothers_says_what_to_do(
    browser: Chromium, hostile: Served
) -> None:
    used = link_of(hostile, "ana")
    with browser.window(hostile, "ben") as window:
        for _ in range(2):
            page = window.page.context.new_page()
            page.goto(f"{hostile.run.url}/page/ana/#open={used}")
            page.wait_for_selector("h1")
        assert "used already" in page.inner_text("main")
        page.goto(f"{hostile.run.url}/page/mal/#open={link_of(hostile, 'ana')}")
        page.wait_for_selector("text=pps open mal")


def test_five_thousand_nodes_are_drawn_and_the_page_still_answers(
    browser: Chromium, hostile: Served
) -> None:
    """The graph's answer is made up, so that no memory of 5,000 nodes has to be made first; all else is real."""
    nodes = [
        {
            "id": f"{at:08d}-0000-4000-8000-000000000000",
            "name": f"node {at}",
            "kind": f"Kind{at % 7}",
            "summary": "",
        }
        for at in range(5000)
    ]
    facts = [
        {
            "id": f"f{at}",
            "text": "t",
            "relation": "R",
            "subject": nodes[at]["id"],
            "object": nodes[at // 7]["id"],
            "episodes": [],
        }
        for at in range(1, 5000)
    ]
    answer = {"node": nodes[0]["id"], "nodes": nodes, "facts": facts, "hops": {}, "more": True}
    with browser.window(hostile, "ana") as window:
        window.page.route("**/v1/graph_around", lambda route: route.fulfill(json=answer))
        window.go("#/graph", "text=5,000 nodes, 4,999 facts drawn")
        window.page.evaluate(
            """async () => { for (let i = 0; i < 60; i++) await new Promise(requestAnimationFrame) }"""
        )
        window.page.uncheck(".chip:has-text('Kind3') input")
        window.page.click("nav a:has-text('Ask')")
        window.page.wait_for_selector("#q")
