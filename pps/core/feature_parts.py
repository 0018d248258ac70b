"""What a feature is made of below its operations: tables as data, and listeners. No I/O.

A feature never gets a connection. It declares its tables here; what it reads and writes goes
through ``TableRows``, which is bound to one entity and knows no other table.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from pps.core.errors import InvalidRequest
from pps.core.values import Turn

ColumnType: TypeAlias = Literal["text", "integer", "real"]
CellValue: TypeAlias = str | int | float | None
TableRow: TypeAlias = dict[str, CellValue]
"""A row by column, with its ``id``."""

MAX_SELECTED = 1_000
"""Most rows of one ``select``."""
MAX_COLUMNS = 50
_NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_MAX_NAME = 40
_OWN_COLUMNS = ("id", "group_id")


def check_feature_name(name: str, field: str = "name") -> str:
    """Return the name of a feature, table or column unchanged.

    InvalidRequest names the rule that it breaks.
    """
    if len(name) > _MAX_NAME or not _NAME.fullmatch(name):
        raise InvalidRequest(
            field,
            f"{name!r} must be at most {_MAX_NAME} lower-case letters, digits and single "
            "underscores",
        )
    return name


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a feature's table. A value may be null.

    Attributes:
        name: ``[a-z][a-z0-9_]*`` of at most 40 characters; ``id`` and ``group_id`` are every
            table's own.
        type: ``text`` of at most 65,536 characters, ``integer`` of 64 bits, ``real``.
    """

    name: str
    type: ColumnType = "text"

    def __post_init__(self) -> None:
        check_feature_name(self.name, "column")
        if self.name in _OWN_COLUMNS:
            raise InvalidRequest("column", f"{self.name!r} is every table's own")
        if self.type not in ("text", "integer", "real"):
            raise InvalidRequest("column", f"{self.name} has an unknown type {self.type!r}")


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a feature.

    A later release of the feature may add tables and columns, and change nothing else.
    """

    name: str
    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        check_feature_name(self.name, "table")
        names = [column.name for column in self.columns]
        if not 1 <= len(names) <= MAX_COLUMNS or len(set(names)) < len(names):
            raise InvalidRequest(
                "table", f"{self.name} must have 1 to {MAX_COLUMNS} columns, each name once"
            )


class FeatureRows(Protocol):
    """The rows of one feature in one entity's memory, within one transaction; unusable after it."""

    def insert(
        self,
        table: str,
        values: Mapping[str, CellValue],
        *,
        sources: Iterable[str] = (),
        key: str = "",
    ) -> str:
        """Add a row and return its id.

        With a ``key`` that a row of the table has, that row stays as it is.

        Args:
            table: A declared table.
            values: By column; those left out are null. Secrets in texts are replaced with markers.
            sources: Ids of turns, facts, nodes and records that the row is about or quotes: it is
                erased with any of them. A listener's rows are about its turn without being told.
            key: Makes the id from the entity and this text, so that a step can run again.

        Raises:
            NotFound: A source is none of this entity's.
            InvalidRequest: A table, column or value is not as declared; nothing was changed.
        """
        ...

    def get(self, table: str, id: str) -> TableRow:
        """Return a row; NotFound when this entity has none of that id."""
        ...

    def select(
        self,
        table: str,
        where: Mapping[str, CellValue] = {},
        *,
        order_by: str = "id",
        descending: bool = False,
        limit: int = 100,
    ) -> list[TableRow]:
        """Return the rows whose columns equal the values of ``where``.

        At most ``limit``, 1 to 1,000.
        """
        ...

    def count(self, table: str, where: Mapping[str, CellValue] = {}) -> int:
        """Return how many rows have the values of ``where``."""
        ...

    def update(
        self,
        table: str,
        id: str,
        values: Mapping[str, CellValue],
        *,
        sources: Iterable[str] = (),
    ) -> None:
        """Change columns of a row, which is then about ``sources`` too.

        Raises as ``insert`` and ``get``.
        """
        ...

    def delete(self, table: str, id: str) -> None:
        """Erase a row; NotFound when this entity has none of that id."""
        ...


@dataclass(frozen=True, slots=True)
class TurnListener:
    """Work in the transaction that saves a turn: both are on disk, or neither.

    Attributes:
        name: Unique in its feature.
        act: Gets the feature's rows and the turn. It must be quick, as other writes wait for it;
            what it raises refuses the turn. While its feature is off, turns pass it by.
    """

    name: str
    act: Callable[[FeatureRows, Turn], None]


@dataclass(frozen=True, slots=True)
class Follower:
    """Work after turns are saved, in their order, from a position that is on disk.

    Attributes:
        name: Unique in its feature.
        act: Gets the entity's Memory, the feature's tables (``FeatureTables``) and the turn. It
            runs again for the same turn when it fails or the process dies before the position has
            moved on, so rows are inserted with a ``key``. While its feature is off, it stands
            still, and goes on from there.
    """

    name: str
    act: Callable[[Any, Any, Turn], Awaitable[None]]


Listener: TypeAlias = TurnListener | Follower


class StoredFeature(Protocol):
    """What a memory needs to know of a feature that is on."""

    @property
    def name(self) -> str: ...

    @property
    def tables(self) -> Sequence[Table]: ...

    @property
    def listeners(self) -> Sequence[Listener]: ...
