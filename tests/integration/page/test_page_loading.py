"""What a browser is sent: compressed, cached by the hash of what it is, views when they are opened."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator

import httpx
import pytest

from tests.browser_session import page_of
from tests.chromium import Chromium
from tests.integration.interfaces.serving import Served
from tests.waiting import PATIENCE_S

_ZIPPED = {"Accept-Encoding": "gzip"}
_PLAIN = {"Accept-Encoding": "identity"}


@pytest.fixture(scope="module")
def liv(served: Served) -> Served:
    served.create("liv")
    for number in range(30):
        served.link.call("remember", "liv", {"content": f"Remark {number} about the tide."})
    return served


@pytest.fixture
def http(liv: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=liv.run.url, trust_env=False, timeout=PATIENCE_S) as client:
        yield client


def _versioned(http: httpx.Client, name: str) -> str:
    found = re.search(rf'"\.\./(_/[0-9a-f]{{20}}/{re.escape(name)})"', http.get("/page/liv/").text)
    assert found is not None
    return f"/page/{found[1]}"


def test_an_address_with_the_hash_is_kept_for_good_and_all_else_is_asked_for_by_its_tag(
    http: httpx.Client,
) -> None:
    kept = http.get(_versioned(http, "app.js"))
    assert kept.headers["cache-control"] == "public, max-age=31536000, immutable"
    for path in ("/page/liv/", "/page/_/app.js"):
        answer = http.get(path)
        assert answer.headers["cache-control"] == "no-cache"
        again = http.get(path, headers={"If-None-Match": f"W/{answer.headers['etag']}"})
        assert (again.status_code, again.content) == (304, b"")
        assert "content-security-policy" in again.headers
        other = http.get(path, headers={"If-None-Match": '"another"'})
        assert other.content == answer.content
    assert http.get("/page/_/app.js").content == kept.content


def test_no_file_of_another_version_is_given_out_under_this_one(http: httpx.Client) -> None:
    path = _versioned(http, "app.js")
    other = path.replace(path.split("/")[3], "0" * 20)
    answer = http.get(other)
    assert answer.status_code == 404
    assert "immutable" not in answer.headers.get("cache-control", "")
    assert http.get(path.replace("app.js", "index.html")).status_code == 404
    assert http.get(path.replace("app.js", "../site.py")).status_code == 404
    assert http.get(path.replace("app.js", "%2e%2e/%2e%2e/site.py")).status_code == 404


@pytest.mark.parametrize(
    ("accepts", "encoding"),
    [
        ("gzip, deflate, br", "gzip"),
        ("*", "gzip"),
        ("gzip;q=0", None),
        ("gzip;q=0.0, *", None),
        ("br", None),
        ("", None),
    ],
)
def test_a_file_is_compressed_for_who_takes_that(
    http: httpx.Client, accepts: str, encoding: str | None
) -> None:
    path = _versioned(http, "style.css")
    plain = http.get(path, headers=_PLAIN)
    answer = http.get(path, headers={"Accept-Encoding": accepts})
    assert answer.headers.get("content-encoding") == encoding
    assert "Accept-Encoding" in answer.headers["vary"]
    assert answer.content == plain.content
    is_same_tag = answer.headers["etag"] == plain.headers["etag"]
    assert is_same_tag == (encoding is None)


def test_answers_are_compressed(liv: Served) -> None:
    page = page_of(liv, "liv")
    plain = page.post("v1/turns_list", {}, **_PLAIN)
    with httpx.Client(trust_env=False, timeout=PATIENCE_S) as client:
        address = f"{page.base}/page/liv/v1/turns_list"
        with client.stream("POST", address, json={}, headers={**page.headers, **_ZIPPED}) as zipped:
            raw = b"".join(zipped.iter_raw())
        assert zipped.headers["content-encoding"] == "gzip"
        assert gzip.decompress(raw) == plain.content
        assert len(raw) < len(plain.content) / 3
        assert zipped.headers["pps-time-zone"] == plain.headers["pps-time-zone"]


def test_a_view_is_loaded_when_it_is_opened(browser: Chromium, liv: Served) -> None:
    with browser.window(liv, "liv") as window:
        window.page.wait_for_selector("main[data-view=home] h1")

        def modules() -> set[str]:
            return {
                url.rpartition("/")[2]
                for url in window.asked
                if "/views/" in url or "vendor" in url
            }

        assert modules() == {"home.js", "htm.js", "preact.js", "preact-hooks.js"}
        window.page.click("nav a[href='#/turns']")
        window.page.wait_for_selector(".turn")
        assert "turns.js" in modules()
        assert "force-graph.js" not in modules()
        window.is_well()


def test_a_page_of_an_older_version_says_that_it_has_to_be_loaded_again(
    browser: Chromium, liv: Served
) -> None:
    with browser.window(liv, "liv") as window:
        window.page.click("nav a[href='#/health']")
        window.page.wait_for_selector(".tabs a[href='#/jobs']")
        window.page.route(
            re.compile(r"/views/jobs\.js"), lambda route: route.fulfill(status=404, body="")
        )
        window.page.click(".tabs a[href='#/jobs']")
        window.page.wait_for_selector("[role=alert]:has-text('PPS was updated')")
        window.page.unroute(re.compile(r"/views/jobs\.js"))
        window.page.click("text=Load the page again")
        window.page.wait_for_selector("main[data-view=jobs] .figures")
