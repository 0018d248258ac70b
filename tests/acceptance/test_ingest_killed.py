"""Events from every source and a long import, while the server is killed at random: counts exact, nothing twice.

The long form, about ten minutes, has a hundred kills and ten thousand turns.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

from pps.core.errors import PPSError
from pps.server.link import Link, connect, stop
from tests.integration.interfaces.serving import clean_env, pps
from tests.sampling import sized

KILLS = sized(2, 100)
TURNS = sized(300, 10_000)
EVENTS = sized(4, 100)
SOURCES = ("whisper", "screenpipe", "mcp", "editor", "api")
PEOPLE = 40
ENTITY = "ana"
TOLD = TURNS + len(SOURCES) * EVENTS
UNKILLED = sized(0.4, 0.2)
"""Share of what is told that is left for after the last kill."""
FINISH_S = 600 + TURNS / 20


class Cut(NamedTuple):
    """How many turns are acknowledged, and how many of these are all the way through."""

    kept: int
    through: int


@dataclass(slots=True)
class Running:
    """What the two writers and the killer share. ``cuts`` has what each kill cut off."""

    home: Path
    over: threading.Event = field(default_factory=threading.Event)
    known: dict[str, str] = field(default_factory=dict[str, str])
    cuts: list[Cut] = field(default_factory=list[Cut])

    def link(self) -> Link:
        return connect(self.home)

    def cut(self) -> Cut:
        """Return how far all has come, by the journal's file."""
        file = self.home / "entities" / ENTITY / "data" / "memory.db"
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as db:
            return Cut(
                *db.execute(
                    "SELECT count(*), count(*) FILTER (WHERE state = 'done') FROM jobs"
                ).fetchone()
            )


def work(link: Link, task: str, **arguments: Any) -> dict[str, Any]:
    return link.call(task, "", arguments, timeout_s=600)["data"]


def until_done(running: Running, act: Callable[[Link], Any]) -> Any:
    """Do something on the server that is there, or on the next one."""
    while not running.over.is_set():
        with suppress(PPSError):
            return act(running.link())
        time.sleep(0.05)
    raise AssertionError("it was never done")


def tell_events(running: Running) -> None:
    """Each is told until it is acknowledged; an answer that a kill swallowed is asked for again."""
    for number in range(EVENTS):
        for source in SOURCES:
            arguments = {
                "content": f"Something that {source} noticed, number {number}. #noticed",
                "title": f"{source} {number}",
                "source": source,
                "source_ref": f"{source}-{number}",
            }
            answer = until_done(
                running, lambda link, given=arguments: link.call("add_event", ENTITY, given)
            )
            running.known[str(arguments["title"])] = str(cast("Any", answer["data"])["turn_id"])


def import_all(running: Running, file: Path) -> None:
    """The import is run again until it says that it is done."""
    until_done(running, lambda link: work(link, "import", entity=ENTITY, paths=[str(file)]))


def write_lines(file: Path) -> None:
    with file.open("w") as lines:
        for number in range(TURNS):
            person, place = f"Person{number % PEOPLE}", f"Place{number}"
            line = {
                "content": f"Turn {number}: {person} went to {place}.",
                "session": f"s{number // 50}",
                "facts": [{"subject": person, "relation": "WENT_TO", "object": place}],
            }
            lines.write(json.dumps(line) + "\n")


def kill_at_random(running: Running) -> None:
    """Kill at random moments, each no later than its share of the turns is through: every kill finds work to cut.

    Every other one comes after something went on since the last; the rest may come while a server still begins.
    """
    chance = random.Random(4711)  # noqa: S311 - a reproducible choice
    for number in range(1, KILLS + 1):
        began = time.monotonic()
        link: Link = until_done(running, lambda found: found)
        start_s = time.monotonic() - began
        wait_s = chance.uniform(
            0.0, max(1.5, 1.5 * start_s)
        )  # a slow machine needs longer to get anywhere
        if number % 2:
            until_moved(running)
        latest, share = time.monotonic() + wait_s, (1 - UNKILLED) * TOLD * number / KILLS
        while time.monotonic() < latest and running.cut().through < share:
            time.sleep(0.01)
        os.kill(link.run.pid, signal.SIGKILL)
        running.cuts.append(running.cut())


def until_moved(running: Running) -> None:
    """Wait until more is acknowledged or through than at the last kill."""
    last, deadline = running.cuts[-1] if running.cuts else Cut(0, 0), time.monotonic() + FINISH_S
    while running.cut() == last:
        assert time.monotonic() < deadline, "nothing went on"
        time.sleep(0.01)


def finished(running: Running) -> dict[str, Any]:
    deadline = time.monotonic() + FINISH_S
    while time.monotonic() < deadline:
        stats = cast("dict[str, Any]", running.link().call("stats", ENTITY, {})["data"])
        if not (stats["unfinished_jobs"] or stats["index_lag"]):
            return stats
        time.sleep(0.1)
    raise AssertionError("the jobs were not done in time")


@pytest.mark.timeout(3600)
def test_events_and_an_import_survive_kills_with_exact_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, file = Running(tmp_path / "home"), tmp_path / "talk.jsonl"
    env = clean_env(running.home)
    for name in ("PPS_HOME", "PPS_EMBEDDER__NAME", "PPS_SERVER__PORT"):
        monkeypatch.setenv(name, env[name])
    write_lines(file)
    running.link().call("entity_create", "", {"name": ENTITY})
    began = time.monotonic()
    writers = [
        threading.Thread(target=tell_events, args=(running,)),
        threading.Thread(target=import_all, args=(running, file)),
    ]
    try:
        for writer in writers:
            writer.start()
        kill_at_random(running)
        for writer in writers:
            writer.join(FINISH_S)
            assert not writer.is_alive()
        stats = finished(running)
        took_s = time.monotonic() - began
        check(running, stats, env)
    finally:
        running.over.set()
        stop(running.home)
    in_hand = sum(one.through < one.kept for one in running.cuts)
    print(  # noqa: T201
        f"\n{KILLS} kills, {in_hand} with acknowledged turns in hand; {stats['turns']:,} turns in {took_s:.0f} s"
    )


def check(running: Running, stats: dict[str, Any], env: dict[str, str]) -> None:
    told = TOLD - TURNS
    assert [one.through < TOLD for one in running.cuts] == [True] * KILLS, (
        "every kill came before all was through"
    )
    moved = [now > last for last, now in pairwise([Cut(0, 0), *running.cuts])]
    assert moved[::2] == [True] * len(moved[::2])
    assert len(set(running.known.values())) == told
    assert (stats["turns"], stats["episodes"]) == (TOLD, TOLD)
    assert stats["facts"] == TURNS
    assert stats["nodes"] == PEOPLE + TOLD + 1  # the entity's own
    queue = cast("dict[str, Any]", running.link().call("ingestion_stats", ENTITY, {})["data"])
    assert (queue["done"], queue["failed"], queue["dropped"]) == (TOLD, 0, 0)
    doctor = pps(env, "doctor", ENTITY)
    assert doctor.returncode == 0, doctor.stdout
    assert "NOT the same" not in doctor.stdout
    ids = list(running.known.values())
    for start in range(0, len(ids), 100):
        items = running.link().call("get", ENTITY, {"ids": ids[start : start + 100]})["data"]
        assert len(cast("Any", items)["items"]) == len(ids[start : start + 100])
    done = work(
        running.link(), "import", entity=ENTITY, paths=[str(running.home.parent / "talk.jsonl")]
    )
    assert done["stored"] == 0
