"""The older era's sessions: a session belongs to the entity that began it."""

from __future__ import annotations

import httpx2
import pytest

from tests.integration.surfaces.serving import Served
from tests.integration.surfaces.test_mcp_http import HEADERS, INITIALIZE, PING


async def _begin(http: httpx2.AsyncClient, url: str, token: str) -> dict[str, str]:
    headers = {**HEADERS, "Authorization": f"Bearer {token}"}
    answer = await http.post(url, json=INITIALIZE, headers=headers)
    assert answer.status_code == 200
    headers["Mcp-Session-Id"] = answer.headers["Mcp-Session-Id"]
    noted = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert (await http.post(url, json=noted, headers=headers)).status_code == 202
    return headers


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_the_token_of_b_on_the_session_of_a_finds_no_session(served: Served, method: str) -> None:
    url = f"{served.run.url}/mcp"
    async with httpx2.AsyncClient(trust_env=False, timeout=20) as http:
        mine = await _begin(http, url, served.create("session_a"))
        theirs = {**mine, "Authorization": f"Bearer {served.create('session_b')}"}
        answer = await http.request(method, url, headers=theirs, json=PING if method == "POST" else None)
        assert answer.status_code == 404
        unknown = {**theirs, "Mcp-Session-Id": "0" * 32}
        absent = await http.request(method, url, headers=unknown, json=PING if method == "POST" else None)
        assert (absent.status_code, absent.text) == (answer.status_code, answer.text)
        assert (await http.post(url, headers=mine, json=PING)).status_code == 200


async def test_another_token_of_the_same_entity_may_use_its_session(served: Served) -> None:
    url = f"{served.run.url}/mcp"
    async with httpx2.AsyncClient(trust_env=False, timeout=20) as http:
        mine = await _begin(http, url, served.create("session_c"))
        again = {**mine, "Authorization": f"Bearer {served.create('session_c')}"}
        assert (await http.post(url, headers=again, json=PING)).status_code == 200


async def test_a_wrong_token_cannot_end_a_session(served: Served) -> None:
    url = f"{served.run.url}/mcp"
    async with httpx2.AsyncClient(trust_env=False, timeout=20) as http:
        mine = await _begin(http, url, served.create("session_d"))
        wrong = {**mine, "Authorization": "Bearer nonsense"}
        assert (await http.request("DELETE", url, headers=wrong)).status_code == 401
        assert (await http.post(url, headers=mine, json=PING)).status_code == 200


async def test_a_page_of_an_allowed_origin_gets_its_preflight(served: Served) -> None:
    asked = {
        "Origin": "http://localhost:5173",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type,mcp-protocol-version",
    }
    async with httpx2.AsyncClient(trust_env=False) as http:
        answer = await http.options(f"{served.run.url}/mcp", headers=asked)
        assert answer.status_code == 200
        assert "authorization" in answer.headers["access-control-allow-headers"].lower()
        refused = await http.options(f"{served.run.url}/mcp", headers={**asked, "Origin": "https://evil.example"})
        assert refused.status_code == 403
