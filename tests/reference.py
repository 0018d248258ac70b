"""docs/reference.md, made from the commands, tools and settings themselves; a test compares the two.

The figures of all documents are brought up to date with it; see ``figures``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

import pps
from pps.config import shipped
from pps.interfaces.cli import command_table
from pps.interfaces.cli.main import build
from pps.interfaces.mcp.tools import tool
from pps.operations.catalog import INDEX, OPERATIONS, index_text, operations_for
from tests.figures import write

TOOLS = Path(pps.__file__).parent / "interfaces" / "mcp" / "tools.json"
PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference.md"


def page() -> str:
    """Return the page as it should be."""
    parts = [
        "# Reference",
        "Made by `scripts/docs` from the program itself; a test fails when it is out of date.",
        "## Commands",
        *_commands(build(), "pps"),
        "## MCP tools",
        "The entity comes from the connection, never from an argument. Every tool refuses unknown arguments.",
        "Arguments are read by the tool's schema, over MCP, `/v1` and on the command line alike: a list or an object may "
        "come as JSON text, a number or `true` as text, `5.0` for 5, one value for a list of them, a node as its name, a "
        "name in camelCase, a choice in any case. A text stays a text wherever the schema takes any. A time without a "
        "zone is of the entity's zone; a date may be a day, a month (`2026-03`) or a year. What stands for an id is the "
        "id, its first 8 characters, the title of a record, or the name or an alias of a node; of several that are "
        "called so the error gives the kinds and ids, and nothing is erased by a name that a dry run did not show.",
        *(shown(verb) for verb in operations_for("entity").values()),
        "## Tools of a squad's members",
        "There for an entity that is a member of a squad, in the toolset `squad`; for anybody else they do not exist.",
        *(shown(verb) for verb in operations_for("member").values()),
        "## Project tools",
        "For router tokens and `pps mcp --router`; see [projects.md](projects.md). What a router does not reach reads "
        "as what is not there.",
        *(shown(verb) for verb in operations_for("router").values()),
        "## Runners of tasks",
        "`POST /v1/NAME` with a router token, and `pps task`.",
        *(shown(verb) for verb in operations_for("runner").values()),
        "## Settings",
        "Defaults < `$PPS_HOME/pps.toml` < `PPS_*` in the environment.",
        "```toml\n" + shipped("config/pps.toml").read_text(encoding="utf-8").strip() + "\n```",
    ]
    return "\n\n".join(parts) + "\n"


def _commands(command: click.Command, path: str) -> Iterator[str]:
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from _commands(child, f"{path} {name}")
        return
    yield f"### `{path}`\n\n{_help(command)}\n\n{_parameters(command)}".rstrip()


def _help(command: Any) -> str:
    text = "\n\n".join(
        " ".join(part.split()) for part in (command.help or "").split("\n\n")
    ).strip()
    examples = "\n".join(getattr(command, "examples", ()))
    return f"{text}\n\n```bash\n{examples}\n```" if examples else text


def _parameters(command: Any) -> str:
    rows: list[str] = []
    for one in command.params:
        flags = (*one.opts, *one.secondary_opts)
        names = (
            ", ".join(f"`{name}`" for name in flags)
            if one.param_type_name == "option"
            else f"`{one.metavar}`"
        )
        text = (getattr(one, "help", None) or "").replace("|", "\\|")
        rows.append(f"| {names} | {text} |")
    return "\n".join(["| argument | meaning |", "| --- | --- |", *rows]) if rows else ""


def shown(verb: Any) -> str:
    schema = verb.input_schema()
    required = set(schema.get("required", []))
    rows = [
        f"| `{name}`{' (required)' if name in required else ''} | {_about(about)} |"
        for name, about in schema.get("properties", {}).items()
    ]
    hints = [
        word
        for word, is_so in (
            ("reads only", verb.hints.read_only),
            ("may erase", verb.hints.destructive),
            ("safe to repeat", verb.hints.idempotent),
        )
        if is_so
    ]
    table = (
        "\n".join(["| argument | meaning |", "| --- | --- |", *rows]) if rows else "No arguments."
    )
    return f"### `{verb.name}`\n\n{verb.description} ({', '.join(hints) or 'adds'})\n\n{table}"


def _about(schema: dict[str, Any]) -> str:
    text = str(schema.get("description", "")).replace("|", "\\|")
    bounds = [
        f"{label} {schema[key]}"
        for key, label in (
            ("minimum", "least"),
            ("maximum", "most"),
            ("maxLength", "characters at most"),
        )
        if key in schema
    ]
    return " ".join([text, f"({', '.join(bounds)})" if bounds else ""]).strip()


def tools() -> str:
    """Return the file from which the bridge lists its tools: by audience and toolset."""
    found: dict[str, dict[str, list[Any]]] = {}
    for audience, offered in (
        ("entity", operations_for("entity", "member")),
        ("router", operations_for("router")),
    ):
        for one in offered.values():
            shown = tool(one)
            found.setdefault(audience, {}).setdefault(one.toolset, []).append(shown)
    return json.dumps(found, ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    INDEX.write_text(index_text(), encoding="utf-8")
    TOOLS.write_text(tools(), encoding="utf-8")
    command_table.FILE.write_text(
        command_table.render_table(command_table.describe_operations(OPERATIONS)), encoding="utf-8"
    )
    PAGE.write_text(page(), encoding="utf-8")
    write()
