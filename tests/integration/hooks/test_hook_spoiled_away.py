"""Spoiled payloads while the server hangs or is away: silent, in time, and only what can be kept is spooled."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

from pps.ingest.hook_events import read_event
from pps.server import runfile, spool
from tests.integration.hooks.acting import DEADLINE_S
from tests.integration.hooks.conftest import hanging_in, registered, tell_until_spooled, turns_of
from tests.integration.hooks.replaying import Recorded, Replay, recorded
from tests.integration.interfaces.serving import serving
from tests.sampling import sample
from tests.waiting import wait_until

SAMPLE = list({one.event: one for one in reversed(recorded()) if one.is_told}.values())
"""One recording of each event."""
CUTS = (0.0, 0.5, 1.0)
WRONG = (7, None, ["no"], {"no": "object"}, "")
HUGE = "so much " * 250_000
TOO_LONG = "x" * (17 * 1024 * 1024)
SPOOLED = {"UserPromptSubmit", "PostToolUse", "Stop", "PreCompact", "SessionEnd"}
AT_ONCE = 4
TRIES = 12
Case = tuple[Recorded, bytes]
Kind = Literal["hanging", "none"]


@contextmanager
def unanswered(kind: Kind, folder: Path) -> Generator[Replay]:
    """Lend recorded sessions, without transcripts, in a project of an entity whose server hangs or is away."""
    project = folder / "project"
    project.mkdir()
    if kind == "hanging":
        with hanging_in(project) as home:
            yield Replay(home, project, folder / "transcripts", keeps_deadlines=True)
    else:
        registered(folder / "home", project)
        yield Replay(folder / "home", project, folder / "transcripts", keeps_deadlines=True)


def told(replay: Replay, one: Recorded, **other: object) -> bytes:
    """Return a payload with the folders of the test, and some fields changed."""
    return json.dumps({**json.loads(replay.told(one)), **other}).encode()


def hopeless(replay: Replay) -> list[Case]:
    """Return payloads that no server would ever take: cut, of no session, too long, too deep."""
    cases: list[Case] = []
    for number, one in enumerate(SAMPLE):
        whole = replay.told(one).rstrip()
        cases += [(one, whole[: min(round(len(whole) * part), len(whole) - 1)]) for part in CUTS]
        wrong = WRONG[number % len(WRONG)]
        cases.append((one, told(replay, one, session_id=wrong)))
        cases.append((one, json.dumps(dict.fromkeys(json.loads(whole), wrong)).encode()))
        cases.append((one, told(replay, one, session_id=HUGE)))
        cases.append((one, told(replay, one, cwd=str(replay.project) + HUGE)))
        cases.append((one, b"[" * 200_000))
    return [*cases, *((one, told(replay, one, more=TOO_LONG)) for one in SAMPLE[::3])]


def bearable(replay: Replay) -> list[Case]:
    """Return payloads that something is left of: without their transcript, huge, all but their place wrong."""
    cases: list[Case] = []
    for one in SAMPLE:
        place = {"session_id", "cwd", "hook_event_name"}
        wrong = {name: ["no"] for name in one.payload.keys() - place}
        cases += [(one, replay.told(one)), (one, told(replay, one, **wrong))]
        cases.append((one, told(replay, one, prompt=HUGE, last_assistant_message=HUGE, more=HUGE)))
    return cases


def took_s(replay: Replay, cases: Sequence[Case]) -> list[float]:
    """Run hooks, some at once; each ends with 0 and says nothing. Return how long each lived."""

    def run(case: Case) -> float:
        begun = time.monotonic()
        ended = replay.run(*case)
        lived = time.monotonic() - begun
        assert ended.is_silent(), (case[0].name, ended)
        return lived

    with ThreadPoolExecutor(AT_ONCE) as threads:
        return list(threads.map(run, cases))


def run_in_time(replay: Replay, cases: Sequence[Case]) -> None:
    """Run hooks; those that a busy machine made late are run again, and must be in time once."""
    late = list(cases)
    for _ in range(TRIES):
        nothing_s = max(took_s(replay, [(one, b"") for one in SAMPLE]))
        lived = zip(late, took_s(replay, late), strict=True)
        late = [case for case, took in lived if took > DEADLINE_S[case[0].event] + nothing_s]
        if not late:
            return
    raise AssertionError([one.name for one, _ in late])


def in_spool(home: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_bytes()) for path in spool.waiting(home)]


@pytest.mark.parametrize("kind", ["hanging", "none"])
def test_what_no_server_would_take_is_not_spooled_and_starts_none(
    kind: Kind, tmp_path: Path
) -> None:
    with unanswered(kind, tmp_path) as replay:
        run_in_time(replay, sample(hopeless(replay), 16, kind))
        time.sleep(0.5)  # an end of a session goes on alone
        assert not spool.spool_folder(replay.home).exists()
        assert runfile.run_file(replay.home).exists() == (kind == "hanging")


@pytest.mark.parametrize("kind", ["hanging", "none"])
def test_what_is_left_of_a_spoiled_payload_is_spooled_whole_and_taken_in(
    kind: Kind, tmp_path: Path
) -> None:
    with unanswered(kind, tmp_path) as replay:
        cases = [
            case
            for case in bearable(replay)
            if kind == "hanging" or case[0].event != "SessionStart"
        ]
        run_in_time(replay, cases)
    home = replay.home
    kept = [one for one, _ in cases if one.event in SPOOLED]
    tell_until_spooled(
        home,
        kept,
        lambda missing: took_s(replay, [(one, replay.told(one)) for one in missing]),
    )
    assert {one["event"] for one in in_spool(home)} == SPOOLED
    assert {one["session"] for one in in_spool(home)} == {
        one.session for one in SAMPLE if one.event in SPOOLED
    }
    assert all(read_event(one) for one in in_spool(home))
    with serving(home):
        wait_until(lambda: not spool.waiting(home))
        for draft in spool.spool_folder(home).glob(".*"):  # of a hook whose time was up as it wrote
            os.utime(draft, (0, 0))
        wait_until(lambda: list(spool.spool_folder(home).iterdir()) == [])
    turns = [
        turn for session in {one.session for one in SAMPLE} for turn in turns_of(home, session)
    ]
    assert {turn["role"] for turn in turns} == {"user", "assistant", "tool"}
    words = "".join(json.dumps(one.payload) for one in SAMPLE)
    for turn in turns:
        said = str(turn["content"])
        parts = (
            said.rstrip(")").replace(" (", ": ").split(": ") if turn["role"] == "tool" else [said]
        )
        assert all(part in HUGE or json.dumps(part)[1:-1] in words for part in parts), said[:200]
