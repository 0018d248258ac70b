"""Who an entity is, in its own words: ``identity.md`` of its folder, for the pack of a beginning conversation."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from string import Template

from pps.config import shipped

LONGEST = 1_500
"""Most characters of it in a pack."""
_FILE = "identity.md"


def identity_of(folder: Path, name: str) -> str:
    """Return what the file says; nothing when there is none, when nobody has edited it, or when it is a link."""
    try:
        file = os.open(folder / _FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    with open(file, "rb") as opened:  # noqa: PTH123 - a descriptor, so that what was checked is what is read
        if not stat.S_ISREG(os.fstat(file).st_mode) or os.fstat(file).st_nlink > 1:
            return ""
        text = opened.read(4 * LONGEST).decode("utf-8", "ignore").strip()
    untouched = Template(shipped(f"entities/_template/{_FILE}").read_text("utf-8")).safe_substitute(name=name).strip()
    return "" if text == untouched else text
