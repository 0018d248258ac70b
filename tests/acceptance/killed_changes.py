"""What ``test_killed_changes`` runs in processes of its own: a text is changed, and a given step kills the process."""

from __future__ import annotations

import asyncio
from importlib import import_module
from pathlib import Path

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.index.entity import EntityIndexes
from pps.ingest.pipeline import Pipeline
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.journal import Journal
from pps.journal.queue import JobQueue
from pps.journal.versions import Versions
from tests.acceptance.killed_steps import arm, deadly
from tests.model_server import reading_by

import_module("graphiti_core.graphiti")  # once, in the process that the others are forked from

STEPS: tuple[tuple[type, str], ...] = (
    (Versions, "revise"),
    (JobQueue, "take"),
    (Journal, "mark_dirty"),
    (IsolatedGraphitiClient, "save_nodes"),
    (IsolatedGraphitiClient, "save_facts"),
    (IsolatedGraphitiClient, "delete_mentions"),
    (IsolatedGraphitiClient, "save_episodes"),
    (IsolatedGraphitiClient, "save_mentions"),
    (EntityIndexes, "apply"),
    (Journal, "clear_dirty"),
    (JobQueue, "end"),
    (IsolatedGraphitiClient, "extract_episode"),
    (Pipeline, "read"),
    (JobQueue, "finish"),
)
"""The methods that make each step of a change durable; a process is killed right after one."""


def settings(home: Path, model_url: str) -> Settings:
    extractor = reading_by(model_url)
    return Settings(home=home, embedder=EmbedderSettings(name="hash"), extractor=extractor)


def text(number: int) -> str:
    """Return the words of a round; the second sentence is the same in all."""
    return f"Ana lives in City{number}. Ben knows Ana."


def killed_at(home: str, model_url: str, turn: str, number: int) -> None:
    """Change the text in a process that dies at a step; it must not come to its end."""
    deadly(*STEPS[number])
    asyncio.run(_changed(settings(Path(home), model_url), turn, number))


async def _changed(found: Settings, turn: str, number: int) -> None:
    async with App.open(found) as app, app.memory("ana") as memory:
        assert await memory.settled(60)
        arm()
        await memory.records.update(turn, content=text(number + 1))
