"""What of a text is worth keeping: everything but the packs that were handed out before."""

from __future__ import annotations

from datetime import datetime

from pps.context.fence import Marks, marks_in, strip_known
from pps.journal.journal import Journal


async def without_packs(text: str, journal: Journal, said_at: datetime | None = None) -> str:
    """Return a text without the packs that this entity's memory gave out; the same text when there is none.

    A fence with a mark of another entity's, of nobody's, or of more than 30 days before the text was said (now, when
    that is not given) is kept: it is what was said.
    """
    if not marks_in(text):
        return text
    marks = await marks_of(journal)
    return strip_known(text, lambda mark: marks.known(mark, said_at))


async def marks_of(journal: Journal) -> Marks:
    """Return the marks of the packs of a journal's entity."""
    return Marks(await journal.secret("fence"))
