"""Where PPS keeps its data: ``$PPS_HOME``, else the platform's data folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

INSIDE = "PPS_INSIDE_EXTRACTOR"
"""Set for a command that reads turns, and all that it starts: there, our hooks and ``pps mcp`` do nothing."""


def home_folder(env: Mapping[str, str] | None = None) -> Path:
    """Return the absolute data folder; it may not exist yet.

    Args:
        env: The environment to read; the process's own when None.
    """
    named = (os.environ if env is None else env).get("PPS_HOME", "").strip()
    if named:
        return Path(named).expanduser().absolute()
    import platformdirs  # 40 ms, and only where PPS_HOME is not set

    return Path(platformdirs.user_data_dir("pps", appauthor=False))
