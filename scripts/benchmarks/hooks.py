"""How long a prompt waits for the hook: its start, the server's answer, and the whole process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time as clock
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.generator import FACTS_A_TURN, World
from benchmarks.machine import machine
from benchmarks.measuring import throw_away
from benchmarks.quality import Progress
from pps import __version__
from pps.app import App
from pps.config import Settings, load, shipped
from pps.core.errors import StoreUnavailable
from pps.server import Link
from pps.server.link import OwnerConnection, find

_BATCH = 250
_ENTITY = "bench"
_SETTLED_S = 10.0
_START_S = 60.0


@dataclass(frozen=True, slots=True)
class HooksWanted:
    """What is to be measured.

    Attributes:
        facts: Facts in the memory that answers.
        prompts: Prompts timed, after a tenth as many to warm up.
        home: A data folder to keep, filled once and used again; a throw-away one when None.
    """

    facts: int = 50_000
    prompts: int = 200
    home: Path | None = None


async def hooks(wanted: HooksWanted, env: Mapping[str, str], progress: Progress) -> dict[str, Any]:
    """Fill a memory, start a server on it, and time prompts; return the report as plain JSON.

    Times are milliseconds: ``start`` is the program with nothing to do, ``round_trip`` a request on a new connection
    that keeps the prompt and returns a pack, ``process`` the hook from its start to its end. Before each prompt the
    memory has taken in the one before.
    """
    if wanted.home:
        settings = load(env=env).model_copy(update={"home": wanted.home.absolute()})
        return await _measured(settings, wanted, env, progress)
    async with throw_away(env, "embedded") as settings:
        return await _measured(settings, wanted, env, progress)


async def _measured(
    settings: Settings, wanted: HooksWanted, env: Mapping[str, str], progress: Progress
) -> dict[str, Any]:
    turns = max(1, wanted.facts // FACTS_A_TURN)
    facts = await _filled(settings, turns, progress)
    asked = World().questions(wanted.prompts + wanted.prompts // 10 + 1, turns)
    return await asyncio.to_thread(_reported, settings, wanted, env, (facts, asked), progress)


def _reported(
    settings: Settings,
    wanted: HooksWanted,
    env: Mapping[str, str],
    filled: tuple[int, Sequence[str]],
    progress: Progress,
) -> dict[str, Any]:
    facts, asked = filled
    with _serving(settings.home, env) as link:
        return {
            "title": "Hooks: how long a prompt waits",
            "command": f"scripts/bench hooks --facts {wanted.facts} --prompts {wanted.prompts}",
            "version": __version__,
            "machine": machine(),
            "store": settings.store,
            "facts": facts,
            "prompts": wanted.prompts,
            "embedder": settings.embedder.name,
            **_timed(link, settings.home, asked, wanted.prompts, progress),
            "load_1_min_at_the_end": round(os.getloadavg()[0], 2),
        }


@contextlib.contextmanager
def _serving(home: Path, env: Mapping[str, str]) -> Generator[Link]:
    """Run a server on the data folder, with the settings that the memory was filled with."""
    own = {name: value for name, value in env.items() if name.startswith(("PPS_", "NEO4J_"))}
    environment = {**os.environ, **own, "PPS_HOME": str(home), "PPS_SERVER__PORT": "0"}
    log = home / "bench-server.log"
    command = [sys.executable, "-P", "-m", "pps", "serve"]
    quiet = subprocess.DEVNULL
    with (
        log.open("wb") as said,
        subprocess.Popen(
            command, env=environment, stdin=quiet, stdout=said, stderr=said
        ) as process,
    ):
        try:
            until = clock.monotonic() + _START_S
            while (link := find(home)) is None:
                if process.poll() is not None or clock.monotonic() > until:
                    raise StoreUnavailable(f"the server did not come up; {log} says why")
                clock.sleep(0.05)
            yield link
        finally:
            process.terminate()


async def _filled(settings: Settings, turns: int, progress: Progress) -> int:
    """Tell the memory what it lacks of the world's turns; return how many facts it has."""
    async with App.open(settings) as app:
        await app.create(_ENTITY)
        async with app.memory(_ENTITY) as memory:
            there = (await memory.stats()).turns
            for begin in range(there, turns, _BATCH):
                end = min(turns, begin + _BATCH)
                await memory.remember_many(list(World().turns(begin, end)))
                await memory.settled()
                progress("turns", end, turns)
            return (await memory.stats()).facts


def _timed(
    link: Link, home: Path, asked: Sequence[str], prompts: int, progress: Progress
) -> dict[str, Any]:
    warm, timed = asked[prompts:], asked[:prompts]
    for prompt in warm:
        _ask(link, prompt)
    answered = [_spent(link, lambda prompt=prompt: _ask(link, prompt)) for prompt in timed]
    progress("round trips", prompts, prompts)
    process = [_spent(link, lambda prompt=prompt: _run(home, prompt)) for prompt in timed]
    progress("processes", prompts, prompts)
    idle = [_spent(link, lambda: _program("Nothing", home, b"")) for _ in range(min(prompts, 50))]
    return {
        "start_ms": _summary([took for took, _ in idle]),
        "round_trip_ms": _summary([took for took, _ in answered]),
        "process_ms": _summary([took for took, _ in process]),
        "given": sum(given for _, given in process),
        "pack_chars": round(statistics.mean([size for _, size in answered])),
    }


def _ask(link: Link, prompt: str) -> int:
    """Send what the hook sends, of a session of its own: none is shown the same twice; return the pack's length."""
    message = {
        "id": uuid.uuid4().hex,
        "at": clock.time(),
        "event": "UserPromptSubmit",
        "entity": _ENTITY,
        "session": str(uuid.uuid4()),
        "text": prompt,
        "within_s": 1.5,
    }
    connection = OwnerConnection(link.run, 10)
    try:
        headers = {
            **connection.owner_headers(),
            "Content-Type": "application/json",
            "Connection": "close",
        }
        connection.request("POST", "/owner/hooks", json.dumps(message), headers)
        return len(json.loads(connection.getresponse().read())["context"])
    finally:
        connection.close()


def _run(home: Path, prompt: str) -> int:
    """Run the hook; return 1 when it gave a pack."""
    session = str(uuid.uuid4())
    payload = {
        "session_id": session,
        "cwd": "/",
        "hook_event_name": "UserPromptSubmit",
        "prompt": prompt,
    }
    return int(bool(_program("UserPromptSubmit", home, json.dumps(payload).encode())))


def _program(event: str, home: Path, given: bytes) -> bytes:
    program = str(shipped("config/claude/hooks/pps_hook.py"))
    command = [sys.executable, "-I", "-S", program, event, "--entity", _ENTITY, "--home", str(home)]
    return subprocess.run(command, input=given, capture_output=True, check=True, timeout=60).stdout


def _spent(link: Link, work: Callable[[], int | bytes]) -> tuple[float, int]:
    """Time a piece of work, once what came before it is taken in: people take longer to write a prompt."""
    until = clock.monotonic() + _SETTLED_S
    while (stats := link.call("stats", _ENTITY, {})["data"]) and clock.monotonic() < until:
        if isinstance(stats, dict) and not stats["unfinished_jobs"] and not stats["index_lag"]:
            break
        clock.sleep(0.02)
    started = clock.perf_counter()
    found = work()
    return (clock.perf_counter() - started) * 1000, found if isinstance(found, int) else len(found)


def _summary(times_ms: Sequence[float]) -> dict[str, float]:
    ordered = sorted(times_ms)
    at = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
    found = {
        name: round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 1)
        for name, share in at.items()
    }
    return {**found, "most": round(ordered[-1], 1)}
