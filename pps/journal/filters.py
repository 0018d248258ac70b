"""Filters: which ids of a kind a recall may see, as one SQL statement over indexed columns."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime

from pps.core.text import fold
from pps.core.time import micros, now, utc
from pps.core.values import ItemKind
from pps.journal.values import ItemFilter

_LIST = "(SELECT value FROM json_each(?))"


class _Where:
    """Conditions with their parameters; every condition is a literal, every value is bound."""

    def __init__(self) -> None:
        self.conditions: list[str] = []
        self.parameters: list[str | int] = []

    def add(self, condition: str, *parameters: str | int) -> None:
        self.conditions.append(condition)
        self.parameters.extend(parameters)

    def among(self, column: str, values: Sequence[str]) -> None:
        if values:
            self.add(f"{column} IN {_LIST}", json.dumps(list(values)))

    def between(self, column: str, since: datetime | None, until: datetime | None) -> None:
        if since is not None:
            self.add(f"{column} >= ?", micros(utc(since, "since")))
        if until is not None:
            self.add(f"{column} < ?", micros(utc(until, "until")))

    def sql(self) -> str:
        return " AND ".join(self.conditions)


def allowed(connection: sqlite3.Connection, kind: ItemKind, wanted: ItemFilter) -> set[str] | None:
    """Return the ids that pass a filter, or None when it restricts nothing.

    Anchors and communities have none of the columns: a filter on one of them lets none through.
    Facts that must hold now are a restriction only beside another one, since past facts have an
    index of their own.
    """
    if kind == "fact":
        return _facts(connection, wanted)
    if kind == "node":
        return _nodes(connection, wanted)
    if kind == "episode":
        return _episodes(connection, wanted)
    plain = (wanted.kinds, wanted.tags, wanted.sources, wanted.sessions, wanted.roles)
    timed = wanted.since is not None or wanted.until is not None
    return set() if any(plain) or timed else None


def _facts(connection: sqlite3.Connection, wanted: ItemFilter) -> set[str] | None:
    where = _Where()
    where.among("f.relation", wanted.relations)
    where.between("f.at", wanted.since, wanted.until)
    if wanted.kinds:
        kinds = json.dumps(wanted.kinds)
        ends = f"(SELECT uuid FROM mirror_node WHERE kind IN {_LIST})"  # noqa: S608 - literals
        where.add(
            f"(f.kind IN {_LIST} OR f.subject IN {ends} OR f.object IN {ends})",
            *[kinds] * 3,
        )
    if wanted.tags:
        tags = _folded(wanted.tags)
        ends = f"(SELECT node FROM mirror_tag WHERE tag IN {_LIST})"  # noqa: S608 - literals
        turns = f"""(SELECT s.fact FROM turn_tags AS t JOIN mirror_support AS s ON s.episode = t.turn
            WHERE t.tag IN {_LIST})"""  # noqa: S608 - literals
        where.add(
            f"(f.subject IN {ends} OR f.object IN {ends} OR f.uuid IN {turns})",
            *[tags] * 3,
        )
    origin = _origin(wanted)
    if origin.conditions:
        where.add(f"f.uuid IN ({_supported(origin)})", *origin.parameters)
    if where.conditions or wanted.as_of is not None:
        moment = micros(now() if wanted.as_of is None else utc(wanted.as_of, "as_of"))
        where.add("(f.valid_at IS NULL OR f.valid_at <= ?)", moment)
        where.add("(f.invalid_at IS NULL OR f.invalid_at > ?)", moment)
        where.add("(f.expired_at IS NULL OR f.expired_at > ?)", moment)
    return _ids(connection, "SELECT f.uuid FROM mirror_fact AS f WHERE ", where)


def _nodes(connection: sqlite3.Connection, wanted: ItemFilter) -> set[str] | None:
    where = _Where()
    where.among("n.kind", wanted.kinds)
    where.between("n.created_at", wanted.since, wanted.until)
    if wanted.tags:
        where.add(
            f"n.uuid IN (SELECT node FROM mirror_tag WHERE tag IN {_LIST})",  # noqa: S608 - literals
            _folded(wanted.tags),
        )
    origin = _origin(wanted)
    if origin.conditions:
        supported = _supported(origin)
        ends = " OR ".join(
            f"n.uuid IN (SELECT {end} FROM mirror_fact WHERE uuid IN ({supported}))"  # noqa: S608
            for end in ("subject", "object")
        )
        parameters = [*origin.parameters, *origin.parameters]
        if wanted.sources and not (wanted.sessions or wanted.roles):
            ends += f" OR n.source IN {_LIST}"
            parameters.append(json.dumps(wanted.sources))
        where.add(f"({ends})", *parameters)
    return _ids(connection, "SELECT n.uuid FROM mirror_node AS n WHERE ", where)


def _episodes(connection: sqlite3.Connection, wanted: ItemFilter) -> set[str] | None:
    where = _origin(wanted)
    where.among("t.kind", wanted.kinds)
    where.between("t.occurred_at", wanted.since, wanted.until)
    if wanted.tags:
        where.add(
            f"t.uuid IN (SELECT turn FROM turn_tags WHERE tag IN {_LIST})",  # noqa: S608 - literals
            _folded(wanted.tags),
        )
    return _ids(connection, "SELECT t.uuid FROM turns AS t WHERE ", where)


def _origin(wanted: ItemFilter) -> _Where:
    where = _Where()
    where.among("t.source", wanted.sources)
    where.among("t.session", wanted.sessions)
    where.among("t.role", wanted.roles)
    return where


def _supported(origin: _Where) -> str:
    return f"""SELECT s.fact FROM turns AS t JOIN mirror_support AS s ON s.episode = t.uuid
        WHERE {origin.sql()}"""  # noqa: S608 - conditions are literals of this module


def _folded(tags: Sequence[str]) -> str:
    return json.dumps([fold(tag) for tag in tags])


def _ids(connection: sqlite3.Connection, select: str, where: _Where) -> set[str] | None:
    if not where.conditions:
        return None
    return {uuid for (uuid,) in connection.execute(select + where.sql(), where.parameters)}
