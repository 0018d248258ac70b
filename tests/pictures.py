"""Takes the pictures of docs/page.md: the shipped sample in a real Chromium; ``scripts/docs --pictures``."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.chromium import Window, chromium
from tests.integration.interfaces.serving import clean_env, pps, serving

DOCS = Path(__file__).parents[1] / "docs" / "pictures"
_QUESTION = "#/ask?q=What+is+Wren+allergic+to%3F"
_VIEWS = {
    "page-ask": (_QUESTION, ".channels"),
    "page-graph": ("#/graph", ".beside"),
    "page-time": ("#/time?since=2026-02-01&until=2026-03-01", ".pair"),
}
_SETTLED_MS = 2500


def _taken(window: Window, name: str) -> None:
    window.page.wait_for_timeout(_SETTLED_MS)
    window.page.screenshot(path=str(DOCS / f"{name}.png"))
    print(f"docs/pictures/{name}.png")  # noqa: T201 - a script of the house


def main() -> None:
    DOCS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        home = Path(folder) / "home"
        more = {"PPS_EMBEDDER__NAME": "minilm"}
        pps(clean_env(home, **more), "demo")
        with serving(home, **more) as served, browser.window(served, "mira") as window:
            for name, (address, until) in _VIEWS.items():
                window.go(address, until)
                _taken(window, name)
            facts = served.link.call("timeline", "mira", {"about": "Wren", "limit": 100})["data"]["facts"]
            fact = next(one["id"] for one in facts if "walnuts" in one["text"])
            window.go(f"#/item/{fact}", ".turn")
            _taken(window, "page-fact")
            with browser.window(served, "mira", color_scheme="dark", viewport={"width": 390, "height": 800}) as phone:
                phone.go(_QUESTION, ".channels")
                _taken(phone, "page-phone")


if __name__ == "__main__":
    main()
