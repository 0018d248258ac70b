"""docs/reference.md and docs/reference/, made from the commands, tools and settings themselves; a test compares them.

The figures of all documents are brought up to date with it; see ``figures``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

import pps
from pps.config import shipped
from pps.interfaces.cli import command_table
from pps.interfaces.cli.main import build
from pps.interfaces.mcp.tools import tool
from pps.operations.catalog import INDEX, OPERATIONS, index_text, operations_for
from pps.operations.references import for_tools
from tests.figures import write

TOOLS = Path(pps.__file__).parent / "interfaces" / "mcp" / "tools.json"
DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = DOCS / "reference.md"
FOLDER = DOCS / "reference"


@dataclass(frozen=True, slots=True)
class Area:
    """A page of the reference.

    Attributes:
        slug: Its file's name.
        toolsets: Whose tools stand there, and the commands that are made from them.
        words: First words of further commands that stand there.
        about: What a reader should know first.
    """

    slug: str
    title: str
    toolsets: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    about: str = ""


_ARGUMENTS = (
    "Arguments are read by the tool's schema, over MCP, `/v1` and on the command line alike: a list or an object may "
    "come as JSON text, a number or `true` as text, `5.0` for 5, one value for a list of them, a node as its name, a "
    "name in camelCase, a choice in any case. A text stays a text wherever the schema takes any. A time without a "
    "zone is of the entity's zone; a date may be a day, a month (`2026-03`) or a year. What stands for an id is the "
    "id, its first 8 characters, the title of a record, or the name or an alias of a node; of several that are "
    "called so the error gives the kinds and ids, and nothing is erased by a name that a dry run did not show."
)
AREAS = (
    Area(
        "memory",
        "Remember and recall",
        ("core", "anchors"),
        ("profiles", "anchors", "import", "export", "watch"),
    ),
    Area(
        "records",
        "Records and the graph",
        ("records", "packs"),
        about="What records are: [records.md](../records.md).",
    ),
    Area(
        "upkeep",
        "Looking after a memory",
        ("upkeep",),
        ("jobs", "reindex", "reembed", "rebuild"),
    ),
    Area(
        "perspectives",
        "Perspectives and topics",
        ("perspectives",),
        about="What they find: [perspectives.md](../perspectives.md).",
    ),
    Area(
        "squads",
        "Squads",
        ("squad",),
        ("squad",),
        "The tools are there for an entity that is a member of a squad, in the toolset `squad`; for anybody else they do "
        "not exist ([squad.md](../squad.md)).",
    ),
    Area(
        "projects",
        "Projects and their tasks",
        ("projects", "tasks"),
        ("route", "router"),
        "The tools are for router tokens and `pps mcp --router`; those of tasks are `POST /v1/NAME` with a router token. "
        "What a router does not reach reads as what is not there ([projects.md](../projects.md)).",
    ),
    Area(
        "features",
        "Other features",
        about="What features of PPS add that has no page of its own ([features.md](../features.md)).",
    ),
    Area(
        "installation",
        "The installation",
        ("registry", "maintenance"),
        about="Entities, tokens, the server, clients, and what needs this machine.",
    ),
)
_ELSEWHERE, _INSTALLATION = AREAS[-2], AREAS[-1]
_AUDIENCES = ("entity", "member", "router", "runner")


def pages() -> dict[Path, str]:
    """Return file → text of the reference as it should be."""
    commands = dict(_leaves(build(), "pps"))
    written = {FOLDER / f"{area.slug}.md": _area_page(area, commands) for area in AREAS}
    written = {file: text for file, text in written.items() if text}
    written[FOLDER / "settings.md"] = _settings_page()
    return {PAGE: _index(commands), **written}


def _index(commands: dict[str, click.Command]) -> str:
    """Return the page that names every command and tool once, with a link to where it stands."""
    parts = [
        "# Reference",
        "Made by `scripts/docs` from the program itself; a test fails when it is out of date. Every setting: "
        "[settings](reference/settings.md).",
        "## Commands",
        "`pps COMMAND --help` teaches each with examples, and `--json` answers programs. Ids may be given by their first "
        "eight characters, as commands print them. A shell completes commands, options and names of entities after one "
        "line in its start-up file:",
        '```bash\neval "$(_PPS_COMPLETE=bash_source pps)"      # ~/.bashrc\n'
        'eval "$(_PPS_COMPLETE=zsh_source pps)"       # ~/.zshrc\n'
        "_PPS_COMPLETE=fish_source pps | source       # ~/.config/fish/config.fish\n```",
    ]
    areas = [area for area in AREAS if _has_page(area, commands)]
    for area in areas:
        rows = [
            f"| [`{path}`](reference/{area.slug}.md#{path.replace(' ', '-')}) | {_first_line(command)} |"
            for path, command in commands.items()
            if _area_of_command(path) is area
        ]
        if rows:
            parts += [f"### {area.title}", _table("command", rows)]
    parts += [
        "## MCP tools",
        "The entity comes from the connection, never from an argument. Every tool refuses unknown arguments. A client is "
        "offered the toolset `core`; `pps mcp --toolset core,records`, or `/mcp?toolset=all`, offers others, and a token "
        "may be given some alone: `pps entity token ana --toolset core`. Programs ask the same operations by "
        "`POST /v1/{operation}`, as `/openapi.json` says.",
        _ARGUMENTS,
    ]
    for area in areas:
        rows = [
            f"| [`{verb.name}`](reference/{area.slug}.md#{verb.name}) | {verb.toolset} | {verb.title} |"
            for verb in _verbs(area)
        ]
        if rows:
            header = "| tool | toolset | what it is for |\n| --- | --- | --- |"
            parts += [f"### Tools: {area.title}", "\n".join([header, *rows])]
    return "\n\n".join(parts) + "\n"


def _area_page(area: Area, commands: dict[str, click.Command]) -> str:
    """Return an area's page; empty where nothing stands there."""
    own = [(path, command) for path, command in commands.items() if _area_of_command(path) is area]
    verbs = _verbs(area)
    if not own and not verbs:
        return ""
    parts = [
        f"# {area.title}",
        "Made by `scripts/docs`. [All commands and tools](../reference.md).",
    ]
    parts += [area.about] if area.about else []
    if own:
        parts.append("## Commands")
        parts += [
            f"### `{path}`\n\n{_help(command)}\n\n{_parameters(command)}".rstrip()
            for path, command in own
        ]
    if verbs:
        parts.append("## MCP tools")
        parts += [shown(verb) for verb in verbs]
    return "\n\n".join(parts) + "\n"


def _settings_page() -> str:
    parts = [
        "# Settings",
        "Defaults < `$PPS_HOME/pps.toml` < `PPS_*` in the environment. `pps config` shows what is in effect.",
        "```toml\n" + shipped("config/pps.toml").read_text(encoding="utf-8").strip() + "\n```",
    ]
    return "\n\n".join(parts) + "\n"


def _has_page(area: Area, commands: dict[str, click.Command]) -> bool:
    return bool(_verbs(area)) or any(_area_of_command(path) is area for path in commands)


def _area_of_toolset(toolset: str) -> Area:
    return next((area for area in AREAS if toolset in area.toolsets), _ELSEWHERE)


def _area_of_command(path: str) -> Area:
    """Return where a command stands: by its first word, else where the operation stands that it is made from."""
    words = path.removeprefix("pps ")
    for area in AREAS:
        if words.split()[0] in area.words:
            return area
    for verb in OPERATIONS:
        if verb.command == words:
            return _area_of_toolset(verb.toolset)
    return _INSTALLATION


def _verbs(area: Area) -> list[Any]:
    return [
        verb
        for audience in _AUDIENCES
        for verb in operations_for(audience).values()
        if _area_of_toolset(verb.toolset) is area
    ]


def _leaves(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from _leaves(child, f"{path} {name}")
    else:
        yield path, command


def _first_line(command: click.Command) -> str:
    return command.get_short_help_str(140).replace("|", "\\|")


def _table(name: str, rows: list[str]) -> str:
    return "\n".join([f"| {name} | what it does |", "| --- | --- |", *rows])


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
    return f"### `{verb.name}`\n\n{for_tools(verb.description)} ({', '.join(hints) or 'adds'})\n\n{table}"


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
    FOLDER.mkdir(exist_ok=True)
    wanted = pages()
    for file in FOLDER.glob("*.md"):
        if file not in wanted:
            file.unlink()
    for file, text in wanted.items():
        file.write_text(text, encoding="utf-8")
    write()
