"""What exploring costs: how much of what answers a question is in a pack that gives some room to other topics."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.causes import read_causes
from benchmarks.quality import Progress
from pps.app import App
from pps.core.values import Turn

TOKENS = 600
"""Of a pack: so few that what is explored takes room from what was found."""


async def explored(app: App, entity: str, progress: Progress) -> dict[str, Any]:
    """Ask each question of the coding project for a pack with and without exploring, topics having been looked for.

    Return the share of the answers that the packs show, and how many packs held a memory of another topic.
    """
    (whole,) = read_causes()
    questions, shares, drawn = whole.scored(), dict[bool, list[float]]({False: [], True: []}), 0
    async with app.memory(entity) as memory:
        memory.topics.injecting.chance.seed(27)
        for number, question in enumerate(questions):
            wanted = {whole.turns[one].content for one in question.gold}
            for explore in (False, True):
                pack = await memory.sessions.inject(question.text, TOKENS, explore=explore)
                items = await memory.get(pack.shown) if pack.shown else []
                told = {one.content for one in items if isinstance(one, Turn)}
                shares[explore].append(len(wanted & told) / len(wanted))
                drawn += bool(pack.sections.get("explored"))
            progress("exploring", number + 1, len(questions))
    recall = {explore: round(100 * float(np.mean(some)), 1) for explore, some in shares.items()}
    return {
        "questions": len(questions),
        "without": recall[False],
        "with": recall[True],
        "explored": drawn,
    }
