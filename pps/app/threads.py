"""Long blocking work in a thread that reports progress and can be cancelled.

When the caller is cancelled, the thread ends before the caller goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Progress: TypeAlias = Callable[[str, int, int], None]
"""Is told what is being done, how much of it is done, and of how much.

0 where that is not known.
"""


async def in_thread(work: Callable[[Progress], T], progress: Progress | None) -> T:
    """Run ``work`` in a thread and return its result.

    When the caller is cancelled, the next progress report of ``work`` raises in its thread. The
    cancellation continues only when the thread has ended, so that the resources it changes stay
    held until then.
    """
    loop = asyncio.get_running_loop()
    is_given_up = threading.Event()

    def tell(activity: str, done: int, total: int) -> None:
        if is_given_up.is_set():
            raise _GivenUpError
        if progress is not None:
            loop.call_soon_threadsafe(progress, activity, done, total)

    running = asyncio.ensure_future(asyncio.to_thread(work, tell))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        is_given_up.set()
        while not running.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([running])
        running.exception()  # nobody else asks for it
        raise


class _GivenUpError(Exception):
    """The caller was cancelled and no longer waits for the work."""
