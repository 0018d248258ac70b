"""Commands made from the command table: their parameters, requests to the server, and answers."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import click
from click.shell_completion import CompletionItem

from pps.core.argument_reading import read_scalar
from pps.core.errors import InvalidRequest, PPSError, UnknownEntity
from pps.core.time import read_moment
from pps.core.values import JSON
from pps.interfaces.cli import output
from pps.interfaces.cli.command_table import Command, CommandParameter
from pps.interfaces.cli.suggestions import entity_names, name_first, unknown_command, unknown_entity

AS_JSON = click.Option(["--json", "as_json"], is_flag=True, help="Print JSON, for programs.")
_GROUPS = {
    "entity": "Make, list, archive and delete entities, and give out their tokens.",
    "route": "Say which entity a project's folder belongs to.",
    "router": "Give out tokens for the project tools, each for some folders.",
    "task": "Carry out tasks that agents handed out with spawn_agent.",
    "watch": "Folders of Markdown that an entity follows while the server runs.",
    "anchors": "List, search, save, delete and import an entity's anchors.",
    "hooks": "Hooks that give a client's sessions this memory, in its settings file.",
    "jobs": "Look at the turns that wait or failed; try them again, or give them up.",
    "records": "Keep, find, change, join and erase the records of a pack's kinds.",
    "session": "What a conversation begins with, and what it has used.",
    "squad": "Make squads of entities that share and work together.",
    "pack": "List, show, check and enable packs of kinds.",
    "merges": "Find nodes that are one thing, merge them, undo a merge.",
    "feature": "List the features of this installation; switch one on or off.",
}


class Ordered(click.Group):
    """A group whose help lists its commands in the order in which they were added.

    Some have other names too.
    """

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.aliases: dict[str, str] = {}
        self.add_more: Callable[[], None] | None = None
        """Adds commands that take long to find.

        Called once, when a command is not here or all are listed.
        """

    def list_commands(self, ctx: click.Context) -> list[str]:
        self._complete()
        return list(self.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = self.aliases.get(cmd_name, cmd_name)
        if name not in self.commands and not name.startswith("-"):
            self._complete()
        return self.commands.get(name)

    def _complete(self) -> None:
        add_more = self.add_more
        self.add_more = None
        if add_more is not None:
            add_more()

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            ctx.fail(unknown_command(self, ctx.command_path, args))
        return super().resolve_command(ctx, args)


class Taught(click.Command):
    """A command whose help ends with examples.

    Attributes:
        takes_away: As that of ``Command``.
        takes_text: Its arguments are an entity's name and a text.
    """

    def __init__(
        self,
        *arguments: Any,
        examples: Iterable[str] = (),
        takes_away: bool = False,
        takes_text: bool = False,
        **more: Any,
    ) -> None:
        super().__init__(*arguments, **more)
        self.examples = tuple(examples)
        self.takes_away = takes_away
        self.takes_text = takes_text

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.examples:
            with formatter.section("Examples"):
                formatter.write("".join(f"  {example}\n" for example in self.examples))


class EntityName(click.ParamType[str]):
    """The name of an entity, as people type it: ``my-agent`` is ``my_agent``.

    A shell completes those that are there.
    """

    name = "name"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if _TYPED_NAME.fullmatch(value):
            return value.replace("-", "_")
        command = ctx.command if ctx else None
        if ctx and isinstance(command, Taught) and command.takes_text and " " in value.strip():
            ctx.fail(name_first(ctx.command_path.removeprefix("pps "), value))
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [CompletionItem(name) for name in entity_names() if name.startswith(incomplete)]


_TYPED_NAME = re.compile(r"[a-z][a-z0-9_-]*")


class WholeNumber(click.IntRange):
    """A whole number, written as the server reads it: ``5.0`` is 5."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        whole: Any = read_scalar(value, frozenset({"integer"})) if isinstance(value, str) else value
        return super().convert(whole, param, ctx)


Do: TypeAlias = "Callable[[Command, dict[str, JSON], Mapping[str, Any]], None]"
"""Carries a command out.

The arguments are those to send, and the typed values, such as ``whose`` and ``as_json``."""


def add(root: Ordered, commands: Iterable[Command], do: Do) -> None:
    """Add commands to a command line; those that differ by switches alone are one there."""
    variants: defaultdict[tuple[str, ...], list[Command]] = defaultdict(list)
    for command in commands:
        variants[command.words].append(command)
    for words, some in variants.items():
        parent = group(root, words[:-1])
        parent.add_command(_made(words[-1], some, do))
        parent.aliases.update((alias, words[-1]) for variant in some for alias in variant.aliases)


def group(root: Ordered, words: Iterable[str]) -> Ordered:
    """Return the group under some words, made where it is not there yet."""
    for word in words:
        below = root.commands.get(word)
        if not isinstance(below, Ordered):
            below = Ordered(word, help=_GROUPS.get(word), no_args_is_help=True)
            root.add_command(below)
        root = below
    return root


def _made(name: str, variants: list[Command], do: Do) -> click.Command:
    first = variants[0]
    switches = {
        switch: variant.title
        for variant in variants
        for switch in variant.switches
        if variant.switches == frozenset([switch])
    }
    optional = False
    for variant in variants:
        requires = [parameter for parameter in variant.parameters if parameter.required]
        optional |= not (variant.of_entity or requires)
    parameters: dict[str, click.Parameter] = {}
    if first.of_entity:
        parameters["NAME"] = click.Argument(
            ["whose"], help="The entity's name.", type=EntityName(), metavar="NAME"
        )
    for command_parameter in (
        parameter for variant in variants for parameter in variant.parameters
    ):
        parameters.setdefault(
            command_parameter.flag or command_parameter.field,
            _parameter(command_parameter, required=command_parameter.required and not optional),
        )
        if command_parameter.rest and command_parameter.kind == "option":
            parameters.setdefault(command_parameter.spoken_as, _spoken(command_parameter))
    for switch, title in switches.items():
        parameters[switch] = click.Option([switch], is_flag=True, help=f"{title} instead.")
    if any(variant.confirms for variant in variants):
        parameters["--yes"] = click.Option(["--yes", "-y"], is_flag=True, help="Do not ask.")

    aliases = [alias for variant in variants for alias in variant.aliases]
    also = "".join(f"\n\nAlso: pps {' '.join([*first.words[:-1], alias])}." for alias in aliases)
    listed = f" (also: {', '.join(aliases)})" if aliases else ""

    def callback(**typed: Any) -> None:
        switched = frozenset(switch for switch in switches if typed.pop(switch.strip("-")))
        chosen = next((variant for variant in variants if variant.switches == switched), first)
        _check(chosen, variants, typed)
        _carry_out(chosen, typed, do)

    return Taught(
        name,
        params=[*parameters.values(), AS_JSON],
        callback=callback,
        help=f"{first.title}.\n\n{first.help}{also}",
        short_help=f"{first.title}{listed}.",
        examples=[example for variant in variants for example in variant.examples],
        takes_away=any(variant.takes_away for variant in variants),
        takes_text=first.text is not None,
    )


def _check(chosen: Command, variants: list[Command], typed: Mapping[str, Any]) -> None:
    """Refuse an argument that is missing, or not taken, with the switches that were given."""
    fields = {parameter.field for parameter in chosen.parameters}
    for command_parameter in (
        parameter for variant in variants for parameter in variant.parameters
    ):
        if command_parameter.field not in fields and typed[command_parameter.typed_as]:
            raise InvalidRequest(
                command_parameter.label, f"is not taken with {' and '.join(chosen.switches)}"
            )
        if (
            command_parameter.field in fields
            and command_parameter.required
            and not typed[command_parameter.typed_as]
            and len(variants) > 1
        ):
            others = [
                f", or {' '.join(other.switches)}" for other in variants if not other.parameters
            ][:1]
            raise InvalidRequest(command_parameter.label, f"give it{''.join(others)}")


def _parameter(parameter: CommandParameter, *, required: bool) -> click.Parameter:
    about = f"{parameter.help} '-' reads it from stdin." if parameter.stdin else parameter.help
    if parameter.kind == "argument":
        metavar = f"{parameter.label}…" if parameter.many else parameter.label
        metavar = metavar if required else f"[{metavar}]"
        many = -1 if parameter.many or parameter.rest else 1
        return click.Argument(
            [parameter.field],
            help=about,
            type=_type(parameter),
            required=required,
            nargs=many,
            metavar=metavar,
        )
    if parameter.type == "bool" or parameter.sets:
        return click.Option(
            [parameter.flag, parameter.field], is_flag=True, default=None, help=about
        )
    usual = parameter.default if parameter.default is not None else parameter.shown
    return click.Option(
        [parameter.flag, parameter.typed_as],
        type=_type(parameter),
        required=required,
        multiple=parameter.many
        and not parameter.by_commas
        and parameter.kind not in ("file", "json"),
        metavar="FILE" if parameter.kind == "file" else None,
        help=about if usual in (None, "") else f"{about}  [{usual}]",
    )


def _spoken(parameter: CommandParameter) -> click.Parameter:
    """Return the argument whose words may be given in place of an option."""
    return click.Argument(
        [parameter.spoken_as], help=parameter.help, nargs=-1, metavar=f"[{parameter.field.upper()}]"
    )


def _type(parameter: CommandParameter) -> click.ParamType[Any] | None:
    if parameter.choices:
        return click.Choice(parameter.choices, case_sensitive=False)
    if parameter.label == "NAME":
        return EntityName()
    if parameter.type == "int":
        return WholeNumber(
            None if parameter.least is None else int(parameter.least),
            None if parameter.most is None else int(parameter.most),
        )
    return click.FloatRange(parameter.least, parameter.most) if parameter.type == "float" else None


def _carry_out(command: Command, typed: dict[str, Any], do: Do) -> None:
    arguments: dict[str, JSON] = dict(command.sends)
    for parameter in command.parameters:
        arguments.update(_sent(parameter, typed))
    if command.confirms and not typed.get("yes"):
        output.confirm(
            f"{command.title}: {' '.join(str(v) for v in arguments.values())}? It cannot be undone."
        )
    try:
        do(command, arguments, typed)
    except PPSError as error:
        if isinstance(error, UnknownEntity) and error.name and command.of_entity:
            words = typed[command.text.field] if command.text else ()
            path = "" if command.takes_away else " ".join(command.words)
            error.message = unknown_entity(typed["whose"], path, words, reads=command.reads)
        else:
            error.message = output.render_error(error, command.parameters, arguments)
        raise


def _sent(parameter: CommandParameter, typed: Mapping[str, Any]) -> Iterator[tuple[str, JSON]]:
    """Yield the field and value to send for a parameter.

    Nothing if it was left out without a default.
    """
    value = typed.get(parameter.typed_as)
    if parameter.rest:
        value = _joined(parameter, value, typed.get(parameter.spoken_as, ()))
    if value in (None, ()) or (value == "" and parameter.kind != "argument"):
        if parameter.default is not None:
            yield (
                parameter.field,
                parameter.default
                if not (parameter.stdin and parameter.default == "-")
                else sys.stdin.read(),
            )
    elif parameter.kind == "file":
        content = output.json_object(parameter.flag, value)
        if parameter.field in content:
            yield parameter.field, content[parameter.field]
    elif parameter.kind == "json":
        yield parameter.field, output.json_text(parameter.label, value)
    elif parameter.sets:
        yield parameter.field, parameter.sets
    elif parameter.type == "bool":
        yield parameter.field, (not value if parameter.inverts else value)
    elif parameter.by_commas:
        yield (
            parameter.field,
            value if value in parameter.words else [part.strip() for part in value.split(",")],
        )
    elif parameter.many:
        yield parameter.field, [_text(parameter, part) for part in value]
    else:
        yield parameter.field, _text(parameter, value)


def _joined(parameter: CommandParameter, value: Any, words: tuple[str, ...]) -> Any:
    """Return the text of an argument or option that may be given as words without quotes."""
    if parameter.kind == "argument":
        return " ".join(value) if value else None
    if value and words:
        raise InvalidRequest(parameter.flag, "was given, and words in its place too; give it once")
    return " ".join(words) if words else value


def _text(parameter: CommandParameter, value: Any) -> Any:
    if parameter.path:
        return value if "://" in value else output.absolute(value)
    if parameter.stdin and value == "-":
        return sys.stdin.read()
    return _checked_time(parameter.label, value) if parameter.time else value


def _checked_time(label: str, value: str) -> str:
    """Return a time as it was typed.

    Without a zone it is of the entity's, which the server knows.
    """
    try:
        read_moment(value)
    except InvalidRequest:
        remedy = "is not a time; give such as 2026-03-07, 2026-03-07T08:30 or 2026-03-07T08:30:00Z"
        raise InvalidRequest(f"{label} {value!r}", remedy) from None
    return value
