"""What is said of an answer in the same words wherever it is read.

Imports little, for the command line.
"""

from __future__ import annotations

from datetime import datetime, tzinfo

from pps.core.time import shown_day

NOTHING_NEAR = "nothing here is near this text: no name, no rare word and no meaning in common"


def superseded(text: str, at: datetime, zone: tzinfo, *, sure: bool) -> str:
    """Return what stands behind an earlier statement that is shown: the day, in a zone, and what was said then."""
    return f"{'superseded' if sure else 'possibly outdated since'} {shown_day(at, zone)}: {text}"
