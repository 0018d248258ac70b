"""The protocol of features: what a package on top of the core declares, as one value.

A feature gets a ``Memory`` and tables that are bound to its entity, never a connection. An
operation of a feature reads and writes its rows through ``memory.tables(NAME)``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module

from pps.core.errors import InvalidRequest
from pps.core.feature_parts import (
    CellValue,
    Column,
    FeatureRows,
    Follower,
    Listener,
    Table,
    TurnListener,
    check_feature_name,
)
from pps.core.values import JSON
from pps.operations.table import AnyOperation, defined_in

__all__ = [
    "Attack",
    "CellValue",
    "Column",
    "Feature",
    "FeatureRows",
    "Follower",
    "Listener",
    "Table",
    "TurnListener",
    "View",
    "ViewAction",
]


@dataclass(frozen=True, slots=True)
class ViewAction:
    """A button of a view.

    Attributes:
        operation: What is asked. Its input's fields make the form.
        of_row: It stands in each row, and its argument ``id`` is that row's.
    """

    operation: str
    of_row: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """A view of the page as data: a table of what an operation returns, with buttons.

    No script of a feature runs.

    Attributes:
        id: Its address, ``#/id``.
        operation: What lists the rows; it must need no argument.
        items: The name of the list in the operation's answer.
        columns: Name of a field, and its heading.
        about: One sentence above the table.
    """

    id: str
    title: str
    operation: str
    items: str
    columns: tuple[tuple[str, str], ...]
    actions: tuple[ViewAction, ...] = ()
    about: str = ""

    def __post_init__(self) -> None:
        check_feature_name(self.id, "view")


@dataclass(frozen=True, slots=True)
class Attack:
    """A call for ``pps verify-isolation``, by one throw-away entity with another's items.

    Attributes:
        operation: Of the feature.
        arguments: As a client sends them. The text ``{id}`` stands for an id of the other entity
            (of its rows, turns and nodes, each in turn), ``{mark}`` for a word that only the
            calling entity knows.
    """

    operation: str
    arguments: Mapping[str, JSON] = field(default_factory=dict[str, JSON])


@dataclass(frozen=True)
class Feature:
    """Something that is built on the core.

    Attributes:
        name: ``[a-z][a-z0-9_]*`` of at most 40 characters, that of its entry point.
        summary: One sentence: what it is for.
        tables: Made in each entity's memory when it is first opened with the feature.
        modules: Names of the modules that define its operations; imported when they are first
            needed.
        listeners: What it does when a turn is saved.
        provides: Extension point of the core → ``module:attribute`` of what fills it while the
            feature is on; imported when it is first needed. Only the features of PPS itself fill
            one.
        views: Of the page.
        plants: Calls that give a throw-away entity something of the feature, before the attacks.
        attacks: Calls that must reach nothing of another entity; every operation of another
            distribution's feature stands here or among the plants.
        attack_suite: ``module:class`` of ``pps.proof.by_feature.OwnAttacks``: attacks on what the
            feature offers beside operations; empty where it offers nothing.
    """

    name: str
    summary: str
    tables: tuple[Table, ...] = ()
    modules: tuple[str, ...] = ()
    listeners: tuple[Listener, ...] = ()
    provides: Mapping[str, str] = field(default_factory=dict[str, str])
    views: tuple[View, ...] = ()
    plants: tuple[Attack, ...] = ()
    attacks: tuple[Attack, ...] = ()
    attack_suite: str = ""

    def __post_init__(self) -> None:
        check_feature_name(self.name)
        for noun, names in (
            ("table", [table.name for table in self.tables]),
            ("listener", [listener.name for listener in self.listeners]),
            ("view", [view.id for view in self.views]),
        ):
            if len(set(names)) < len(names):
                raise InvalidRequest(noun, f"a name occurs twice in the feature {self.name}")

    def operations(self) -> tuple[AnyOperation, ...]:
        """Return the operations, in the order in which the modules define them."""
        return self._operations

    @cached_property
    def _operations(self) -> tuple[AnyOperation, ...]:
        return defined_in(*map(import_module, self.modules))

    def problem(self, others: Sequence[AnyOperation]) -> str:
        """Return why a feature of another distribution cannot be offered; empty when it can.

        Args:
            others: The operations of other distributions' features, beside those of PPS itself.
        """
        from pps.operations.catalog import OPERATIONS  # it has the operations of features

        known = (*OPERATIONS, *others)
        names = {operation.name for operation in known}
        commands = {operation.command.split()[0] for operation in known if operation.command}
        attacked = {attack.operation for attack in (*self.plants, *self.attacks)}
        if self.provides:
            return "it fills extension points of the core, which only features of PPS itself may"
        if self.name in commands:
            return f"there are commands `pps {self.name} …` already"
        for operation in self.operations():
            if operation.audience != "entity":
                return (
                    f"its operation {operation.name} is for {operation.audience}s: only those of "
                    "entities may come from another package"
                )
            if operation.name in names:
                return f"there is an operation {operation.name} already"
            if operation.command and operation.command.split()[0] != self.name:
                return f"its command `pps {operation.command}` must begin with `pps {self.name}`"
            if operation.name not in attacked:
                return (
                    f"its operation {operation.name} has no attack: each stands in `plants` or "
                    "`attacks`"
                )
        own_names = {operation.name for operation in self.operations()}
        for view in self.views:
            for name in (view.operation, *(action.operation for action in view.actions)):
                if name not in own_names:
                    return f"its view {view.id} asks {name}, which is no operation of it"
        return ""


def shown_view(feature: str, view: View, table: Sequence[AnyOperation]) -> dict[str, JSON]:
    """Return a view as the page takes it: each action with the fields of its operation's input."""
    operations = {
        operation.name: operation for operation in table if operation.audience == "entity"
    }
    actions: list[JSON] = [
        {
            "operation": action.operation,
            "title": operations[action.operation].title,
            "of_row": action.of_row,
            "fields": _form_fields(operations[action.operation]),
        }
        for action in view.actions
    ]
    columns: list[JSON] = [{"name": name, "title": title} for name, title in view.columns]
    return {
        "feature": feature,
        "id": view.id,
        "title": view.title,
        "about": view.about,
        "operation": view.operation,
        "items": view.items,
        "columns": columns,
        "actions": actions,
    }


def _form_fields(operation: AnyOperation) -> list[JSON]:
    schema = operation.input_schema()
    required = schema.get("required", ())
    return [
        {
            "name": name,
            "type": about.get("type", "string"),
            "required": name in required,
            "about": about.get("description", ""),
        }
        for name, about in schema.get("properties", {}).items()
    ]
