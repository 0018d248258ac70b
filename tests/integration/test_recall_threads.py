"""How little of a recall is handed to threads: each hand-over costs more than most searches take."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from pps.memory import Memory
from pps.recall.request import RecallRequest
from tests.integration.recall_scene import engine

QUERY = "What does Tomas sell in Oslo, and who grows roses?"


@pytest.mark.parametrize("profile", ["ambient", "facts"])
async def test_searches_of_a_recall_that_start_together_share_a_thread(
    scene: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str
) -> None:
    recall = engine(scene, tmp_path).recall
    await recall(RecallRequest("Who bakes?", profile=profile))
    threads: list[str] = []
    submit = ThreadPoolExecutor.submit

    def noted(
        executor: ThreadPoolExecutor, work: Callable[..., object], *values: object
    ) -> Future[object]:
        def run() -> object:
            threads.append(threading.current_thread().name)
            return work(*values)

        return submit(executor, run)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", noted)
    recalled = await recall(RecallRequest(QUERY, profile=profile))
    assert recalled["facts"]
    assert 0 < sum(name.startswith("pps-index") for name in threads) <= 7
