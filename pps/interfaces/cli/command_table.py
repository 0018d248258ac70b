"""The command table: the command of each operation, made from the operations and stored in a file.

``scripts/docs`` writes ``commands.json`` anew and a test fails when it is out of date, so that `pps
--help`` need not import all input models and the packages of a memory, which takes a second.
is made of.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pps.core.json_shapes import INSTANT
from pps.core.values import JSON
from pps.operations.references import spelled, tool_name

if TYPE_CHECKING:
    from pps.operations.table import AnyOperation

FILE = Path(__file__).with_name("commands.json")
_LABELS = {
    "entity": "NAME",
    "content": "TEXT",
    "ids": "ID",
    "paths": "PATH",
    "roots": "ROOT",
}
_OWNERS = ("owner", "operator")


@dataclass(frozen=True, slots=True)
class CommandParameter:
    """What a command takes for a field of an operation's input.

    Attributes:
        label: What people call it: ``TEXT``, ``--at``.
        by_commas, words: Several values in one, and texts that stand for themselves instead of a
            list.
        path, stdin, time: It is sent absolute; ``-`` reads it from stdin; a time without a zone is
            local.
        rest: All the words that follow are one text; an option of this kind may be given so in its
            place.
        inverts, sets: A switch that sends false; a switch that sends this text.
        default, shown: What is sent when it is left out; what the help shows as the usual value.
    """

    field: str
    kind: str
    label: str
    flag: str = ""
    type: str = "text"
    help: str = ""
    required: bool = False
    many: bool = False
    by_commas: bool = False
    words: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None
    path: bool = False
    stdin: bool = False
    rest: bool = False
    time: bool = False
    inverts: bool = False
    sets: str | None = None
    default: JSON = None
    shown: int | str | None = None

    @property
    def typed_as(self) -> str:
        """The name of what was typed: fields that one file holds share it."""
        return self.flag.strip("-").replace("-", "_") if self.kind == "file" else self.field

    @property
    def spoken_as(self) -> str:
        """The name of the words that a user may type in place of an option."""
        return f"{self.field}_words"


@dataclass(frozen=True, slots=True)
class Command:
    """One command; ``path`` may end in the switches that choose it among others of its name.

    Attributes:
        aliases: Other names of the same command.
        takes_away: Something may be erased, replaced or refused from now on: no wrong spelling is
            answered with it.
        reads: Nothing changes.
    """

    operation: str
    path: str
    title: str
    help: str = ""
    examples: tuple[str, ...] = ()
    parameters: tuple[CommandParameter, ...] = ()
    sends: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    of_entity: bool = False
    is_long: bool = False
    confirms: bool = False
    aliases: tuple[str, ...] = ()
    takes_away: bool = False
    reads: bool = False

    @property
    def text(self) -> CommandParameter | None:
        """The text that is its only argument beside the entity's name and need not be quoted."""
        arguments = [parameter for parameter in self.parameters if parameter.kind == "argument"]
        is_text = self.of_entity and len(arguments) == 1 and arguments[0].rest
        return arguments[0] if is_text else None

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(word for word in self.path.split() if not word.startswith("--"))

    @property
    def switches(self) -> frozenset[str]:
        return frozenset(word for word in self.path.split() if word.startswith("--"))


def describe_operations(operations: Iterable[AnyOperation]) -> tuple[Command, ...]:
    """Return the commands of those operations that have one."""
    commands = [operation for operation in operations if operation.command]
    paths = {command.name: f"`pps {command.command}`" for command in commands}
    return tuple(_command(command, paths) for command in commands)


def render_table(commands: Iterable[Command]) -> str:
    """Return the file's text: a line a command, without what is as usual."""
    lines = (json.dumps(_bare(command), ensure_ascii=False) for command in commands)
    return "[\n" + ",\n".join(lines) + "\n]\n"


def load_table() -> tuple[Command, ...]:
    """Return the commands of the shipped table, without importing an operation."""
    rows = cast("list[dict[str, Any]]", json.loads(FILE.read_text("utf-8")))
    commands: list[Command] = []
    for row in rows:
        row["parameters"] = tuple(
            CommandParameter(**_with_tuples(parameter)) for parameter in row.get("parameters", ())
        )
        commands.append(Command(**_with_tuples(row)))
    return tuple(commands)


def _with_tuples(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: tuple(cast("list[Any]", value)) if isinstance(value, list) else value
        for name, value in row.items()
    }


def _command(operation: AnyOperation, paths: Mapping[str, str]) -> Command:
    """Return an operation's command.

    ``paths`` has the command of each operation's name, for texts.
    """
    schema = cast("dict[str, Any]", operation.input.model_json_schema())
    required = set(schema.get("required", ()))
    marks = {name: about.get("cli", {}) for name, about in schema.get("properties", {}).items()}
    parameters = [
        _parameter(name, about, marks[name], name in required)
        for name, about in schema.get("properties", {}).items()
        if marks[name].get("kind") != "none"
    ]
    unoffered = {
        name: mark
        for name, mark in marks.items()
        if mark.get("kind") == "none" and "default" in mark
    }
    by_field = {parameter.field: parameter for parameter in parameters}

    def spell(name: str, value: str) -> str:
        parameter = by_field.get(name)
        if parameter is not None and (parameter.inverts or not value):
            return parameter.label
        return tool_name(name, value) if value else paths.get(name, tool_name(name, value))

    parameters = [
        replace(parameter, help=spelled(parameter.help, spell)) for parameter in parameters
    ]
    shows_first = any(parameter.inverts for parameter in parameters)
    return Command(
        operation.name,
        operation.command,
        operation.title,
        spelled(operation.description, spell),
        operation.examples,
        tuple(parameters),
        sends={name: mark["default"] for name, mark in unoffered.items()},
        of_entity=operation.audience == "entity",
        is_long=operation.long,
        aliases=operation.aliases,
        reads=operation.hints.read_only,
        takes_away=operation.hints.destructive or operation.hints.withdraws,
        confirms=operation.hints.destructive and operation.audience in _OWNERS and not shows_first,
    )


def _parameter(
    name: str, about: Mapping[str, Any], mark: Mapping[str, Any], required: bool
) -> CommandParameter:
    variants = [schema for schema in about.get("anyOf", (about,)) if schema.get("type") != "null"]
    many = next((variant for variant in variants if variant.get("type") == "array"), None)
    value = many["items"] if many else variants[0]
    kind = mark.get("kind", "option")
    flag = mark.get("flag", "--" + name.replace("_", "-"))
    description = about.get("description") or variants[0].get("description", "")
    return CommandParameter(
        name,
        kind,
        _LABELS.get(name, name.upper()) if kind == "argument" else flag.partition("/")[0],
        flag if kind != "argument" else "",
        {"integer": "int", "number": "float", "boolean": "bool"}.get(value.get("type", ""), "text"),
        _help(description, mark),
        required=required and "default" not in mark,
        many=many is not None,
        by_commas=many is not None and bool(value.get("enum")),
        words=tuple(variant["const"] for variant in variants if "const" in variant),
        choices=tuple(value.get("enum", ())) if not many else (),
        least=value.get("minimum"),
        most=value.get("maximum"),
        path=mark.get("path", False),
        stdin=mark.get("stdin", False),
        rest=mark.get("rest", False),
        time=any(INSTANT in schema for schema in (about, *variants)),
        inverts=mark.get("inverts", False),
        sets=mark.get("value"),
        default=mark.get("default"),
        shown=about.get("default") if isinstance(about.get("default"), (int, str)) else None,
    )


_JSON_FILE = (
    'A JSON file (stdin if \'-\') such as {"nodes": […], "facts": […]}: what the text says.'
)
_CONFIRMED = "Do it; without, only what would come of it is said."


def _help(description: str, mark: Mapping[str, Any]) -> str:
    """Return a parameter's help: its own, that of its sort, or the field's description."""
    if mark.get("help"):
        return mark["help"]
    if mark.get("inverts"):
        return _CONFIRMED
    if mark.get("kind") == "file":
        return mark.get("about") or _JSON_FILE
    return description


def _bare(value: Command | CommandParameter) -> dict[str, Any]:
    """Return a value's fields that are not as usual."""
    bare: dict[str, Any] = {}
    for attribute in fields(value):
        stored = getattr(value, attribute.name)
        usual = (
            attribute.default_factory()
            if attribute.default_factory is not MISSING
            else attribute.default
        )
        if stored != usual:
            bare[attribute.name] = (
                [_bare(below) for below in stored] if attribute.name == "parameters" else stored
            )
    return bare
