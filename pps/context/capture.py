"""What of a text is worth keeping: everything but the packs that were handed out before."""

from __future__ import annotations

from pps.context.fence import marks_in, strip_known
from pps.journal.journal import Journal


async def without_packs(text: str, journal: Journal) -> str:
    """Return a text without the packs that this entity's memory gave out; the same text when there is none.

    A fence with a mark of another entity's, or of nobody's, is kept: it is what was said.
    """
    marks = marks_in(text)
    if not marks:
        return text
    known = {mark for mark in marks if await journal.known_mark(mark)}
    return strip_known(text, known.__contains__)
