"""A channel of a profile as TOML."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from pps.core.values import ChannelName


def profile_toml(description: str, settings: Mapping[str, Any], channel: ChannelName = "episodes") -> str:
    """Return a profile's file that fills one channel alone."""
    lines = [f"description = {_value(description)}", "", f"[channels.{channel}]"]
    lines += [f"{name} = {_value(value)}" for name, value in settings.items() if value is not None]
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, object]", value).items()
        return "{ " + ", ".join(f"{name} = {_value(one)}" for name, one in pairs) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(one) for one in cast("list[object]", value)) + "]"
    return json.dumps(value, ensure_ascii=False)
