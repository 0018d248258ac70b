"""Every payload that Claude Code really sent, told to the real hook: with a server, with one that hangs, with none."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pps.server import spool, stop
from tests.integration.hooks.acting import DEADLINE_S, Ended
from tests.integration.hooks.conftest import hanging_in, registered, tell_until_spooled, turns_of
from tests.integration.hooks.replaying import Recorded, Replay, recorded
from tests.integration.interfaces.serving import Served, serving
from tests.sampling import sample
from tests.waiting import wait_until

KEPT = {"UserPromptSubmit", "PostToolUse", "Stop", "PreCompact", "SessionEnd"}
TRIES = 12
AT_ONCE = 12

SAID = {
    "printed/01": [
        ("user", "Paint the kitchen: note, look, count."),
        ("tool", "Bash: List the files (ls -a)"),
        ("tool", "Write: /home/ana/kitchen/notes.txt"),
        ("tool", "Edit: /home/ana/kitchen/notes.txt"),
        ("tool", "Agent: Count the shelves"),
        ("assistant", "I look at what is there."),
        ("assistant", "I write it down."),
        ("assistant", "The kitchen is blue now.\n\nIt has three shelves."),
        ("tool", "Write: /home/ana/kitchen/shelf.txt"),
        ("tool", "Bash: Count the lines (wc -l shelf.txt)"),
        ("assistant", "Well."),
        ("user", "And the ceiling?\nIt was white,\n\n  I think."),
        ("assistant", "The ceiling stays white."),
    ],
    "printed/29": [("user", "Once more from here."), ("assistant", "This is another branch.")],
    "typed/01": [
        ("user", "What is for dinner?"),
        ("assistant", "Soup."),
        (
            "user",
            "\n".join(f"{n}. A cup of flour goes into bowl number {n}." for n in range(1, 61)),
        ),
        ("assistant", "That is a lot of flour."),
        ("assistant", "Well."),
        ("user", "/clean oven"),
        ("assistant", "The oven is clean."),
        ("user", "Bake the bread"),
        ("user", "With salt, please"),
        ("tool", "Bash: Wait for the oven (true)"),
        ("assistant", "The oven warms up."),
        ("assistant", "The bread is in, with salt."),
        ("user", "What did we bake?"),
        ("assistant", "Bread."),
        ("user", "Where were we?"),
        ("assistant", "At the bread."),
    ],
    "typed/19": [("user", "Who are you?"), ("assistant", "Your cook.")],
    "filled/01": [
        ("user", "Fill the pantry"),
        ("tool", "Bash: Count the jars (echo 12 jars)"),
        ("assistant", "I count the jars."),
        ("assistant", "Well."),
        ("user", "Anything else?"),
        ("assistant", "No, all is done."),
    ],
}
"""What is to be kept of each session, in order, by the recording of its begin."""


@dataclass
class Street:
    """Recorded sessions, played in ``kitchen``'s project on a live server; ``garden`` is the neighbour."""

    served: Served
    replay: Replay
    ended: dict[str, Ended] = field(default_factory=dict[str, Ended])

    def of(self, entity: str) -> dict[str, list[tuple[str, str]]]:
        return said_by(self.served.home, entity)


def sessions() -> dict[str, str]:
    """Return the id of each recorded session, by the recording of its begin."""
    begins: dict[str, str] = {}
    for one in recorded():
        begins.setdefault(one.session, one.name.partition("-")[0])
    return {begin: session for session, begin in begins.items()}


def said_by(home: Path, entity: str) -> dict[str, list[tuple[str, str]]]:
    """Return what an entity keeps of each recorded session, by the recording of its begin."""
    return {
        begin: [
            (one["role"], one["content"])
            for one in turns_of(home, session)
            if one["entity"] == entity
        ]
        for begin, session in sessions().items()
    }


def a_replay(home: Path, folder: Path, *, keeps_deadlines: bool = False) -> Replay:
    project = folder / "kitchen"
    project.mkdir(exist_ok=True)
    return Replay(home, project, folder / "transcripts", keeps_deadlines)


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Street]:
    """Everything was played once, from begin to end."""
    folder = tmp_path_factory.mktemp("street")
    with serving(tmp_path_factory.mktemp("recorded") / "home") as served:
        replay = a_replay(served.home, folder)
        (folder / "garden").mkdir()
        for name in ("kitchen", "garden"):
            served.create(name)
            served.link.call("route_add", "", {"path": str(folder / name), "entity": name})
        known = {
            "content": "The pantry of the garden has 12 jars.",
            "session": "before",
            "wait": "done",
        }
        served.link.call("remember", "garden", known)
        street = Street(served, replay)
        street.ended = replay.play()
        wait_until(lambda: street.of("kitchen")["filled/01"][-1:] == SAID["filled/01"][-1:])
        yield street


def test_the_recordings_hold_every_event_and_every_way_a_session_begins_and_ends() -> None:
    assert {one.event for one in recorded()} == set(DEADLINE_S)
    ways = {(one.event, way) for one in recorded() for way in one.ways}
    assert ways >= {
        ("SessionStart", way) for way in ("startup", "resume", "clear", "compact", "fork")
    }
    assert ways >= {
        ("SessionEnd", way) for way in ("clear", "resume", "prompt_input_exit", "other")
    }
    assert ways >= {("PreCompact", way) for way in ("manual", "auto")}
    tools = {"Bash", "Write", "Edit", "Read", "Agent", "mcp__plugin_pps_memory__ambient_recall"}
    assert ways >= {(event, tool) for event in ("PreToolUse", "PostToolUse") for tool in tools}
    assert {one.payload["tool_name"] for one in recorded() if not one.is_told} >= {"Read"}


def test_every_recorded_payload_ends_well_and_says_nothing_but_a_pack(street: Street) -> None:
    assert len(street.ended) == sum(one.is_told for one in recorded())
    for name, ended in street.ended.items():
        assert (name, ended.code, ended.err) == (name, 0, b"")
        if ended.out:
            shown = json.loads(ended.out)["hookSpecificOutput"]
            assert shown["hookEventName"] in ("SessionStart", "UserPromptSubmit", "PreToolUse")
            assert name.endswith(shown["hookEventName"])
            assert "<memory-" in shown["additionalContext"]


def test_what_is_kept_of_the_recorded_sessions_is_what_was_said_and_done_each_once_and_in_order(
    street: Street,
) -> None:
    assert street.of("kitchen") == SAID


def test_no_other_entity_is_told_or_tells_of_the_recorded_sessions(street: Street) -> None:
    assert street.of("garden") == {begin: [] for begin in SAID}
    assert not any("garden" in ended.context for ended in street.ended.values())


def test_recorded_sessions_that_are_told_a_second_time_change_nothing(street: Street) -> None:
    """First event by event with the transcripts as they stand at the end, then from begin to end with them anew."""
    for one in sample((one for one in recorded() if one.is_told), 25):
        assert (one.name, street.replay.run(one).err) == (one.name, b"")
    assert street.of("kitchen") == SAID
    shutil.rmtree(street.replay.transcripts)
    street.replay.transcripts.mkdir()
    street.replay.play()
    time.sleep(1)  # the last session's end is told in a process of its own
    assert street.of("kitchen") == SAID
    assert street.of("garden") == {begin: [] for begin in SAID}


def test_recorded_sessions_without_a_server_wait_in_the_spool_and_are_kept_once_by_the_next(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    replay = a_replay(home, tmp_path)
    registered(home, replay.project)
    told = [one for one in recorded() if one.is_told and one.event in KEPT]
    begins = [one for one in recorded() if one.event == "SessionStart"]
    begun = time.monotonic()
    ended = replay.play(but="SessionStart")  # that would start a server
    assert time.monotonic() - begun < sum(
        DEADLINE_S[one.event] for one in recorded() if one.is_told
    )
    assert {name: one for name, one in ended.items() if not one.is_silent()} == {}
    wait_until(lambda: len(spool.waiting(home)) == len(told))
    spooled = [json.loads(path.read_bytes()) for path in spool.waiting(home)]
    assert sorted(one["event"] for one in spooled) == sorted(one.event for one in told)
    try:
        assert [one.name for one in begins if (ended := replay.run(one)).code or ended.err] == []
        wait_until(lambda: not spool.waiting(home))
        kept = said_by(home, "shop")
        assert {name: sorted(said) for name, said in kept.items()} == {
            name: sorted(said) for name, said in SAID.items()
        }
        lines = [
            one
            for id in sessions().values()
            for one in turns_of(home, id)
            if one["role"] == "assistant"
        ]
        assert [one["content"] for one in lines if one["source_ref"].startswith("answer:")] == []
        assert spool.look(home).bad == 0
    finally:
        stop(home)


def test_every_recorded_payload_ends_in_time_though_the_server_hangs_and_is_spooled(
    tmp_path: Path,
) -> None:
    told = sample((one for one in recorded() if one.is_told), 40)
    with hanging_in(tmp_path) as home:
        replay = a_replay(home, tmp_path, keeps_deadlines=True)
        nothing_s = max(lived(replay, told, b"").values())
        left = {one.name: one for one in told}
        for _ in range(TRIES):
            took_s = lived(replay, list(left.values()), None)
            left = {
                name: one
                for name, one in left.items()
                if took_s[name] >= DEADLINE_S[one.event] + nothing_s
            }
            if not left:
                break
        assert not left, nothing_s
    kept = [one for one in told if one.event in KEPT]
    tell_until_spooled(home, kept, lambda missing: lived(replay, missing, None))


def lived(replay: Replay, told: list[Recorded], given: bytes | None) -> dict[str, float]:
    """Return how long the hook of each payload lived, some at once; each ends well and says nothing."""

    def run(one: Recorded) -> float:
        begun = time.monotonic()
        ended = replay.run(one, given)
        assert (one.name, ended) == (one.name, Ended(0, b"", b""))
        return time.monotonic() - begun

    with ThreadPoolExecutor(AT_ONCE) as threads:
        return dict(zip((one.name for one in told), threads.map(run, told), strict=True))
