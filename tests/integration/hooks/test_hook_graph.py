"""What hooks capture goes all the way: into the journal, the graph and the indexes, and to the next session."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from tests.integration.hooks.acting import Session
from tests.integration.interfaces.serving import Served
from tests.waiting import wait_until

SAID = [
    "Paint the oven, please.",
    "Write: /work/notes.txt",
    "The oven is blue now.",
    "The oven dries until noon.",
]


def asked(served: Served, verb: str, **arguments: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", served.link.call(verb, "cook", arguments)["data"])


def test_what_a_session_said_and_did_is_in_the_graph_and_given_to_the_next(
    either: Served, tmp_path: Path
) -> None:
    either.create("cook")
    first, second = (Session(either.home, tmp_path, options=("--entity", "cook")) for _ in range(2))
    first.run("SessionStart")
    first.run("UserPromptSubmit", prompt=SAID[0])
    first.run("PostToolUse")
    first.says(SAID[2])
    first.run("Stop", last_assistant_message=SAID[2])
    first.says(SAID[3])
    first.run("SessionEnd")

    def taken_in() -> bool:
        stats = asked(either, "stats")
        return stats["turns"] == len(SAID) and not (stats["unfinished_jobs"] or stats["index_lag"])

    wait_until(taken_in)
    stats = asked(either, "stats")
    assert (
        stats["episodes"]
        == stats["text_indexed"]["episodes"]
        == stats["vector_indexed"]["episodes"]
        == len(SAID)
    )
    doctor = either.pps("doctor", "cook")
    assert doctor.returncode == 0, doctor.stdout
    found = asked(either, "recall", query="the oven", channels=["episodes"])["channels"][
        "episodes"
    ]["hits"]
    assert {hit["text"].partition(": ")[2] for hit in found} == set(SAID)
    given = second.run("UserPromptSubmit", prompt="What about the oven?").context
    assert "The oven is blue now." in given
    assert "The oven dries until noon." in given
