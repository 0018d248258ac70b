"""The older era's sessions: a session belongs to the entity that began it."""

from __future__ import annotations

from pathlib import Path

import httpx2

from tests.integration.interfaces.serving import Served, serving
from tests.integration.interfaces.test_mcp_http import HEADERS, INITIALIZE, PING
from tests.waiting import PATIENCE_S


async def _begin(http: httpx2.AsyncClient, url: str, token: str) -> dict[str, str]:
    headers = {**HEADERS, "Authorization": f"Bearer {token}"}
    answer = await http.post(url, json=INITIALIZE, headers=headers)
    assert answer.status_code == 200
    headers["Mcp-Session-Id"] = answer.headers["Mcp-Session-Id"]
    noted = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert (await http.post(url, json=noted, headers=headers)).status_code == 202
    return headers


async def test_another_token_of_the_same_entity_may_use_its_session(served: Served) -> None:
    url = f"{served.run.url}/mcp"
    async with httpx2.AsyncClient(trust_env=False, timeout=PATIENCE_S) as http:
        mine = await _begin(http, url, served.create("session_c"))
        again = {**mine, "Authorization": f"Bearer {served.create('session_c')}"}
        assert (await http.post(url, headers=again, json=PING)).status_code == 200


async def test_a_page_of_an_allowed_origin_gets_its_preflight(served: Served) -> None:
    asked = {
        "Origin": "http://localhost:5173",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type,mcp-protocol-version",
    }
    async with httpx2.AsyncClient(trust_env=False, timeout=PATIENCE_S) as http:
        answer = await http.options(f"{served.run.url}/mcp", headers=asked)
        assert answer.status_code == 200
        assert "authorization" in answer.headers["access-control-allow-headers"].lower()
        refused = await http.options(
            f"{served.run.url}/mcp", headers={**asked, "Origin": "https://evil.example"}
        )
        assert refused.status_code == 403


async def test_one_caller_has_a_bounded_number_of_sessions_and_the_idlest_makes_room(
    tmp_path: Path,
) -> None:
    with serving(tmp_path / "home", PPS_SERVER__SESSIONS="3") as served:
        url, mine, theirs = f"{served.run.url}/mcp", served.create("ana"), served.create("ben")
        async with httpx2.AsyncClient(trust_env=False, timeout=PATIENCE_S) as http:

            async def answers(headers: dict[str, str]) -> int:
                return (await http.post(url, headers=headers, json=PING)).status_code

            other = await _begin(http, url, theirs)
            first, second, third = [await _begin(http, url, mine) for _ in range(3)]
            assert await answers(first) == 200  # so the second is the idlest
            begun = [await _begin(http, url, mine) for _ in range(2)]
            assert [await answers(one) for one in (first, second, third, *begun)] == [
                200,
                404,
                404,
                200,
                200,
            ]
            for _ in range(30):
                await _begin(http, url, mine)
            assert await answers(other) == 200
            assert await answers(begun[-1]) == 404
            listening = await _begin(http, url, mine)
            async with http.stream(
                "GET", url, headers=listening
            ) as stream:  # in use, though nothing is asked in it
                assert stream.status_code == 200
                for _ in range(5):
                    await _begin(http, url, mine)
                assert await answers(listening) == 200
