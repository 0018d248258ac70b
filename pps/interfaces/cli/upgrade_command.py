"""``pps upgrade`` in this process, while no server runs.

A server would open memories, which would upgrade them unasked.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any

from pps.core.file_lock import FileLock
from pps.server import runfile

if TYPE_CHECKING:
    from pps.core.values import JSON


def upgraded_here(
    arguments: Mapping[str, JSON],
) -> Generator[dict[str, JSON], None, dict[str, Any]]:
    """Yield the progress of an upgrade and return its answer, as ``Link.follow`` does.

    Raises:
        StoreConflict: A server was started meanwhile.
        PPSError: An error of the operation.
    """
    reports: queue.SimpleQueue[dict[str, JSON] | None] = queue.SimpleQueue()
    answers: list[dict[str, Any]] = []
    errors: list[BaseException] = []

    def tell(stage: str, done: int, total: int) -> None:
        reports.put({"what": stage, "done": done, "total": total})

    async def answered() -> dict[str, Any]:
        from pps.app import App  # not at the top: help imports nothing heavy
        from pps.config import load
        from pps.operations.maintenance import upgrade

        settings = load()
        with FileLock(runfile.lock_file(settings.home), what="pps upgrade"):
            async with App.open(settings) as app:
                answer = await upgrade.answer(app, upgrade.parse(arguments), tell)
        return {"data": answer.named, "text": answer.text}

    def work() -> None:
        try:
            answers.append(asyncio.run(answered()))
        except BaseException as error:  # noqa: BLE001 - raised again by whoever waits
            errors.append(error)
        finally:
            reports.put(None)

    thread = threading.Thread(target=work, name="pps-upgrade")
    thread.start()
    while (report := reports.get()) is not None:
        yield report
    thread.join()
    if errors:
        raise errors[0]
    return answers[0]
