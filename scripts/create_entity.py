#!/usr/bin/env python3
"""Make an entity: ``scripts/create_entity.py NAME``, the same as ``pps entity create NAME``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_PYTHON = Path(__file__).parents[1] / ".venv" / "bin" / "python"

try:
    from pps.__main__ import main
except ModuleNotFoundError:
    if not _PYTHON.exists() or Path(sys.prefix) == _PYTHON.parents[1]:
        sys.exit("pps is not installed here: run scripts/setup first")
    os.execv(_PYTHON, [str(_PYTHON), __file__, *sys.argv[1:]])  # noqa: S606 - the project's own interpreter

if __name__ == "__main__":
    sys.argv[1:1] = ["entity", "create"]
    main()
