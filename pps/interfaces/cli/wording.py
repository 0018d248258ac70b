"""What people read: errors in a command's own words.

Answers, which their operations word, with short ids and colour.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from pps.core.errors import Changed, InvalidRequest, NotFound, PPSError, Problem

if TYPE_CHECKING:
    from pps.core.values import JSON
    from pps.interfaces.cli.command_table import CommandParameter

_QUOTED = 80
_HEADING = re.compile(r"^(?:nodes|facts|episodes|anchors|turns)(?: \([^)\n]*\))?:$", re.MULTILINE)
_SUPERSEDED = re.compile(r"\((?:superseded|possibly outdated since) [^\n]*?\)(?= \[)")
_SHORT_ID = re.compile(r"\[[0-9a-f]{8}\]")
_UUID = re.compile(r"(?<![:.\w-])([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_PATH = re.compile(r"([a-z_]+)\D*(\d+)?.*")
"""The first field and the item's number of a path such as ``nodes[0].name`` or ``nodes.0.name``."""
_REMEDIES = {
    "id": "`pps recall`, `pps timeline` and others show ids in brackets",
    "anchor": "`pps anchors list NAME` shows them",
    "job": "`pps jobs list NAME` shows them",
    "project": "`pps route list` shows the folders that have a memory",
    "router": "`pps router list` shows them",
    "squad": "`pps squad list` shows them",
}


def render_error(
    error: PPSError, parameters: Iterable[CommandParameter], arguments: Mapping[str, JSON]
) -> str:
    """Return an error's text with the typed option in place of the field.

    For example ``--at 'soon'`` for ``occurred_at``.
    """
    by_field = {parameter.field: parameter for parameter in parameters}
    if isinstance(error, NotFound):
        missing = " or ".join(_missing(error, by_field, arguments)) or error.noun
        remedy = f"; {_REMEDIES[error.noun]}" if error.noun in _REMEDIES else ""
        return f"{missing}: not found{remedy}"
    if isinstance(error, Changed):
        return _render_problem(Problem(error.path, error.problem), by_field, arguments)
    if isinstance(error, InvalidRequest):
        return "; ".join(_render_problem(item, by_field, arguments) for item in error.problems)
    return error.message


def _render_problem(
    item: Problem, by_field: Mapping[str, CommandParameter], arguments: Mapping[str, JSON]
) -> str:
    """Return a problem's text with the option or argument, and its value, in place of the path."""
    match = _PATH.fullmatch(item.path)
    parameter = by_field.get(match[1]) if match else None
    if match is None or parameter is None:
        return item.text
    field = match[1]
    number = match[2]
    value = arguments.get(field)
    if isinstance(value, list):
        value = value[int(number)] if number and int(number) < len(value) else None
        if isinstance(value, dict):  # of JSON the path says more than the option
            return replace(item, path=f"{parameter.label} {item.path}").text
    return replace(item, path=_quoted(parameter.label, value)).text


def _missing(
    error: NotFound, by_field: Mapping[str, CommandParameter], arguments: Mapping[str, JSON]
) -> list[str]:
    """Return the typed values that were not found.

    They are known by field, by a name in JSON, or by the error's values.
    """
    noun = error.noun
    if noun in by_field and arguments.get(noun):
        return [_quoted(by_field[noun].label, arguments[noun])]
    for parameter in by_field.values():
        within = arguments.get(parameter.field)
        if isinstance(within, Mapping) and within.get(noun):
            return [_quoted(f"{parameter.label} {noun}", within[noun])]
    candidates = [parameter for parameter in by_field.values() if parameter.label != "NAME"]
    named: list[str] = []
    for parameter in candidates:
        value = arguments.get(parameter.field)
        typed = value if isinstance(value, list) else [value]
        named += [_quoted(parameter.label, item) for item in typed if item in error.values]
    if named:
        return named
    if not candidates and arguments.get("name"):  # of a squad
        return [f"{noun} {arguments['name']!r}"]
    return [
        _quoted(parameter.label, arguments[parameter.field])
        for parameter in candidates
        if parameter.kind == "argument" and not parameter.stdin and arguments.get(parameter.field)
    ]


def _quoted(label: str, value: object) -> str:
    if isinstance(value, list):
        return " or ".join(_quoted(label, item) for item in value[:3])  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - JSON
    is_short = (
        isinstance(value, (str, int)) and not isinstance(value, bool) and len(str(value)) <= _QUOTED
    )
    return f"{label} {value!r}" if is_short else label


def short(text: str, data: JSON) -> str:
    """Return a text in which ids of its data are as short as every command takes them."""
    ids = set(_ids(data))
    return _UUID.sub(lambda match: match[1] if match[0] in ids else match[0], text)


def _ids(data: JSON) -> Iterator[str]:
    if isinstance(data, Mapping):
        for value in data.values():
            yield from _ids(value)
    elif isinstance(data, list):
        for value in data:
            yield from _ids(value)
    elif isinstance(data, str) and _UUID.fullmatch(data):
        yield data


def coloured(text: str) -> str:
    """Return a text with colours for a terminal: bold headings, coloured ids and superseded marks.

    No character changes.
    """
    text = _HEADING.sub(lambda line: click.style(line[0], bold=True), text)
    text = _SUPERSEDED.sub(lambda mark: click.style(mark[0], fg="yellow"), text)
    return _SHORT_ID.sub(lambda id_: click.style(id_[0], fg="cyan"), text)
