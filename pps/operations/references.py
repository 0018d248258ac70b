"""References in operations' texts: ``{limit}`` names an input's field, ``{get}`` an operation.

``{dry_run=false}`` names a field with the value that carries something out. Each interface spells a
reference in its own terms: ``'limit'`` for tools and HTTP, ``--limit`` and `` `pps anchors get` ``
on the command line.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_REFERENCE = re.compile(r"\{([a-z]+(?:_[a-z]+)*)(=false)?\}")


def spelled(text: str, spell: Callable[[str, str], str]) -> str:
    """Return a text with each reference spelled by ``spell(name, suffix)``.

    Suffix: ``=false`` or "".
    """
    return _REFERENCE.sub(lambda match: spell(match[1], match[2] or ""), text)


def for_tools(text: str) -> str:
    """Return a text for models and HTTP clients: names in quotes, ``dry_run=false`` unchanged."""
    return spelled(text, tool_name)


def tool_name(name: str, value: str) -> str:
    """Spell a reference for tools and HTTP."""
    return f"{name}{value}" if value else f"'{name}'"


def names_in(text: str) -> list[str]:
    """Return the names that a text refers to."""
    return [match[1] for match in _REFERENCE.finditer(text)]
