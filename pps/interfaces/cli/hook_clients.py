"""The clients that run our hooks: which of their events is which of ours, and where their settings lie.

The hook program and the server are the same for all. What a client calls the fields of an event, the program knows
(``ADAPTERS`` in ``config/claude/hooks/pps_hook.py``).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_CLAUDE_TOOLS = "^(Bash|PowerShell|Edit|Write|NotebookEdit|Agent|Task|WebFetch|WebSearch|mcp__.*)$"


@dataclass(frozen=True, slots=True)
class ClientEvent:
    """One event of a client.

    Attributes:
        ours: What the hook program and the server call it.
        matcher: Of its tools, a regular expression; empty for all, and where there are none.
        timeout_s: How long the client waits; the program keeps shorter times of its own.
    """

    ours: str
    matcher: str
    timeout_s: int


@dataclass(frozen=True, slots=True)
class HookClient:
    """A client and its settings.

    Attributes:
        name: Given by ``--client``, and to the hook program.
        title: What people call it.
        form: ``groups``: events hold groups of hooks, as Claude Code has them; ``flat``: events hold hooks; ``plugin``:
            a plugin of ours tells the hook program.
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
    project: str
    home_variable: str
    events: Mapping[str, ClientEvent]
    timeouts: Literal["s", "ms", ""] = "s"
    then: str = ""

    def settings_file(self, scope: str, project: Path) -> Path:
        """Return the settings file of a scope: ``user``, ``project``, or (Claude Code alone) ``local``."""
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


CLAUDE = HookClient(
    name="claude",
    title="Claude Code",
    form="groups",
    user=".claude/settings.json",
    project=".claude/settings.json",
    home_variable="CLAUDE_CONFIG_DIR",
    events={
        "SessionStart": ClientEvent("SessionStart", "", 5),
        "UserPromptSubmit": ClientEvent("UserPromptSubmit", "", 2),
        "PreToolUse": ClientEvent(
            "PreToolUse", "^(Bash|PowerShell|Edit|Write|NotebookEdit|Agent|Task)$", 1
        ),
        "PostToolUse": ClientEvent("PostToolUse", _CLAUDE_TOOLS, 3),
        "Stop": ClientEvent("Stop", "", 3),
        "PreCompact": ClientEvent("PreCompact", "", 3),
        "SessionEnd": ClientEvent("SessionEnd", "", 30),
    },
)

CLIENTS: Mapping[str, HookClient] = {
    client.name: client
    for client in (
        CLAUDE,
        HookClient(
            name="codex",
            title="Codex",
            form="groups",
            user=".codex/hooks.json",
            project=".codex/hooks.json",
            home_variable="CODEX_HOME",
            events={
                "SessionStart": ClientEvent("SessionStart", "", 5),
                "UserPromptSubmit": ClientEvent("UserPromptSubmit", "", 3),
                "PostToolUse": ClientEvent("PostToolUse", "^(Bash|apply_patch|mcp__.*)$", 3),
                "Stop": ClientEvent("Stop", "", 3),
                "PreCompact": ClientEvent("PreCompact", "", 3),
            },
            then="Codex asks you to trust new hooks: type /hooks in it. Older versions need "
            "`codex_hooks = true` under [features] in config.toml.",
        ),
        HookClient(
            name="cursor",
            title="Cursor",
            form="flat",
            user=".cursor/hooks.json",
            project=".cursor/hooks.json",
            home_variable="",
            events={
                "sessionStart": ClientEvent("SessionStart", "", 5),
                "beforeSubmitPrompt": ClientEvent("UserPromptSubmit", "", 3),
                "postToolUse": ClientEvent("PostToolUse", "Shell|Write", 3),
                "afterAgentResponse": ClientEvent("Stop", "", 3),
                "preCompact": ClientEvent("PreCompact", "", 3),
                "sessionEnd": ClientEvent("SessionEnd", "", 30),
            },
            timeouts="",
            then="Cursor gives its agent what a session begins with; the rest it asks for by the MCP tools.",
        ),
        HookClient(
            name="gemini",
            title="Gemini CLI",
            form="groups",
            user=".gemini/settings.json",
            project=".gemini/settings.json",
            home_variable="",
            events={
                "SessionStart": ClientEvent("SessionStart", "", 5),
                "BeforeAgent": ClientEvent("UserPromptSubmit", "", 3),
                "AfterTool": ClientEvent(
                    "PostToolUse",
                    "^(run_shell_command|write_file|replace|web_fetch|google_web_search|mcp_.*)$",
                    3,
                ),
                "AfterAgent": ClientEvent("Stop", "", 3),
                "PreCompress": ClientEvent("PreCompact", "", 3),
                "SessionEnd": ClientEvent("SessionEnd", "", 30),
            },
            timeouts="ms",
        ),
        HookClient(
            name="opencode",
            title="OpenCode",
            form="plugin",
            user=".config/opencode/plugins/pps.js",
            project=".opencode/plugins/pps.js",
            home_variable="",
            events={},
        ),
        HookClient(
            name="openclaw",
            title="OpenClaw",
            form="plugin",
            user=".openclaw/openclaw.json",
            project="",
            home_variable="OPENCLAW_STATE_DIR",
            events={},
            then="Restart its gateway: openclaw gateway restart.",
        ),
    )
}
