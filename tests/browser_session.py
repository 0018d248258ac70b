"""An entity's page as a browser asks it, without one: its link, its cookie, its key, its origin."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx

from tests.integration.interfaces.serving import Served
from tests.waiting import PATIENCE_S


@dataclass
class PageClient:
    """A browser that has, or has not yet, a session of a page."""

    base: str
    name: str
    cookies: dict[str, str] = field(default_factory=dict)
    key: str = ""
    set_cookie: str = ""

    @property
    def headers(self) -> dict[str, str]:
        said = {"Origin": self.base, "Sec-Fetch-Site": "same-origin", "PPS-Page": self.key}
        kept = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        return {**said, "Cookie": kept} if kept else said

    def post(self, path: str, body: object, on: str = "", **headers: str | None) -> httpx.Response:
        """Post to a page's path; a header that is None is left out."""
        said = {
            **self.headers,
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        given = {name: value for name, value in said.items() if value is not None}
        return httpx.post(
            f"{self.base}/page/{on or self.name}/{path}",
            json=body,
            headers=given,
            trust_env=False,
            timeout=PATIENCE_S,
        )

    def open(self, link: str, on: str = "") -> httpx.Response:
        """Open a session with a link's secret; keep what a browser keeps."""
        answer = self.post("session", {"link": link}, on)
        if answer.status_code == httpx.codes.OK:
            self.set_cookie, self.key = answer.headers["set-cookie"], answer.text
            self.cookies = dict(answer.cookies)
        return answer


def link_of(served: Served, name: str) -> str:
    """Return the secret of a new link."""
    url = str(served.link.call("page_open", "", {"name": name})["data"]["url"])
    assert url.startswith(f"{served.run.url}/page/{name}/#open=")
    return urlsplit(url).fragment.removeprefix("open=")


def page_of(served: Served, name: str) -> PageClient:
    """Return a browser with a session of an entity's page."""
    page = PageClient(served.run.url, name)
    assert page.open(link_of(served, name)).status_code == httpx.codes.OK
    return page
