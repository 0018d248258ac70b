"""How an entity is added to a client, ready to paste."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from pathlib import Path

from pps.core.values import JSON


def config(name: str, url: str, token: str | None) -> dict[str, JSON]:
    """Return the client configurations of an entity.

    Args:
        name: The entity's.
        url: The server's address as it is set, for clients that speak HTTP; empty where any free port is taken.
        token: The entity's token; None leaves a place for it.
    """
    return _configs(f"pps-{name}", ["--entity", name], url, token)


def projects(roots: list[str], url: str, token: str | None) -> dict[str, JSON]:
    """Return the client configurations of the project tools; as ``config``. Over stdio they need no token."""
    limits = [part for root in roots for part in ("--root", root)]
    return _configs("pps-projects", ["--router", *limits], url, token)


def _configs(label: str, whose: list[str], url: str, token: str | None) -> dict[str, JSON]:
    command, *rest = _command()
    arguments: list[JSON] = [*rest, "mcp", *whose]
    stdio: dict[str, JSON] = {"command": command, "args": arguments}
    if home := os.environ.get("PPS_HOME"):
        stdio["env"] = {"PPS_HOME": str(Path(home).expanduser().absolute())}
    url = url or "http://127.0.0.1:<port>"
    bearer = f"Authorization: Bearer {token or '<token>'}"
    http: dict[str, JSON] = {
        "type": "http",
        "url": f"{url}/mcp",
        "headers": {"Authorization": f"Bearer {token or '<token>'}"},
    }
    return {
        "claude_code": _line("claude", "mcp", "add", label, *_env(stdio), "--", command, *map(str, arguments)),
        "claude_code_http": _line(
            "claude", "mcp", "add", "--transport", "http", label, f"{url}/mcp", "--header", bearer
        ),
        "json": {"mcpServers": {label: stdio}},
        "json_http": {"mcpServers": {label: http}},
    }


def shown(configs: dict[str, JSON]) -> str:
    """Return the configurations as text to read and paste."""
    return "\n".join(
        (
            "Claude Code (stdio; starts the server when it is away):",
            f"  {configs['claude_code']}",
            "Any MCP client (stdio):",
            _indented(configs["json"]),
            "Over HTTP, while `pps serve` runs (on the port of the setting server.port, or of its --port):",
            f"  {configs['claude_code_http']}",
            _indented(configs["json_http"]),
        )
    )


def _command() -> list[str]:
    beside = Path(sys.executable).with_name("pps")
    if beside.exists():
        return [str(beside)]
    found = shutil.which("pps")
    return [found] if found else [sys.executable, "-m", "pps"]


def _env(stdio: dict[str, JSON]) -> list[str]:
    env = stdio.get("env")
    pairs = env.items() if isinstance(env, dict) else ()
    return [part for name, value in pairs for part in ("-e", f"{name}={value}")]


def _line(*parts: str) -> str:
    return shlex.join(parts)


def _indented(value: JSON) -> str:
    return "\n".join(f"  {line}" for line in json.dumps(value, indent=2, ensure_ascii=False).splitlines())
