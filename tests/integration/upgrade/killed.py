"""Upgrades of one folder after another, each in a process of its own that is killed at one step.

``python -m tests.integration.upgrade.killed FOLDER GROUP``: FOLDER/old is a memory that is to be upgraded. FOLDER/whole is upgraded
without a kill, which counts the steps; each other attempt works on a copy FOLDER/N and is killed (SIGKILL) at its step N: a
sample of them, or each with PPS_LONG=1. Writes the steps at which one was killed.

``--home HOME`` kills the upgrade of each entity of a home once, at another step each, and writes their names.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pps.journal import db, meta, old_graph
from pps.store import graph_upgrade
from tests.sampling import sample

STEPS: tuple[tuple[Any, str], ...] = (
    *((old_graph, name) for name in ("new_copy_folder", "finish_copy", "sync_folder")),
    *((old_graph, name) for name in ("remove_old_files", "_remove")),
    *(
        (graph_upgrade, name)
        for name in ("_back_up", "_copy_file", "_put", "_compare", "_copy_files")
    ),
    (graph_upgrade, "migrate_and_fill"),
    *((db, name) for name in ("_prepare", "_note_group", "_empty_log", "_layout")),
    (meta, "put"),
    *((Path, name) for name in ("rename", "unlink")),
)
"""Before and after each call of these a process is killed once."""


class Killer:
    """Kills this process at a step, or at none."""

    def __init__(self, at: int | None) -> None:
        self._at = at
        self.steps = 0

    def step(self) -> None:
        self.steps += 1
        if self.steps == self._at:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def stepping(*arguments: Any, **more: Any) -> Any:
            self.step()
            result = work(*arguments, **more)
            self.step()
            return result

        return stepping


def _attempt(folder: Path, group: str, at: int | None) -> int:
    """Upgrade a memory with a kill at a step; return how many steps there were."""
    killer = Killer(at)
    for owner, name in STEPS:
        setattr(owner, name, killer.around(getattr(owner, name)))
    graph_upgrade.upgrade(folder, group, "ana", lambda *_: killer.step())
    return killer.steps


def _forked(place: Path, group: str, at: int | None) -> int:
    """Make an attempt in a process of its own; return its steps, or the one at which it was killed, negative."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, str(_attempt(place, group, at)).encode())
        os._exit(0)
    os.close(writer)
    _, status = os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as counted:
        steps = counted.read()
    if os.WIFSIGNALED(status) and at:
        return -at
    if status:
        raise SystemExit(f"the attempt with a kill at {at} failed")
    return int(steps)


def _main(folder: Path, group: str) -> None:
    shutil.copytree(folder / "old", folder / "whole")
    steps = _forked(folder / "whole", group, None)
    chosen = sample(range(1, steps + 1), 30, "upgrade")
    for at in chosen:
        shutil.copytree(folder / "old", folder / str(at))
        if _forked(folder / str(at), group, at) != -at:
            raise SystemExit(f"nothing was killed at step {at}")
    sys.stdout.write(json.dumps(chosen))


def _in_home(home: Path) -> None:
    names: list[str] = []
    for graph in sorted(home.glob("entities/*/data/graph.lbug")):
        entity = graph.parent.parent
        group = tomllib.loads((entity / "entity.toml").read_text())["group"]
        at = 3 + 7 * len(names)
        if _forked(graph.parent, group, at) != -at:
            raise SystemExit(f"the upgrade of {entity.name} was not killed")
        names.append(entity.name)
    sys.stdout.write(json.dumps(names))


if __name__ == "__main__":
    if sys.argv[1] == "--home":
        _in_home(Path(sys.argv[2]))
    else:
        _main(Path(sys.argv[1]), sys.argv[2])
