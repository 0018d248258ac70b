"""What of a text is worth keeping: everything but the packs that were handed out before."""

from __future__ import annotations

from pps.context.fence import Marks, marks_in, strip_known
from pps.journal.journal import Journal


async def without_packs(text: str, journal: Journal) -> str:
    """Return a text without the packs that this entity's memory gave out; the same text when there is none.

    A fence with a mark of another entity's, or of nobody's, is kept: it is what was said.
    """
    return strip_known(text, (await marks_of(journal)).known) if marks_in(text) else text


async def marks_of(journal: Journal) -> Marks:
    """Return the marks of the packs of a journal's entity."""
    return Marks(await journal.secret("fence"))
