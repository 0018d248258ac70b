"""Settings for ``pps config``: in effect, an entity's own, and a running server's that differ."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pps.config import load
from pps.config.loading import EffectiveSetting, effective_settings, without_credentials
from pps.core.errors import PPSError, UnknownEntity
from pps.entities.own import own_lines
from pps.ingest.redact import redact
from pps.server import Link, runfile


@dataclass(frozen=True, slots=True)
class SettingsShown:
    """The settings in effect, in order.

    ``differing`` is key → value of a running server that has another one.
    """

    home: Path
    settings: tuple[EffectiveSetting, ...]
    differing: dict[str, str]

    @classmethod
    def of(cls, home: Path, entity: str = "") -> SettingsShown:
        """Return what is in effect in a data folder, for an entity where one is named.

        Raises:
            ConfigError: A setting is wrong; it is named, of an entity's file with its line.
            UnknownEntity: There is no folder of such an entity.
        """
        settings = {setting.key: setting for setting in effective_settings()}
        if entity:
            settings.update((setting.key, setting) for setting in _own(home, entity))
        cleaned = [
            EffectiveSetting(setting.key, redact(setting.value).text, setting.source)
            for setting in settings.values()
        ]
        return cls(home, tuple(cleaned), _differing(home))


def _own(home: Path, entity: str) -> list[EffectiveSetting]:
    folder = home / "entities" / entity
    if not (folder / "entity.toml").is_file():
        raise UnknownEntity(
            f"no entity {entity!r}; `pps entity list` shows those there are", name=entity
        )
    return [
        EffectiveSetting(key, value, f"entity.toml line {line}")
        for key, (value, line) in own_lines(folder).items()
    ]


def _differing(home: Path) -> dict[str, str]:
    """Return the settings of a running server that differ from those here; no secrets."""
    try:
        run = runfile.read(home)
        status = Link(run).status() if run else {}
    except PPSError:  # no server runs or answers; `pps status` and `pps doctor` report it
        return {}
    theirs = cast("dict[str, str]", status.get("settings") or {})
    here = load().told()
    return {
        name.removeprefix("PPS_").replace("__", ".").lower(): redact(
            without_credentials(value)
        ).text
        for name, value in theirs.items()
        if name.startswith("PPS_") and here.get(name, value) != value
    }
