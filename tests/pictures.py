"""Takes the pictures of docs/page.md and docs/haven.md: the shipped sample in a real Chromium; ``scripts/docs --pictures``."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.chat_server import chat_server
from tests.chromium import Chromium, Window, chromium
from tests.importing_files import entry, lines
from tests.integration.interfaces.serving import Served, clean_env, pps, serving
from tests.room_socket import haven_of, let_answer, room_socket
from tests.squads import write_squad

DOCS = Path(__file__).parents[1] / "docs" / "pictures"
_QUESTION = "#/ask?q=What+is+Wren+allergic+to%3F"
_VIEWS = {
    "page-home": ("#/home", "section[aria-label=People]"),
    "page-conversation": ("#/turns?session=kitchen-mar-07", ".turn"),
    "page-search": ("#/search?q=walnut", ".result mark"),
    "page-ask": (_QUESTION, ".channels"),
    "page-graph": ("#/graph", ".beside"),
    "page-time": ("#/time?since=2026-02-01&until=2026-03-01", ".pair"),
}
_SETTLED_MS = 2500
_TALK = (
    ("user", "Good morning. I moved to Lisbon in March, and I work at Harbor Labs now."),
    ("assistant", "Congratulations! How is the new office?"),
    ("user", "Close to the river. My sister Rita lives in Porto, and I am allergic to walnuts."),
)


def _taken(window: Window, name: str) -> None:
    window.page.wait_for_timeout(_SETTLED_MS)
    window.page.screenshot(path=str(DOCS / f"{name}.png"))
    print(f"docs/pictures/{name}.png")  # noqa: T201 - a script of the house


def talk(at: Path) -> Path:
    """Write a transcript of Claude Code, such as a newcomer has."""
    return lines(at, [entry(who, f"t-{number}", said) for number, (who, said) in enumerate(_TALK)])


def _squad(served: Served) -> None:
    """Make a squad of three, of whom one proposes how to hand over."""
    write_squad(served.home, "trio")
    served.link.call("squad_create", "", {"name": "trio", "file": "trio"})
    analysis = {"type": "metric", "findings": "14 of 19 handoffs waited more than a day."}
    words = "Handoffs wait two days on average."
    found = {"type": "Analysis", "content": words, "confidence": 0.8, "fields": analysis}
    copy = served.link.call("memory_store", "trio_jochi", found)["data"]["copy"]["id"]
    fields = {
        "target_process": "handoff",
        "current_state": "An agent says in passing that something is ready, and the next one asks for it.",
        "proposed_state": "An agent gives a task that says what is ready, and the next one takes it.",
        "risk_level": "low",
        "implementation_steps": ["Tell all members", "Measure for a month"],
    }
    made = {
        "type": "WorkflowImprovement",
        "title": "Hand over in writing",
        "content": "Each handoff is a task.",
    }
    made = {**made, "fields": fields, "cites": [copy]}
    kept = served.link.call("memory_store", "trio_jochi", made)["data"]["id"]
    served.link.call("proposal_submit", "trio_jochi", {"id": kept})


_EVENING = {
    "mira": [
        "You told me on Sunday that you are allergic to walnuts, so not the pesto. Lemon tart?"
    ],
    "juno": ["I have nothing of Sunday. But Rita comes at seven, you said, and she brings bread."],
}


def haven(served: Served, browser: Chromium) -> None:
    """Take the picture of a room of two; a local server answers for both."""
    with chat_server(answers={name: [*said] for name, said in _EVENING.items()}) as chat:
        served.create("juno")
        for name in _EVENING:
            let_answer(served, name, server="openai", model=name, base_url=chat.base_url)
        with room_socket(haven_of(served)) as owner:
            names = [*_EVENING]
            made = owner.ask("create", title="Dinner", person="Wren", entities=names)
            room = made["room"]
            owner.ask("subscribe", rooms={room: 0})
            owner.talk(room, "What shall I cook tonight? Nothing with walnuts.", count=2)
        with browser.window(served, "") as window:
            window.go(f"#/room/{room}", ".message.theirs")
            window.page.click("text=was given >> nth=0")
            window.page.wait_for_selector(".folded li")
            _taken(window, "haven-talk")


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
            facts = served.link.call("timeline", "mira", {"id": "Wren", "limit": 100})["data"][
                "facts"
            ]
            wren = served.link.call("nodes_list", "mira", {"query": "Wren"})["data"]["nodes"][0]
            window.go(f"#/item/{wren['id']}", ".profile-fact")
            _taken(window, "page-profile")
            fact = next(one["id"] for one in facts if "walnuts" in one["text"])
            window.go(f"#/item/{fact}", ".turn")
            _taken(window, "page-fact")
            served.link.call("detect_topics", "mira", {"force": True})
            window.go("#/topics", "svg.topics a")
            window.page.click("svg.topics a")
            window.page.wait_for_selector("#topic")
            _taken(window, "page-topics")
            haven(served, browser)
            with browser.window(served, "iris") as iris:
                iris.go("#/records/Task", ".board .card")
                _taken(iris, "page-records")
            served.create("ana")
            served.link.call(
                "import", "", {"entity": "ana", "paths": [str(talk(Path(folder) / "talk.jsonl"))]}
            )
            with browser.window(served, "ana") as ana:
                ana.go("#/turns", ".turn")
                _taken(ana, "page-turns")
            _squad(served)
            with browser.window(served, "trio_kublai") as kublai:
                kublai.go("#/squad/approvals", "ins")
                _taken(kublai, "page-squad")
            with browser.window(
                served, "mira", color_scheme="dark", viewport={"width": 390, "height": 800}
            ) as phone:
                phone.go("#/home", "section[aria-label=People]")
                _taken(phone, "page-phone")


if __name__ == "__main__":
    main()
