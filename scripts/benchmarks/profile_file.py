"""A channel of a profile as TOML, with what the profile lets through."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

from pps.core.time import iso
from pps.core.values import ChannelName
from pps.journal.filters import ItemFilter
from pps.recall.profiles import restrictions


def profile_toml(
    description: str,
    settings: Mapping[str, Any],
    channel: ChannelName = "episodes",
    filters: ItemFilter | None = None,
) -> str:
    """Return a profile's file that fills one channel alone."""
    lines = [f"description = {_value(description)}", "", f"[channels.{channel}]"]
    lines += [f"{name} = {_value(value)}" for name, value in settings.items() if value is not None]
    lines += [
        "",
        "[filters]",
        *(
            f"{name} = {_value(value)}"
            for name, value in restrictions(filters or ItemFilter()).items()
        ),
    ]
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, object]", value).items()
        return "{ " + ", ".join(f"{name} = {_value(one)}" for name, one in pairs) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(one) for one in cast("list[object]", value)) + "]"
    if isinstance(value, datetime):
        return iso(value)
    return json.dumps(value, ensure_ascii=False)
