"""Files that are shipped with PPS: profiles, default settings, the entity template."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from pps.core.errors import ConfigError


def shipped(path: str) -> Traversable:
    """Return a shipped file or folder by its path in the source tree.

    In an installed wheel it lies under ``pps/_shipped``; in an editable checkout it is read from
    the checkout itself.

    Args:
        path: Such as ``config/pps.toml`` or ``entities/_template``; relative, without ``..``.

    Raises:
        ConfigError: The path leaves the shipped folders, or nothing is there.
    """
    parts = path.split("/")
    if path.startswith("/") or ".." in parts or parts[0] not in ("config", "entities"):
        raise ConfigError(f"shipped file {path!r} must lie under config/ or entities/")
    place = files("pps").joinpath("_shipped", *parts)
    if not _exists(place):
        place = Path(__file__).parents[2].joinpath(*parts)
    if not _exists(place):
        raise ConfigError(
            f"shipped file {path!r} is missing: this installation is incomplete, reinstall pps"
        )
    return place


def _exists(place: Traversable) -> bool:
    return place.is_file() or place.is_dir()
