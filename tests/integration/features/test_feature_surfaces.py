"""A feature of another distribution over MCP, the command line, HTTP and the page, in real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.browser_session import page_of
from tests.chromium import chromium
from tests.integration.interfaces.serving import Served, clean_env, wait_for_run_file
from tests.third_party import install
from tests.waiting import PATIENCE_S


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that has the feature installed: on its path, with an entry point."""
    folder = tmp_path_factory.mktemp("features")
    site, home = install(folder / "site"), folder / "home"
    home.mkdir(mode=0o700)
    env = clean_env(home, PYTHONPATH=os.pathsep.join([str(site), str(Path.cwd())]))
    with (folder / "server.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "pps", "serve"], env=env, stdout=log, stderr=log
        )
        try:
            yield Served(home, env, wait_for_run_file(home, process))
        finally:
            process.terminate()
            process.wait(60)


@pytest.fixture(scope="module")
def token(served: Served) -> str:
    served.create("ben")
    return served.create("ana")


def pps(served: Served, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a fresh process, which finds the feature by its entry point."""
    return subprocess.run(
        [sys.executable, "-m", "pps", *arguments],
        env=served.env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_commands_are_there_and_listed(served: Served, token: str) -> None:
    added = pps(served, "deadlines", "add", "ana", "pay the rent by Friday")
    assert added.returncode == 0, added.stderr
    assert added.stdout.startswith("Due: pay the rent by Friday [")
    listed = json.loads(pps(served, "deadlines", "list", "ana", "--json").stdout)
    assert [one["text"] for one in listed["deadlines"]] == ["pay the rent by Friday"]
    assert json.loads(pps(served, "deadlines", "list", "ben", "--json").stdout)["deadlines"] == []
    assert "What is due, noted by hand or as it is told." in pps(served, "--help").stdout
    features = pps(served, "feature", "list").stdout
    assert "deadlines  on, from deadlines-feature, 3 operations: What is due" in features
    misspelt = pps(served, "deadline", "list", "ana")
    assert (misspelt.returncode, misspelt.stdout) == (2, "")


async def test_tools_are_there_over_both_transports(served: Served, token: str) -> None:
    async with served.client(token, "2026-07-28", "deadlines") as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        assert tools == ["deadline_add", "deadline_list", "deadline_drop"]
        answer = await client.call_tool("deadline_add", {"text": "call the bank"})
        assert answer.structured_content is not None
        assert answer.structured_content["text"] == "call the bank"
    async with served.stdio("ana", "2026-07-28") as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        assert {"recall", "deadline_add", "deadline_list", "deadline_drop"} <= {*tools}
        answer = await client.call_tool("deadline_list", {})
        assert "call the bank" in str(answer.structured_content)


def ask(served: Served, token: str, operation: str, **arguments: Any) -> httpx.Response:
    return httpx.post(
        f"{served.run.url}/v1/{operation}",
        json=arguments,
        headers={"Authorization": f"Bearer {token}"},
        trust_env=False,
        timeout=PATIENCE_S,
    )


def test_http_answers_and_the_document_has_it(served: Served, token: str) -> None:
    made = ask(served, token, "deadline_add", text="over HTTP").json()
    assert made["text"] == "over HTTP"
    others = served.create("ben")
    foreign = ask(served, others, "deadline_drop", id=made["id"])
    absent = ask(served, others, "deadline_drop", id="1b4e28ba-2fa1-5d2b-883f-0016d3cca427")
    assert (foreign.status_code, absent.status_code) == (404, 404)
    document = httpx.get(
        f"{served.run.url}/openapi.json",
        headers={"Authorization": f"Bearer {token}"},
        trust_env=False,
        timeout=PATIENCE_S,
    ).json()
    assert "/v1/deadline_list" in document["paths"]
    assert ask(served, token, "deadline_drop", id=made["id"]).status_code == 200


def test_the_page_is_told_its_view_as_data_and_only_with_a_session(
    served: Served, token: str
) -> None:
    page = page_of(served, "ana")
    headers = {"PPS-Page": page.key, "Sec-Fetch-Site": "same-origin", **page.headers}
    url = f"{served.run.url}/page/ana/features"
    told = httpx.get(url, headers=headers, trust_env=False, timeout=PATIENCE_S).json()
    [view] = told["views"]
    assert (view["id"], view["operation"], view["items"]) == (
        "deadlines",
        "deadline_list",
        "deadlines",
    )
    assert [one["operation"] for one in view["actions"]] == ["deadline_add", "deadline_drop"]
    assert view["actions"][0]["fields"][0]["name"] == "text"
    assert httpx.get(url, trust_env=False, timeout=PATIENCE_S).status_code == 403
    assert (
        httpx.get(
            url.replace("ana", "ben"), headers=headers, trust_env=False, timeout=PATIENCE_S
        ).status_code
        == 401
    )


@pytest.mark.chromium
def test_the_view_is_a_table_with_buttons(served: Served, token: str) -> None:
    ask(served, token, "deadline_add", text="<b>buy</b> stamps")
    with chromium() as browser, browser.window(served, "ana") as window:
        window.go("#/deadlines", "table")
        assert window.text("h1") == "Deadlines"
        assert "<b>buy</b> stamps" in window.text("table")
        window.page.fill("form input[name=text]", "typed into the page")
        window.page.click("form button")
        window.page.wait_for_selector("td:has-text('typed into the page')")
        window.page.click("tr:has-text('buy') >> button:has-text('Drop a deadline')")
        window.page.wait_for_selector("td:has-text('buy')", state="detached")
        assert window.serious() == []
        window.is_well()


def test_switched_off_it_is_nowhere(served: Served, token: str) -> None:
    """Last of this module: what is off is off for every test."""
    assert (
        "its operations and views are hidden"
        in pps(served, "feature", "disable", "deadlines").stdout
    )
    try:
        assert ask(served, token, "deadline_list").status_code == 404
        typed = pps(served, "deadlines", "list", "ana")
        assert typed.returncode != 0
        assert "pps feature enable deadlines" in typed.stderr
        page = page_of(served, "ana")
        headers = {"PPS-Page": page.key, "Sec-Fetch-Site": "same-origin", **page.headers}
        told = httpx.get(
            f"{served.run.url}/page/ana/features",
            headers=headers,
            trust_env=False,
            timeout=PATIENCE_S,
        ).json()
        assert told["views"] == []
    finally:
        pps(served, "feature", "enable", "deadlines")
    assert ask(served, token, "deadline_list").status_code == 200
