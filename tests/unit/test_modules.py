"""File names are unique within the package, so that a basename identifies one module."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pps

_ROOT = Path(pps.__file__).parent
_PAIRS_FOR_NOW = {"desk.py"}  # a hook's desk and the squad's


def test_a_basename_occurs_once() -> None:
    """Who says ``finding.py`` means one file; packages' own files (``__init__``, ``__main__``) are apart."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in _ROOT.rglob("*.py"):
        if not path.stem.startswith("__"):
            places[path.name].append(str(path.relative_to(_ROOT)))
    twice = {
        name: sorted(found)
        for name, found in places.items()
        if len(found) > 1 and name not in _PAIRS_FOR_NOW
    }
    assert not twice, f"a basename occurs once in pps/: {twice}"
