"""Profiles with one perspective left out, to see what each brings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.profile_file import profile_toml
from pps.config import Settings
from pps.core.values import ChannelName
from pps.journal.filters import ItemFilter
from pps.recall.channel_profile import ChannelProfile
from pps.recall.perspectives import PERSPECTIVES
from pps.recall.profiles import Profiles

_NOT_SWITCHES = ("perspectives", "fusion", "k", "depth")


def ablated(settings: Settings, profile: str) -> dict[str, str]:
    """Write a profile for each part of the episodes channel left out in turn; return left out → profile's name.

    Parts are the perspectives, and whatever else the channel does that can be switched off (damping, reordering).
    The files lie in the ``profiles`` folder of the (throw-away) home, where the engine finds a user's own.
    """
    whole = Profiles.load(settings).get(profile)
    written: dict[str, str] = {}
    for left_out, channel in _without(whole.channels["episodes"]).items():
        if left_out == "cross_encoder" and settings.reranker.name == "none":
            continue
        written[left_out] = f"{profile}-without-{left_out}"
        write_profile(settings, written[left_out], channel, filters=whole.filters)
    return written


def write_profile(
    settings: Settings,
    name: str,
    own: Mapping[str, Any],
    channel: ChannelName = "episodes",
    filters: ItemFilter | None = None,
) -> None:
    """Write a profile that fills one channel alone into the home's own profiles, with what it lets through."""
    folder = settings.home / "profiles"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.toml").write_text(
        profile_toml("a profile of the bench", own, channel, filters), "utf-8"
    )


def _without(episodes: ChannelProfile) -> dict[str, dict[str, Any]]:
    whole = episodes.model_dump(exclude_defaults=True)
    weights = {name: weight for name, weight in episodes.perspectives.items() if weight > 0}
    found: dict[str, dict[str, Any]] = {}
    for left_out in weights:
        rest = {name: weight for name, weight in weights.items() if name != left_out}
        if any(PERSPECTIVES[name].finds for name in rest):
            found[left_out] = {**whole, "perspectives": rest}
    for switch in whole:
        if switch not in _NOT_SWITCHES:
            found[switch] = {name: value for name, value in whole.items() if name != switch}
    return found
