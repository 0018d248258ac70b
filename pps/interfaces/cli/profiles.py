"""``pps profiles``: the ways to rank, shipped, of one's own and Graphiti's; each is checked before it is listed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from pps.interfaces.cli.output import AsJson, show_json

if TYPE_CHECKING:
    from pps.core.values import JSON
    from pps.recall.profiles import Profile


def profiles(as_json: AsJson = False) -> None:
    """List the ways to rank that `pps recall --profile` takes: shipped ones, yours, and Graphiti's recipes.

    Yours are TOML files in $PPS_HOME/profiles; one of a shipped one's name replaces it. A mistake in one is
    told with the file, the key and the bound. A running server finds a new file by itself; a changed one it reads
    when it starts again (`pps serve --stop`). What a profile's [filters] let through is told with it; a caller's own
    filter holds beside them. With --json: channels, weights and limits too.

    Example: pps profiles
    """
    # Not at the top: the engine takes seconds to import, and every other command does without.
    from pps.config import load
    from pps.recall.profiles import Profiles, in_words

    found = Profiles.load(load()).all()
    if as_json:
        show_json([_shown(profile) for profile in found])
        return
    width = max(len(profile.name) for profile in found)
    for profile in found:
        only = f"; only {words}" if (words := in_words(profile.filters)) else ""
        typer.echo(f"{profile.name:<{width}}  {profile.description} ({profile.origin}{only})")


def _shown(profile: Profile) -> dict[str, JSON]:
    from pps.recall.profiles import as_json

    channels: dict[str, JSON] = {
        name: {"fusion": channel.fusion, "perspectives": dict(channel.perspectives)}
        for name, channel in profile.channels.items()
    }
    return {
        "name": profile.name,
        "origin": profile.origin,
        "description": profile.description,
        "channels": channels,
        "limits": {str(name): most for name, most in profile.limits.items()},
        "max_limit": profile.max_limit,
        "filters": as_json(profile.filters),
    }
