"""What people read: errors in a command's own words; answers, which their operations word, with short ids and colour."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import click

from pps.core.errors import NotFound, PPSError

if TYPE_CHECKING:
    from pps.core.values import JSON
    from pps.interfaces.cli.command_table import CommandParameter

_QUOTED = 80
_HEADING = re.compile(r"^(?:nodes|facts|episodes|anchors|turns)(?: \([^)\n]*\))?:$", re.MULTILINE)
_SUPERSEDED = re.compile(r"\((?:superseded|possibly outdated since) [^\n]*?\)(?= \[)")
_SHORT_ID = re.compile(r"\[[0-9a-f]{8}\]")
_UUID = re.compile(r"(?<![:.\w-])([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_FIELD = re.compile(r"(?:^|(?<=; ))([a-z_]+)((?:[.\[][\w\]]+)*): ")
_VALUE = re.compile(r"'([^']*)'")
_REMEDIES = {
    "id": "`pps recall`, `pps timeline` and others show ids in brackets",
    "anchor": "`pps anchors list NAME` shows them",
    "job": "`pps jobs list NAME` shows them",
    "project": "`pps route list` shows the folders that have a memory",
    "router": "`pps router list` shows them",
    "squad": "`pps squad list` shows them",
}


def of_error(
    error: PPSError, parameters: Iterable[CommandParameter], given: Mapping[str, JSON]
) -> str:
    """Return an error's text with what was typed in place of fields: ``--at 'soon'`` for ``occurred_at``."""
    known = {parameter.field: parameter for parameter in parameters}
    if isinstance(error, NotFound):
        what, _, rest = error.message.partition(" not found")
        remedy = f"; {_REMEDIES[what]}" if what in _REMEDIES else ""
        return f"{' or '.join(_missed(what, rest, known, given)) or what}: not found{remedy}"

    def typed(match: re.Match[str]) -> str:
        one = known.get(match[1])
        if one is None:
            return match[0]
        value = given.get(one.field)
        at = re.search(r"\d+", match[2])
        if isinstance(value, list):
            value = value[int(at[0])] if at and int(at[0]) < len(value) else None
        return f"{_quoted(one.label, value)}: "

    return _FIELD.sub(typed, error.message)


def _missed(
    what: str, rest: str, known: Mapping[str, CommandParameter], given: Mapping[str, JSON]
) -> list[str]:
    """Return what was typed that is not there: by its field, by a name within JSON, or by the values that are told."""
    if what in known and given.get(what):
        return [_quoted(known[what].label, given[what])]
    for one in known.values():
        within = given.get(one.field)
        if isinstance(within, Mapping) and within.get(what):
            return [_quoted(f"{one.label} {what}", within[what])]
    values = _VALUE.findall(rest)
    asked = [one for one in known.values() if one.label != "NAME"]
    typed = [
        (one, value) for one in asked for value in _each(given.get(one.field)) if value in values
    ]
    if typed:
        return [_quoted(one.label, value) for one, value in typed]
    if not asked and given.get("name"):  # of a squad
        return [f"{what} {given['name']!r}"]
    places = [
        one for one in asked if one.kind == "argument" and not one.stdin and given.get(one.field)
    ]
    return [_quoted(place.label, given[place.field]) for place in places]


def _each(value: JSON) -> list[JSON]:
    return value if isinstance(value, list) else [value]


def _quoted(label: str, value: object) -> str:
    if isinstance(value, list):
        return " or ".join(_quoted(label, one) for one in value[:3])  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - JSON
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
    """Return a text for a terminal: headings bold, ids and what lost its place in colour. No character changes."""
    text = _HEADING.sub(lambda line: click.style(line[0], bold=True), text)
    text = _SUPERSEDED.sub(lambda mark: click.style(mark[0], fg="yellow"), text)
    return _SHORT_ID.sub(lambda id_: click.style(id_[0], fg="cyan"), text)
