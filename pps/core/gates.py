"""One thing at a time by name, in one event loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Gate:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class Gates:
    """A lock for each name that somebody holds or waits for."""

    def __init__(self) -> None:
        self._gates: dict[str, _Gate] = {}

    @contextlib.asynccontextmanager
    async def hold(self, name: str) -> AsyncGenerator[None]:
        gate = self._gates.setdefault(name, _Gate())
        gate.users += 1
        try:
            async with gate.lock:
                yield
        finally:
            gate.users -= 1
            if gate.users == 0:
                self._gates.pop(name, None)
