"""The clients that run our hooks, as ``config/clients/hooks.toml`` describes them.

The hook program and the server are the same for all. What a client calls the fields of an event,
the program knows (``ADAPTERS`` in ``config/claude/hooks/pps_hook.py``).
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pps.config import shipped


@dataclass(frozen=True, slots=True)
class ClientEvent:
    """One event of a client.

    Attributes:
        ours: What the hook program and the server call it.
        timeout_s: How long the client waits; the program keeps shorter times of its own.
        matcher: Of its tools, a regular expression; empty for all, and where there are none.
    """

    ours: str
    timeout_s: int
    matcher: str = ""


@dataclass(frozen=True, slots=True)
class HookClient:
    """A client and its settings.

    Attributes:
        name: Given by ``--client``, and to the hook program.
        title: What people call it.
        form: ``groups``: events hold groups of hooks, as Claude Code has them; ``flat``: events
            hold hooks; ``plugin``: a plugin of ours tells the hook program.
        user: Its settings file, from the home folder.
        project: The same, from a project's folder; empty where it has none.
        home_variable: Names another folder for the first part of ``user``.
        events: Its events; of a plugin none, since the plugin knows them.
        timeouts: In which unit its settings give a time-out; empty: they give none.
        then: What a person does next, in a sentence.
    """

    name: str
    title: str
    form: Literal["groups", "flat", "plugin"]
    user: str
    project: str = ""
    home_variable: str = ""
    events: Mapping[str, ClientEvent] = field(default_factory=dict[str, ClientEvent])
    timeouts: Literal["s", "ms", ""] = "s"
    then: str = ""

    def settings_file(self, scope: str, project: Path) -> Path:
        """Return the settings file of a scope: ``user``, ``project`` or Claude Code's ``local``."""
        if scope == "user":
            folder, _, rest = self.user.partition("/")
            moved = os.environ.get(self.home_variable) if self.home_variable else None
            return Path(moved).expanduser() / rest if moved else Path.home() / folder / rest
        if scope == "local":
            return project / ".claude" / "settings.local.json"
        return project / self.project

    @property
    def scopes(self) -> tuple[str, ...]:
        if self.name == "claude":
            return "user", "project", "local"
        return ("user", "project") if self.project else ("user",)


@cache
def hook_clients() -> Mapping[str, HookClient]:
    """Return the clients by name, Claude Code first."""
    tables = tomllib.loads(shipped("config/clients/hooks.toml").read_text("utf-8"))
    return {name: _client(name, table) for name, table in tables.items()}


def _client(name: str, table: Mapping[str, Any]) -> HookClient:
    events = {event: ClientEvent(**row) for event, row in table.get("events", {}).items()}
    settings: dict[str, Any] = {key: value for key, value in table.items() if key != "events"}
    return HookClient(name=name, events=events, **settings)
