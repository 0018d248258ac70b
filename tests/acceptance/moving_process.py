"""A process that moves a memory and kills itself at a step; see ``test_moving``."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pps.app import App
from pps.config import EmbedderSettings, PostgresqlSettings, Settings
from pps.entities.moves import Moves, Place, place_of
from pps.entities.registry import Registry
from pps.journal import copying

STEPS = ("noted", "half copied", "copied", "compared", "switched", "card written")


def dies(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def dying_after(function: Callable[..., Any], calls: int = 1) -> Callable[..., Any]:
    made = 0

    def call(*arguments: Any, **named: Any) -> Any:
        nonlocal made
        result = function(*arguments, **named)
        made += 1
        if made == calls:
            dies()
        return result

    return call


def arm(step: str) -> None:
    """Have this process end right after a step."""
    if step == "noted":
        Moves.begin = dying_after(Moves.begin)
    elif step == "half copied":
        copying.insert_rows = dying_after(copying.insert_rows, 6)
    elif step == "copied":
        copying.check_same = dies
    elif step == "compared":
        Registry.move = dies
    elif step == "switched":
        Moves.switch = dying_after(Moves.switch)
    else:
        Registry.move = dying_after(Registry.move)


async def main(home: str, name: str, target: Place, step: str) -> None:
    database = {"url": os.environ["URL"], "owner_url": os.environ["OWNER_URL"]}
    settings = Settings(
        home=Path(home),
        embedder=EmbedderSettings(name="hash"),
        postgresql=PostgresqlSettings.model_validate(database),
    )
    async with App.open(settings) as app:
        arm(step)
        await app.move(name, target)


if __name__ == "__main__":
    home, name, target, step = sys.argv[1:]
    asyncio.run(main(home, name, place_of(target), step))
