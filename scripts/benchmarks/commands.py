"""A quality run, from what was asked to a report; the command line only reads and shows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import report as files
from benchmarks.against import SYSTEMS
from benchmarks.measuring import Measured, Plan, answers_of, measure, report, throw_away
from benchmarks.plain import library
from benchmarks.quality import Progress
from benchmarks.reading import data_path, read
from benchmarks.scores import line
from pps.core.errors import InvalidRequest

STORES = ("embedded", "neo4j")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a quality run is asked for.

    Attributes:
        data: Folder or file; empty for the environment's.
        store: Empty for the setting's.
        answers: Where each single result goes, if anywhere.
        out, name: Folder and stem of the report's files, if any are wanted.
    """

    data: str = ""
    plan: Plan = field(default_factory=Plan)
    store: str = ""
    answers: Path | None = None
    out: Path | None = None
    name: str = "quality"

    def command(self) -> str:
        """Return the command that asks for the same, without this machine's paths."""
        words = ["scripts/bench quality --data DATA"]
        if self.plan.profiles != Plan().profiles:
            words += [f"--profile {name}" for name in self.plan.profiles]
        if self.plan.against:
            words.append(
                "--against "
                + ("all" if self.plan.against == SYSTEMS else ",".join(self.plan.against))
            )
        if self.plan.ablation:
            words.append("--ablation")
        if self.plan.packs:
            words.append("--packs")
        if self.store:
            words.append(f"--store {self.store}")
        if self.out:
            words.append(f"--out docs/benchmarks --name {self.name}")
        return " ".join(words)


async def quality(wanted: Wanted, env: Mapping[str, str], progress: Progress) -> dict[str, Any]:
    """Measure, write what is to be written, and return the report as plain JSON.

    Raises:
        ConfigError: Data or a library are missing, or a setting cannot be used.
        InvalidRequest: The data or an option are not what they should be.
    """
    if wanted.store not in ("", *STORES):
        raise InvalidRequest("store", f"must be one of {', '.join(STORES)}")
    path = data_path(wanted.data, env)
    conversations = await asyncio.to_thread(read, path)
    if wanted.out:
        library("matplotlib")  # said before the long work, not after it
    async with throw_away(env, wanted.store or None) as settings:
        measured = await measure(settings, conversations, wanted.plan, progress)
        found = report(settings, conversations, wanted.plan, measured)
    found = {"title": f"Recall quality: {path.stem}", "command": wanted.command(), **found}
    await asyncio.to_thread(_written, wanted, measured, found)
    return found


def _written(wanted: Wanted, measured: Measured, found: Mapping[str, Any]) -> None:
    if wanted.answers:
        lines = [json.dumps({"profile": name, **line(one)}) for name, one in answers_of(measured)]
        wanted.answers.write_text("\n".join(lines) + "\n", "utf-8")
    if wanted.out:
        files.save(found, wanted.out, wanted.name)
