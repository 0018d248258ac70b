"""What people read: errors in a command's own words, and hits, facts and items with short ids and local times."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any

import click

from pps.core.errors import NotFound, PPSError
from pps.core.ids import short_id
from pps.core.phrases import NOTHING_NEAR, superseded
from pps.core.text import fold, one_line
from pps.core.time import shown, with_precision

if TYPE_CHECKING:
    from pps.core.values import JSON
    from pps.interfaces.cli.commands import Parameter

SHOWN = 5
"""Most hits of a channel that are shown where no number is asked for."""
_SHOWN_FAR = 2
"""Most hits of a channel that are shown where nothing is near and no number is asked for."""
_LINE = 400
_QUOTED = 80
_UUID = re.compile(r"\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_FIELD = re.compile(r"(?:^|(?<=; ))([a-z_]+)((?:[.\[][\w\]]+)*): ")
_VALUE = re.compile(r"'([^']*)'")
_REMEDIES = {
    "id": "`pps recall`, `pps timeline` and others show ids in brackets",
    "anchor": "`pps anchors list NAME` shows them",
    "job": "`pps jobs list NAME` shows them",
    "project": "`pps route list` shows the folders that have a memory",
    "router": "`pps router list` shows them",
}


def of_error(error: PPSError, parameters: Iterable[Parameter], given: Mapping[str, JSON]) -> str:
    """Return an error's text with what was typed in place of fields: ``--at 'soon'`` for ``occurred_at``."""
    known = {one.field: one for one in parameters}
    if isinstance(error, NotFound):
        what, _, rest = error.message.partition(" not found")
        remedy = f"; {_REMEDIES[what]}" if what in _REMEDIES else ""
        return f"{' or '.join(_missed(what, rest, known, given)) or what}: not found{remedy}"

    def typed(found: re.Match[str]) -> str:
        one = known.get(found[1])
        if one is None:
            return found[0]
        value = given.get(one.field)
        at = re.search(r"\d+", found[2])
        if isinstance(value, list):
            value = value[int(at[0])] if at and int(at[0]) < len(value) else None
        return f"{_quoted(one.label, value)}: "

    return _FIELD.sub(typed, error.message)


def _missed(
    what: str, rest: str, known: Mapping[str, Parameter], given: Mapping[str, JSON]
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
    places = [
        one for one in asked if one.kind == "argument" and not one.stdin and given.get(one.field)
    ]
    return [_quoted(one.label, given[one.field]) for one in places]


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
    return _UUID.sub(lambda found: found[1] if found[0] in ids else found[0], text)


def _ids(data: JSON) -> Iterator[str]:
    if isinstance(data, Mapping):
        for value in data.values():
            yield from _ids(value)
    elif isinstance(data, list):
        for value in data:
            yield from _ids(value)
    elif isinstance(data, str) and _UUID.fullmatch(data):
        yield data


def recall(found: Mapping[str, Any], limit: int | None, zone: tzinfo = UTC) -> str:
    """Return hits channel by channel; what two channels have stands once.

    Where no limit was asked for, five of each, or two when nothing is near, which is then said first.
    """
    lines: list[str] = []
    notes = list(found.get("notes", ()))
    nothing_near = NOTHING_NEAR in notes
    shown: set[str] = set()
    for name, channel in found["channels"].items():
        if channel.get("error"):
            lines.append(f"{name}: could not be searched ({channel['error']})")
        fresh = [hit for hit in channel["hits"] if _is_new(hit, shown)]
        most = limit or (_SHOWN_FAR if nothing_near else SHOWN)
        if fresh:
            lines.append(click.style(name, bold=True))
        lines += [f"  {number}. {_hit(hit, zone)}" for number, hit in enumerate(fresh[:most], 1)]
        if len(fresh) > most:
            more = f"{len(fresh) - most} more{', farther away' if nothing_near else ''}"
            lines.append(click.style(f"  … {more}: --limit {len(channel['hits'])}", dim=True))
        lines += [f"  note: {note}" for note in channel.get("notes", ())]
    if not lines:
        return "Nothing found."
    first = [f"note: {NOTHING_NEAR}"] if nothing_near else []
    rest = [f"note: {note}" for note in notes if note != NOTHING_NEAR]
    return "\n".join([*first, *lines, *rest])


def _is_new(hit: Mapping[str, Any], shown: set[str]) -> bool:
    text = fold(hit["text"])
    is_new = text not in shown
    shown.add(text)
    return is_new


def _hit(hit: Mapping[str, Any], zone: tzinfo) -> str:
    text = hit.get("passage") or hit["text"]
    speaker = hit.get("actor") or hit.get("role") or ""
    title = hit.get("title") or ""
    head = f"{title}: " if title and not text.startswith(title) else ""
    who = speaker if not text.startswith(f"{speaker}:") else ""
    when = span(hit, zone) if hit.get("relation") else local(hit, "occurred_at", zone)
    said = ", ".join(filter(None, (who, hit.get("source"), when)))
    aside = click.style(f" ({said})" if said else "", dim=True)
    return f"{head}{_line(text)}{aside}{_superseded(hit, zone)} {_id(hit)}"


def timeline(found: Mapping[str, Any], zone: tzinfo = UTC) -> str:
    """Return one line a fact, and how to go on."""
    lines = [_fact(one, zone) for one in found["facts"]]
    more = [f"More: --cursor {found['next_cursor']}"] if found.get("next_cursor") else []
    return "\n".join([*(lines or ["No facts."]), *more])


def items(found: Mapping[str, Any], zone: tzinfo = UTC) -> str:
    """Return each item whole, in the order asked."""
    return "\n\n".join(_item(one, zone) for one in found["items"])


def _item(one: Mapping[str, Any], zone: tzinfo) -> str:
    kind = click.style(one["type"], bold=True)
    if one["type"] == "node":
        names = f" (also {', '.join(one['aliases'])})" if one.get("aliases") else ""
        return f"{kind} {one['name']}{names}, {one['kind']} {_id(one)}\n{one.get('content') or one['summary']}".rstrip()
    if one["type"] == "fact":
        return f"{kind} {_fact(one, zone)}"
    who = one.get("actor") or one.get("role") or one.get("name")
    said = ", ".join(filter(None, (one.get("source"), local(one, "occurred_at", zone))))
    return f"{kind} {who} ({said}){_superseded(one, zone)} {_id(one)}\n{one['content']}"


def _fact(one: Mapping[str, Any], zone: tzinfo) -> str:
    holds = span(one, zone)
    aside = f" ({holds})" if holds else ""
    return f"{_line(one['text'])}{aside}{_superseded(one, zone)} {_id(one)}"


def _superseded(one: Mapping[str, Any], zone: tzinfo) -> str:
    """Return what took the place of a fact or turn, in parentheses; empty while it stands."""
    by = one.get("superseded_by")
    if not by:
        return ""
    mark = superseded(by["text"], datetime.fromisoformat(by["at"]), zone, sure=by["sure"])
    return click.style(f" ({mark})", fg="yellow")


def span(one: Mapping[str, Any], zone: tzinfo) -> str:
    """Return since when and until when a fact holds."""
    start, end = local(one, "valid_at", zone), local(one, "invalid_at", zone)
    if start and end:
        return f"{start} to {end}"
    return f"since {start}" if start else f"until {end}" if end else ""


def local(one: Mapping[str, Any], name: str, zone: tzinfo) -> str:
    """Return a time of an answer on the clock of a zone, to the minute; a day, month or year as it is."""
    if not one.get(name):
        return ""
    moment = datetime.fromisoformat(one[name])
    return shown(with_precision(moment, one.get(f"{name}_precision", "instant")), zone)


def _id(one: Mapping[str, Any]) -> str:
    return click.style(f"[{short_id(one['id'])}]", fg="cyan")


def _line(text: str) -> str:
    return one_line(text, _LINE)
