"""Measures what a page's first load takes: requests, bytes over the wire, milliseconds until its view is there.

``python -m tests.page_load`` builds a memory of the size in ``large_memory``, serves it, opens each view in a browser
profile of its own (nothing is cached), and once more in the same profile, and prints medians. Arguments name views.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.chromium import Chromium, chromium
from tests.integration.interfaces.serving import Served, serving
from tests.large_memory import build_large_memory

_READY = "main h1"
_BUSY = "main [role=status]:has-text('One moment')"
_RUNS = 5
_VIEWS = ("home", "turns", "ask", "graph", "time")


@dataclass(frozen=True, slots=True)
class Load:
    """One load: how many requests, their bytes over the wire, and milliseconds until the view has its answers."""

    requests: int
    bytes: int
    ms: float


def load_view(browser: Chromium, served: Served, name: str, view: str) -> tuple[Load, Load]:
    """Return what the first load of a view takes in a new profile, and what loading it again takes."""
    context = browser.browser.new_context(viewport={"width": 1280, "height": 860})
    try:
        page = context.new_page()
        link = str(served.link.call("page_open", "", {"name": name})["data"]["url"])
        # The first address opens the session; a view's own address is loaded without what that has cached.
        if view == "home":
            first = _measured(context, page, lambda: page.goto(link))
        else:
            page.goto(link)
            page.wait_for_selector(_READY)
            session = context.new_cdp_session(page)
            session.send("Network.clearBrowserCache")
            session.detach()
            page.goto("about:blank")
            first = _measured(context, page, lambda: page.goto(_address(served, name, view)))
        page.goto("about:blank")
        again = _measured(context, page, lambda: page.goto(_address(served, name, view)))
        return first, again
    finally:
        context.close()


def _address(served: Served, name: str, view: str) -> str:
    return f"{served.run.url}/page/{name}/#/{view}"


def _measured(context: Any, page: Any, go: Any) -> Load:
    session = context.new_cdp_session(page)
    sizes: list[float] = []
    session.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    session.send("Network.enable")
    began = time.perf_counter()
    go()
    page.wait_for_selector(_READY)
    page.wait_for_selector(_BUSY, state="detached")
    ms = (time.perf_counter() - began) * 1000
    page.wait_for_load_state("load")
    page.wait_for_timeout(300)  # what is preloaded for later counts too
    session.detach()
    return Load(len(sizes), int(sum(sizes)), ms)


def _medians(loads: Sequence[Load]) -> str:
    middle = [
        statistics.median(getattr(load, field) for load in loads)
        for field in ("requests", "bytes", "ms")
    ]
    return f"{middle[0]:>4.0f} requests {middle[1] / 1000:>7.1f} kB {middle[2]:>6.0f} ms"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir(mode=0o700)
        asyncio.run(build_large_memory(home, "mira"))
        with serving(home) as served, chromium() as browser:
            load_view(browser, served, "mira", "home")  # warms the server
            for view in sys.argv[1:] or _VIEWS:
                loads = [load_view(browser, served, "mira", view) for _ in range(_RUNS)]
                for title, index in (("first", 0), ("again", 1)):
                    sys.stdout.write(
                        f"{view:<6} {title} {_medians([one[index] for one in loads])}\n"
                    )


if __name__ == "__main__":
    main()
