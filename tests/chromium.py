"""A real Chromium, without a screen, on entities' pages: Debian's own program, which is not downloaded by tests."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.integration.interfaces.serving import Served
from tests.waiting import PATIENCE_S

_WAIT_MS = 1_000 * PATIENCE_S
"""Only a page that hangs takes so long."""

_OPENED_FROM_OTHERS = (
    "#/graph",
    "#/time",
    "#/merges",
    "#/search",
    "#/forgotten",
    "#/jobs",
    "#/injected",
    "#/isolation",
)

_COUNT_CALLS = """(() => {
    const ask = window.fetch;
    window.pendingCalls = 0;
    window.fetch = async (...given) => {
        window.pendingCalls += 1;
        try {
            const answer = await ask(...given);
            answer.clone().arrayBuffer().catch(() => null).finally(() => (window.pendingCalls -= 1));
            return answer;
        } catch (error) {
            window.pendingCalls -= 1;
            throw error;
        }
    };
})()"""
"""Runs before the page's own scripts: `pendingCalls` is how many answers the page still waits for."""

_REST = """async () => {
    const frame = () => new Promise((done) => {
        const next = () => setTimeout(done);
        requestAnimationFrame(next);
        setTimeout(next, 200);
    });
    const isBusy = () => window.pendingCalls || document.querySelector("main[aria-busy=true]");
    for (let quiet = 0; quiet < 4; quiet = isBusy() ? 0 : quiet + 1) await frame();
}"""
"""An effect of a view runs in the frame after the view is drawn, and may ask for more; its module is loaded first."""


@dataclass
class Window:
    """A tab on an entity's page, in a browser profile of its own.

    Attributes:
        page: Playwright's.
        base: The server's address.
        root: The page's path: an entity's, or the owner's.
        said: What the console was told of errors, and scripts' errors: a page that is well says nothing.
        asked: The addresses that were asked.
        heard: All that came over its sockets, a frame each.
    """

    page: Any
    base: str = ""
    root: str = ""
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)

    def open(self, link: str) -> None:
        """Open a page by a link, and wait until it is there."""
        parts = urlsplit(link)
        self.base, self.root = f"{parts.scheme}://{parts.netloc}", parts.path.strip("/")
        self.page.goto(link)
        self.page.wait_for_selector("nav a")

    def go(self, address: str, until: str = "h1") -> None:
        """Go to an address of the page, such as ``#/ask?q=bees``, and wait until something is seen.

        The view then shows all that it asked for.
        """
        self.page.goto(f"{self.base}/{self.root}/{address}")
        view = re.split(r"[/?]", address.removeprefix("#/"))[0] or "home"
        self.page.wait_for_selector(f"main[data-view='{view}'], main.outside")
        self.rest()
        self.page.wait_for_selector(until)
        self.rest()

    def text(self, of: str = "main") -> str:
        """Return the text of the first element that a selector finds, once the view is at rest."""
        self.rest()
        return str(self.page.inner_text(of))

    def views(self) -> list[str]:
        """Return the addresses of all views: those of the navigation, and those that are reached from them."""
        return [*self.navigation(), *_OPENED_FROM_OTHERS]

    def navigation(self) -> list[str]:
        """Return the addresses of the views that the navigation has."""
        self.rest()  # some are there by what the memory has
        return list(
            self.page.eval_on_selector_all(
                "nav a", "all => all.map((one) => one.getAttribute('href'))"
            )
        )

    def rest(self) -> None:
        """Wait until the view has all the answers that it asked for, and shows them."""
        self.page.evaluate(_REST)

    def serious(self, *rules: str) -> list[str]:
        """Return what axe finds that is serious or critical, by some rules or by all."""
        return self._findings(("serious", "critical"), rules)

    def moderate(self) -> list[str]:
        """Return what axe finds that is moderate, serious or critical."""
        return self._findings(("moderate", "serious", "critical"), ())

    def _findings(self, impacts: tuple[str, ...], rules: tuple[str, ...]) -> list[str]:
        self.rest()
        if not self.page.evaluate("Boolean(window.axe)"):
            self.page.evaluate(
                files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
            )
        asked = {"runOnly": {"type": "rule", "values": list(rules)}} if rules else {}
        found = self.page.evaluate("async (asked) => (await axe.run(asked)).violations", asked)
        return [
            f"{one['id']}: {node['html']}: {node['failureSummary']}"
            for one in found
            if one["impact"] in impacts
            for node in one["nodes"]
        ]

    def pass_over_what_is_gone(self) -> None:
        """Leave out what the browser notes where a view asks once more for what it shows, and that was forgotten."""
        self.said[:] = [message for message in self.said if "404" not in message]

    def is_well(self) -> None:
        """Fail where a script failed, the policy was broken, or anybody but this server was asked."""
        assert self.said == []
        own = (f"{self.base}/page/", f"{self.base}/haven/")
        assert [url for url in self.asked if not url.startswith(own)] == []


@dataclass
class Chromium:
    """A browser of one test module."""

    browser: Any

    @contextlib.contextmanager
    def window(self, served: Served, name: str, **profile: Any) -> Iterator[Window]:
        """Open an entity's page by a link, in a profile of its own: size, colours, and what else Playwright takes.

        Without a name it is the owner's page.
        """
        with self.blank(**profile) as window:
            opened = (
                served.link.call("page_open", "", {"name": name})
                if name
                else served.link.call("haven_open", "", {})
            )
            window.open(str(opened["data"]["url"]))
            yield window

    @contextlib.contextmanager
    def blank(self, **profile: Any) -> Iterator[Window]:
        """Open a tab that shows nothing yet, in a profile of its own; ``Window.open`` opens a page there."""
        context = self.browser.new_context(
            **{"viewport": {"width": 1280, "height": 860}, **profile}
        )
        context.set_default_timeout(_WAIT_MS)
        context.add_init_script(_COUNT_CALLS)
        window = Window(context.new_page())
        window.page.on(
            "console", lambda one: window.said.append(one.text) if one.type == "error" else None
        )
        window.page.on("pageerror", lambda error: window.said.append(str(error)))
        window.page.on("request", lambda one: window.asked.append(one.url))
        window.page.on(
            "websocket",
            lambda socket: socket.on(
                "framereceived", lambda frame: window.heard.append(str(frame))
            ),
        )
        try:
            yield window
        finally:
            context.close()


@contextlib.contextmanager
def chromium() -> Iterator[Chromium]:
    """Run a Chromium for the tests of a module: they are no coroutines, as its driver has the thread's loop."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.fail("these tests need Chromium: apt-get install chromium", pytrace=False)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield Chromium(browser)
        finally:
            browser.close()
