"""Where PPS keeps its data: ``$PPS_HOME``, else the platform's data folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

INSIDE = "PPS_INSIDE_EXTRACTOR"
"""Set for an extractor command and its children, in which hooks and ``pps mcp`` do nothing."""


def home_folder(env: Mapping[str, str] | None = None) -> Path:
    """Return the absolute data folder; it may not exist yet.

    Args:
        env: The environment to read; the process's own when None.
    """
    named = (os.environ if env is None else env).get("PPS_HOME", "").strip()
    if named:
        return Path(named).expanduser().absolute()
    import platformdirs  # takes 40 ms to import; not needed above

    return Path(platformdirs.user_data_dir("pps", appauthor=False))
