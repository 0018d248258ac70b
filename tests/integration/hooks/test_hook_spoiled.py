"""What was recorded, spoiled: cut, every field of a wrong type, huge, without its transcript. Nothing is disturbed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.integration.hooks.acting import Ended
from tests.integration.hooks.conftest import turns_of
from tests.integration.hooks.replaying import Recorded, Replay, recorded, shapes
from tests.integration.interfaces.serving import Served, serving
from tests.sampling import sample
from tests.waiting import wait_until

CUTS = (0.0, 0.1, 0.5, 0.9, 1.0)
"""Where a payload is cut, of its length; the last time before its last brace."""
WRONG = (7, None, True, ["no"], {"no": "object"}, "no\0such \ud800")
LONG = "so much " * 250_000
TOO_LONG = "x" * (17 * 1024 * 1024)
AT_ONCE = 4
Case = tuple[Recorded, bytes]


@dataclass
class Room:
    """An entity and its project for one test; ``garden`` is the neighbour, and has nothing of any session."""

    served: Served
    name: str
    replay: Replay

    def run(self, cases: Sequence[Case]) -> list[Ended]:
        """Run hooks, some at once; each ends with 0 and nothing on stderr."""
        with ThreadPoolExecutor(AT_ONCE) as threads:
            ended = list(threads.map(lambda case: self.replay.run(*case), cases))
        assert [
            (case[0].name, one)
            for case, one in zip(cases, ended, strict=True)
            if one.code or one.err
        ] == []
        return ended

    def kept(self) -> Counter[tuple[str, str]]:
        """What is kept of the recorded sessions by this entity, and how often; the neighbour keeps nothing."""
        turns = [
            turn
            for one in {one.session for one in recorded()}
            for turn in turns_of(self.served.home, one)
        ]
        assert "garden" not in {turn["entity"] for turn in turns}
        return Counter(
            (turn["role"], turn["content"]) for turn in turns if turn["entity"] == self.name
        )


@pytest.fixture(scope="module")
def spoiling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("spoiled") / "home") as served:
        garden = tmp_path_factory.mktemp("garden")
        served.create("garden")
        served.link.call("route_add", "", {"path": str(garden), "entity": "garden"})
        yield served


@pytest.fixture
def room(spoiling: Served, tmp_path: Path) -> Room:
    name = f"kitchen_{len(list((spoiling.home / 'entities').iterdir()))}"
    project = tmp_path / "kitchen"
    project.mkdir()
    spoiling.create(name)
    spoiling.link.call("route_add", "", {"path": str(project), "entity": name})
    return Room(spoiling, name, Replay(spoiling.home, project, tmp_path / "transcripts"))


def told(room: Room, one: Recorded) -> dict[str, Any]:
    """Return a payload with the folders of the test, as an object."""
    return json.loads(room.replay.told(one))


def test_a_recorded_payload_that_is_cut_anywhere_is_nothing(room: Room) -> None:
    cases: list[Case] = []
    for one in shapes():
        whole = room.replay.told(one).rstrip()
        cases += [(one, whole[: min(round(len(whole) * part), len(whole) - 1)]) for part in CUTS]
    assert {ended.out for ended in room.run(sample(cases, 30, "cut"))} == {b""}
    assert not room.kept()


def test_a_recorded_payload_with_a_field_of_a_wrong_type_is_at_most_what_it_was(room: Room) -> None:
    """Every field of every shape, the wrong values in turn: what is kept is in the payloads, or a wrong text."""
    cases: list[Case] = []
    for one in shapes():
        payload = told(room, one)
        for number, name in enumerate([*payload, "tool_input.command"]):
            wrong = WRONG[(number + len(cases)) % len(WRONG)]
            spoiled = {**payload, name: wrong}
            if name == "tool_input.command":
                spoiled = {
                    **payload,
                    "tool_input": dict.fromkeys(payload.get("tool_input", {}), wrong),
                }
            cases.append((one, json.dumps(spoiled).encode()))
    assert len(cases) > len(shapes()) * 5
    room.run(sample(cases, 60, "wrong"))
    words = "".join(json.dumps(told(room, one)) for one in recorded()) + "nosuch ?"
    for role, content in room.kept():
        parts = content.rstrip(")").replace(" (", ": ").split(": ") if role == "tool" else [content]
        assert all(json.dumps(part)[1:-1] in words for part in parts), (role, content)


def test_a_recorded_payload_without_a_session_or_without_any_field_of_its_type_is_nothing(
    room: Room,
) -> None:
    cases: list[Case] = []
    for one in shapes():
        payload = told(room, one)
        for wrong in WRONG[:5]:
            cases.append((one, json.dumps({**payload, "session_id": wrong}).encode()))
            cases.append((one, json.dumps(dict.fromkeys(payload, wrong)).encode()))
    assert {ended.out for ended in room.run(sample(cases, 30, "none"))} == {b""}
    assert not room.kept()


def test_a_recorded_payload_with_a_huge_field_is_no_trouble_and_one_that_is_huge_itself_is_nothing(
    room: Room,
) -> None:
    cases = [
        (
            one,
            json.dumps(
                {**told(room, one), "prompt": LONG, "last_assistant_message": LONG, "more": LONG}
            ).encode(),
        )
        for one in shapes()
    ]
    room.run(cases)
    wait_until(lambda: {role for role, _ in room.kept()} == {"user", "assistant", "tool"})
    before = room.kept()
    too_long = [
        (one, json.dumps({**told(room, one), "more": TOO_LONG}).encode()) for one in shapes()[::6]
    ]
    assert {ended.out for ended in room.run(too_long)} == {b""}
    assert room.kept() == before


def test_recorded_sessions_without_their_transcripts_keep_prompts_tools_and_last_answers_each_once(
    room: Room,
) -> None:
    told = [one for one in recorded() if one.is_told]
    for one in (*told, *sample(told, 25, "again")):
        ended = room.replay.run(one)
        assert (one.name, ended.code, ended.err) == (one.name, 0, b"")
    kept = room.kept()
    answers = [one.payload["last_assistant_message"] for one in recorded() if one.event == "Stop"]
    assert {content for role, content in kept if role == "assistant"} == set(answers)
    assert sum(count for (role, _), count in kept.items() if role == "assistant") == len(answers)
    assert {count for (role, _), count in kept.items() if role != "assistant"} == {1}
    assert sum(role == "tool" for role, _ in kept) == 8
