"""Profiles with one perspective left out, to see what each brings."""

from __future__ import annotations

from pps.config import Settings
from pps.recall.profiles import ChannelProfile, Profiles


def ablated(settings: Settings, profile: str) -> list[str]:
    """Write a profile for each perspective of the episodes channel left out in turn; return their names.

    They lie in the ``profiles`` folder of the (throw-away) home, where the engine finds a user's own. What damps
    turns that say little is left out like a perspective.
    """
    episodes = Profiles.load(settings).get(profile).channels["episodes"]
    folder = settings.home / "profiles"
    folder.mkdir(parents=True, exist_ok=True)
    names: list[str] = []
    for left_out in [*episodes.perspectives, *(["substance"] if episodes.substance else [])]:
        name = f"{profile}-without-{left_out}"
        (folder / f"{name}.toml").write_text(_toml(episodes, left_out), "utf-8")
        names.append(name)
    return names


def _toml(episodes: ChannelProfile, left_out: str) -> str:
    lines = [f'description = "without {left_out}"', "[channels.episodes]"]
    lines += [f'fusion = "{episodes.fusion}"', f"k = {episodes.k}", f"depth = {episodes.depth}"]
    if episodes.substance and left_out != "substance":
        lines.append(f"substance = {{ floor = {episodes.substance.floor}, words = {episodes.substance.words} }}")
    lines.append("[channels.episodes.perspectives]")
    lines += [f"{name} = {weight}" for name, weight in episodes.perspectives.items() if name != left_out]
    return "\n".join(lines) + "\n"
