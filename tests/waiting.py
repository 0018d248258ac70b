"""Wait until something is so. Only what hangs takes as long as the limit: how fast a thing is, no test says."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

PATIENCE_S = 120.0
_PAUSE_S = 0.05


def wait_until(
    holds: Callable[[], bool],
    *,
    timeout_s: float = PATIENCE_S,
    pause_s: float = _PAUSE_S,
    state: Callable[[], object] = lambda: "",
) -> None:
    """Ask again and again until ``holds`` is true; after the limit fail with what ``state`` returns."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, f"not so after {timeout_s:.0f} s: {state()}"
        time.sleep(pause_s)


async def settle_until(
    holds: Callable[[], bool | Awaitable[bool]],
    *,
    timeout_s: float = PATIENCE_S,
    pause_s: float = _PAUSE_S,
) -> None:
    """Do the same while the loop goes on; ``holds`` may be a coroutine function."""
    deadline = time.monotonic() + timeout_s
    while True:
        answer = holds()
        if answer if isinstance(answer, bool) else await answer:
            return
        assert time.monotonic() < deadline, f"not so after {timeout_s:.0f} s"
        await asyncio.sleep(pause_s)
