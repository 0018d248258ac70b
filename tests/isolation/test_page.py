"""S2-17, the page: a link, a cookie and a key stand for one entity, on its path, from its origin, for nothing else."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator

import httpx
import pytest

from pps.operations.catalog import OPERATIONS, operations_for
from pps.server.runfile import new_secret
from tests.browser_session import PageClient, link_of, page_of
from tests.integration.interfaces.serving import Served, serving
from tests.waiting import PATIENCE_S

SECRET = "The vault code is 4711-canary."


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("page") / "home") as served:
        for name in ("ana", "ben"):
            served.create(name)
        served.link.call("remember", "ben", {"content": SECRET})
        yield served


def test_who_has_no_session_gets_the_empty_page_alone(served: Served) -> None:
    with httpx.Client(base_url=served.run.url, trust_env=False, timeout=PATIENCE_S) as http:
        assert http.get("/page/ben").headers["location"] == "/page/ben/"
        page, nobodys = http.get("/page/ben/"), http.get("/page/nobody/")
        assert (page.text, page.status_code) == (
            nobodys.text,
            200,
        )  # whether there is such an entity is not told
        for answer in (page, http.get("/page/_/app.js")):
            assert answer.headers["x-frame-options"] == "DENY"
            policy = answer.headers["content-security-policy"]
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
        for path in (
            "/page/_/../site.py",
            "/page/_/%2e%2e/site.py",
            "/page/_//etc/passwd",
            "/page/Ben/",
            "/page/_/",
        ):
            assert http.get(path).status_code == 404, path


def test_a_link_opens_one_page_once_and_soon(served: Served) -> None:
    link = link_of(served, "ana")
    page = PageClient(served.run.url, "ana")
    assert page.open(link).status_code == 200
    assert all(
        part in page.set_cookie
        for part in ("HttpOnly", "SameSite=strict", "Path=/page/ana/", "Max-Age=")
    )
    assert page.key not in page.set_cookie
    assert page.post("v1/stats", {}).json()["entity"] == "ana"
    assert PageClient(served.run.url, "ana").open(link).status_code == 401
    late = link_of(served, "ana")
    with sqlite3.connect(served.home / "registry.db") as db:
        db.execute("UPDATE token SET created_at = '2026-01-01T00:00:00+00:00' WHERE role = 'link'")
    assert PageClient(served.run.url, "ana").open(late).status_code == 401
    assert served.pps("open", "ana", "--print").stdout.startswith(
        f"{served.run.url}/page/ana/#open="
    )
    log = (served.home / "test-server.log").read_text()
    assert not any(secret in log for secret in (link, late, page.key, *page.cookies.values()))
    with sqlite3.connect(served.home / "registry.db") as db:
        kept = json.dumps([list(map(str, row)) for row in db.execute("SELECT * FROM token")])
    assert not any(secret in kept for secret in (link, page.key, *page.cookies.values()))


def test_of_two_that_use_a_link_at_once_one_is_let_in(served: Served) -> None:
    link, seen = link_of(served, "ana"), list[int]()
    runs = [
        threading.Thread(
            target=lambda: seen.append(PageClient(served.run.url, "ana").open(link).status_code)
        )
        for _ in range(8)
    ]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert sorted(seen) == [200] + [401] * 7


def test_a_link_is_nobodys_on_another_path(served: Served) -> None:
    link = link_of(served, "ana")
    for wrong in (
        "",
        "x",
        link[:-1],
        new_secret(),
        served.create("ana"),
        page_of(served, "ana").key,
    ):
        assert PageClient(served.run.url, "ben").open(wrong).status_code == 401
    assert PageClient(served.run.url, "ana").open(link, on="ben").status_code == 401
    for origin in (
        None,
        "null",
        "http://127.0.0.1:1",
        served.run.url.replace("127.0.0.1", "localhost"),
    ):
        assert (
            PageClient(served.run.url, "ana")
            .post("session", {"link": link}, Origin=origin)
            .status_code
            == 403
        )


def test_what_a_cookie_allows_needs_its_origin_and_its_key(served: Served) -> None:
    page, other = page_of(served, "ana"), page_of(served, "ana")
    port = served.run.port
    origins = (
        None,
        "null",
        f"http://127.0.0.1:{port + 1}",
        f"http://localhost:{port}",
        f"ftp://127.0.0.1:{port}",
    )
    for origin in (
        *origins,
        "http://127.0.0.1",
        "http://evil.example",
        f"http://127.0.0.1:{port}.evil.example",
    ):
        assert page.post("v1/stats", {}, Origin=origin).status_code == 403, origin
        # A browser tells no origin of what it reads within one, but always from where it was asked.
        reads = {name: value for name, value in {**page.headers, "Origin": origin}.items() if value}
        reads["Sec-Fetch-Site"] = "same-site"
        url = f"{served.run.url}/page/ana/features"
        assert httpx.get(url, headers=reads, trust_env=False, timeout=PATIENCE_S).status_code == 403
    for site in ("same-site", "cross-site", "none"):
        assert page.post("v1/stats", {}, Sec_Fetch_Site=site).status_code == 403, site
    assert page.post("v1/stats", {}, PPS_Page=None).status_code == 403
    for key in ("", "x" * 20, other.key, page.key[:-1]):
        assert page.post("v1/stats", {}, PPS_Page=key).status_code == 401, key
    assert page.post("v1/stats", {}, Cookie=None).status_code == 401
    assert page.post("v1/stats", {}).status_code == 200


def test_a_session_is_nobodys_on_another_path_and_no_token_anywhere(served: Served) -> None:
    page = page_of(served, "ana")
    router, operator = (
        served.router("/"),
        str(served.link.call("operator_issue", "", {})["data"]["token"]),
    )
    foreign = page.post("v1/recall", {"query": "vault"}, on="ben")
    assert (foreign.status_code, "4711" in foreign.text) == (401, False)
    bare = PageClient(served.run.url, "ben")
    for token in (
        router,
        operator,
        served.create("ana"),
        served.create("ben"),
        f"{new_secret()}.ben",
    ):
        asked = bare.post("v1/recall", {"query": "vault"}, Authorization=f"Bearer {token}")
        assert (asked.status_code, "4711" in asked.text) == (401, False)
        split = PageClient(
            served.run.url, "ben", {next(iter(page.cookies)): token[:-20]}, token[-20:]
        )
        assert split.post("v1/recall", {"query": "vault"}).status_code == 401
    session = f"{next(iter(page.cookies.values()))}{page.key}"
    for url in (f"{served.run.url}/v1/stats", f"{served.run.url}/mcp"):
        answer = httpx.post(
            url,
            json={},
            headers={"Authorization": f"Bearer {session}"},
            trust_env=False,
            timeout=PATIENCE_S,
        )
        assert answer.status_code == 401
    for name in sorted({one.name for one in OPERATIONS} - set(operations_for("entity"))):
        assert page.post(f"v1/{name}", {"name": "ben", "entity": "ben"}).status_code == 404, name


def test_the_views_of_features_are_told_to_a_session_alone_and_hold_nothing_of_anybody(
    served: Served,
) -> None:
    page = page_of(served, "ana")
    url = f"{served.run.url}/page/ana/features"
    told = httpx.get(url, headers=page.headers, trust_env=False, timeout=PATIENCE_S)
    assert set(told.json()) == {"features", "views"}
    assert SECRET not in told.text
    assert httpx.get(url, trust_env=False, timeout=PATIENCE_S).status_code == 403
    of_ben = url.replace("/ana/", "/ben/")
    assert (
        httpx.get(of_ben, headers=page.headers, trust_env=False, timeout=PATIENCE_S).status_code
        == 401
    )


@pytest.mark.parametrize("how", ["page_close", "token_revoke", "entity_archive", "leave"])
def test_a_session_that_is_ended_is_refused_at_once(served: Served, how: str) -> None:
    served.create("eve")
    page, kept = page_of(served, "eve"), page_of(served, "ana")
    link = link_of(served, "eve")
    if how == "leave":
        assert page.post("session", {"end": True}).status_code == 204
    else:
        served.link.call(how, "", {"name": "eve"})
        assert PageClient(served.run.url, "eve").open(link).status_code == 401
    assert page.post("v1/stats", {}).status_code == 401
    assert kept.post("v1/stats", {}).status_code == 200
    if how == "entity_archive":
        served.link.call(how, "", {"name": "eve", "undo": True})


def test_who_is_made_anew_is_somebody_else(served: Served) -> None:
    served.create("zoe")
    page, link = page_of(served, "zoe"), link_of(served, "zoe")
    served.link.call("entity_delete", "", {"name": "zoe"})
    served.create("zoe")
    assert page.post("v1/stats", {}).status_code == 401
    assert PageClient(served.run.url, "zoe").open(link).status_code == 401
