"""The rules of the house on modules: a name of a file occurs once, and a module is no longer than is read at once."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pps

_ROOT = Path(pps.__file__).parent
_MAX_LINES = 400
_PAIRS_FOR_NOW = {"desk.py"}  # a hook's desk and the squad's


def test_a_basename_occurs_once() -> None:
    """Who says ``finding.py`` means one file; packages' own files (``__init__``, ``__main__``) are apart."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in _ROOT.rglob("*.py"):
        if not path.stem.startswith("__"):
            places[path.name].append(str(path.relative_to(_ROOT)))
    twice = {name: sorted(found) for name, found in places.items() if len(found) > 1 and name not in _PAIRS_FOR_NOW}
    assert not twice, f"a basename occurs once in pps/: {twice}"


def test_a_module_has_at_most_400_lines() -> None:
    too_long: dict[str, int] = {}
    for path in _ROOT.rglob("*.py"):
        name, lines = str(path.relative_to(_ROOT)), len(path.read_text(encoding="utf-8").splitlines())
        if lines > _MAX_LINES:
            too_long[name] = lines
    assert not too_long, f"a module has at most {_MAX_LINES} lines: {too_long}"
