"""Issue 42, behind a proxy with TLS: a page works as on this machine, its cookie is Secure, its Origin is exact."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin, Subprotocol

from tests.browser_session import link_of
from tests.chat_server import ChatServer
from tests.chromium import Chromium
from tests.integration.interfaces.serving import serving
from tests.talk_page import make_talkers, say, wait_for_answers
from tests.tls_proxy import TLSProxy, tls_proxy
from tests.waiting import PATIENCE_S

HOST = "haven.example.org"


def _trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _post(proxy: TLSProxy, path: str, body: object, origin: str, **headers: str) -> httpx.Response:
    sent = {"Host": HOST, "Origin": origin, "Sec-Fetch-Site": "same-origin", "PPS-Page": ""}
    url = f"https://127.0.0.1:{proxy.port}{path}"
    given = {**sent, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return httpx.post(
        url,
        json=body,
        headers=given,
        verify=_trusting(),
        trust_env=False,
        timeout=PATIENCE_S,
    )


def _opens(proxy: TLSProxy, origin: str, cookie: str, key: str) -> int:
    """Return the status that a socket is answered with."""
    return asyncio.run(_status(proxy, origin, cookie, key))


async def _status(proxy: TLSProxy, origin: str, cookie: str, key: str) -> int:
    """Open a socket and ask for its rooms; return 101, or the status of the refusal.

    The client with an event loop: the one with threads reads from and writes to one TLS
    connection at the same time, and now and then waits for ever.
    """
    opening = connect(
        f"wss://{HOST}/page/vera/socket",
        host="127.0.0.1",
        port=proxy.port,
        ssl=_trusting(),
        origin=Origin(origin),
        subprotocols=[Subprotocol("pps"), Subprotocol(f"pps-key.{key}")],
        additional_headers={"Cookie": cookie},
        proxy=None,
        open_timeout=PATIENCE_S,
    )
    try:
        async with opening as opened, asyncio.timeout(PATIENCE_S):
            await opened.send('{"id": 1, "do": "rooms"}')
            while '"re":1' not in str(await opened.recv()):
                pass
    except InvalidStatus as error:
        return error.response.status_code
    return 101


def test_a_page_behind_a_proxy_has_a_secure_cookie_and_one_origin(tmp_path: Path) -> None:
    own = f"https://{HOST}"
    named = {
        "PPS_SERVER__ALLOWED_HOSTS": HOST,
        "PPS_SERVER__ALLOWED_ORIGINS": own,
    }
    with tls_proxy(tmp_path) as proxy, serving(tmp_path / "home", **named) as served:
        proxy.upstream = served.run.port
        served.create("vera")
        opening = {"link": link_of(served, "vera")}
        others = (f"http://{HOST}", f"{own}:8443", "https://evil.example", f"{own}.evil.example")
        for origin in others:
            assert _post(proxy, "/page/vera/session", opening, origin).status_code == 403, origin
        answer = _post(proxy, "/page/vera/session", opening, own)
        assert answer.status_code == 200
        cookie = answer.headers["set-cookie"]
        for attribute in ("Secure", "HttpOnly", "SameSite=strict", "Path=/page/vera/"):
            assert attribute in cookie
        kept = cookie.partition(";")[0]
        asked = {"Cookie": kept, "PPS_Page": answer.text}
        assert _post(proxy, "/page/vera/v1/stats", {}, own, **asked).status_code == 200
        assert _opens(proxy, own, kept, answer.text) == 101
        for origin in others:
            assert _post(proxy, "/page/vera/v1/stats", {}, origin, **asked).status_code == 403
            assert _opens(proxy, origin, kept, answer.text) == 403, origin
        assert _opens(proxy, own, kept, "x" * 20) == 401
        # Another name, and a page on this machine's own address, are not that page.
        assert _post(proxy, "/page/vera/v1/stats", {}, own, Host="evil.example").status_code == 421
        local = f"http://127.0.0.1:{served.run.port}"
        assert _opens(proxy, local, kept, answer.text) == 403
        # The server itself listens on this machine alone.
        assert served.run.host == "127.0.0.1"


@pytest.mark.chromium
@pytest.mark.xdist_group("chromium")
def test_talk_in_a_browser_behind_a_proxy(
    browser: Chromium, chat: ChatServer, tmp_path: Path
) -> None:
    with tls_proxy(tmp_path) as proxy:
        own = f"https://localhost:{proxy.port}"
        with serving(tmp_path / "home", PPS_SERVER__ALLOWED_ORIGINS=own) as served:
            proxy.upstream = served.run.port
            make_talkers(served, chat, "vera")
            link = urlsplit(str(served.link.call("page_open", "", {"name": "vera"})["data"]["url"]))
            with browser.blank(ignore_https_errors=True) as window:
                window.open(f"{own}{link.path}#{link.fragment}")
                window.go("#/talk", until=".composer")
                say(window, "My boat is called Aurora.")
                assert "Aurora" in wait_for_answers(window, 1)
                window.page.wait_for_selector(".state.live, .state.working")
                (cookie,) = window.page.context.cookies()
                assert (cookie["secure"], cookie["httpOnly"]) == (True, True)
                assert cookie["sameSite"] == "Strict"
                window.is_well()
