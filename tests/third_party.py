"""A distribution with a feature, put into a folder of its own as an installer would."""

from __future__ import annotations

import importlib
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.core.values import JSON
from pps.memory import Memory
from pps.operations.calls import Caller, Calls

SOURCE = Path(__file__).parent / "fixtures" / "third_party_feature" / "deadlines_feature.py"
MODULE = "deadlines_feature"


def install(folder: Path, *, source: str = "", name: str = "deadlines") -> Path:
    """Put the distribution into a folder, with the entry point; ``source`` takes the place of the module's text."""
    metadata = folder / "deadlines_feature-1.0.dist-info"
    metadata.mkdir(parents=True)
    (folder / f"{MODULE}.py").write_text(source or SOURCE.read_text("utf-8"), "utf-8")
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: deadlines-feature\nVersion: 1.0\n", "utf-8"
    )
    (metadata / "entry_points.txt").write_text(
        f"[pps.features]\n{name} = {MODULE}:FEATURE\n", "utf-8"
    )
    return folder


def add_to_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process see the distribution until the test ends."""
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    importlib.invalidate_caches()


def remove_from_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process lose the distribution, as if it had been uninstalled."""
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(folder)])
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    importlib.invalidate_caches()


def feature_settings(home: Path) -> Settings:
    """Return settings for a data folder. Features' tables lie beside the graph: SQL tables keep nothing that is erased."""
    return Settings(home=home, store="embedded", embedder=EmbedderSettings(name="hash"))


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[tuple[App, Calls]]:
    """Open a data folder with the entities ana and ben."""
    async with App.open(settings) as app:
        for name in ("ana", "ben"):
            await app.create(name)
        yield app, Calls(app)


async def ask(calls: Calls, name: str, operation: str, **arguments: JSON) -> dict[str, Any]:
    """Return what an entity's operation answers."""
    return (await calls.answer(Caller.of_entity(name), operation, arguments)).data


async def listed(calls: Calls, name: str = "ana") -> list[str]:
    """Return the texts of an entity's deadlines."""
    found = await ask(calls, name, "deadline_list")
    return [one["text"] for one in found["deadlines"]]


async def rows_in(memory: Memory) -> int:
    """Return how many rows of features' tables a memory has, whether the features are on or not."""
    return len(await memory.parts.journal.features.exported(("", "", "")))
