"""A channel of a profile as TOML."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast


def profile_toml(description: str, episodes: Mapping[str, Any]) -> str:
    """Return a profile's file that fills the episodes channel alone."""
    lines = [f"description = {_value(description)}", "", "[channels.episodes]"]
    lines += [f"{name} = {_value(value)}" for name, value in episodes.items() if value is not None]
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, object]", value).items()
        return "{ " + ", ".join(f"{name} = {_value(one)}" for name, one in pairs) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(one) for one in cast("list[object]", value)) + "]"
    return json.dumps(value, ensure_ascii=False)
