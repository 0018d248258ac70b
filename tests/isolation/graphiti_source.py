"""What PPS relies on in the source of Graphiti: hooks, signatures, and statements that no hook stands before.

Graphiti reaches a store through two tables of hooks, ``GraphOperationsInterface`` and ``SearchInterface``. A function
that sends a statement asks a hook first; some have a statement of their own to fall back on, some have none, and a few
have no hook at all. All of this is read off the installed package without running it, so that an upgrade that adds a
statement, drops a hook or changes an argument is a difference in ``graphiti_source.json``.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.metadata
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import graphiti_core
from graphiti_core.driver.driver import GraphDriver
from graphiti_core.driver.graph_operations.graph_operations import GraphOperationsInterface
from graphiti_core.driver.search_interface.search_interface import SearchInterface

import pps

_PACKAGE = Path(graphiti_core.__file__).parent
_SENDERS = {
    *("driver", "self.driver", "self._driver", "graph_driver", "clients.driver"),
    *("session", "tx"),
}
"""Names under which Graphiti holds what a statement is sent to."""
_TABLES = {"graph_operations_interface": "operations", "search_interface": "search"}
_STATEMENT = re.compile(r"\b(MATCH|MERGE|CREATE|UNWIND|DETACH|CALL|RETURN|DELETE)\b")


@dataclass(frozen=True)
class Sender:
    """A function of Graphiti, outside its drivers, that sends statements.

    Attributes:
        place: ``FILE:CLASS.FUNCTION``.
        hooks: What it asks first, such as ``operations.edge_save``; empty when no hook stands before its statements.
        falls_back: It sends its own statement where a hook is not implemented.
        code: Its text in the file.
        statements: The parts of statements that stand in it, each in one line.
    """

    place: str
    hooks: tuple[str, ...]
    falls_back: bool
    code: str
    statements: tuple[str, ...]

    @property
    def line(self) -> str:
        """The hooks as a line for people; of an unhooked function a digest of its code."""
        if not self.hooks:
            return f"NO HOOK, code {digest(self.code)}"
        without = "" if self.falls_back else ", no fallback"
        return " ".join(self.hooks) + without


def senders() -> list[Sender]:
    """Return every function outside ``driver/`` that sends a statement, in the order of the files."""
    return [
        sender
        for path in sorted(_PACKAGE.rglob("*.py"))
        if path.relative_to(_PACKAGE).parts[0] != "driver"
        for sender in _senders_in(path)
    ]


def _senders_in(path: Path) -> Iterator[Sender]:
    text = path.read_text("utf-8")
    tree = ast.parse(text)
    owners = {
        function: f"{owner.name}."
        for owner in ast.walk(tree)
        if isinstance(owner, ast.ClassDef)
        for function in owner.body
    }
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        calls = [
            node.func
            for node in ast.walk(function)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        ]
        if any(_sends(call) for call in calls):
            hooks = {hook for call in calls if (hook := _hook(call))}
            place = f"{path.relative_to(_PACKAGE)}:{owners.get(function, '')}{function.name}"
            code = ast.get_source_segment(text, function) or ""
            falls_back = "NotImplementedError" in code
            yield Sender(place, tuple(sorted(hooks)), falls_back, code, _statements(function))


def _sends(call: ast.Attribute) -> bool:
    return call.attr in ("execute_query", "run") and ast.unparse(call.value) in _SENDERS


def _hook(call: ast.Attribute) -> str:
    table = ast.unparse(call.value).rpartition(".")[2]
    return f"{_TABLES[table]}.{call.attr}" if table in _TABLES else ""


def _statements(function: ast.AST) -> tuple[str, ...]:
    literals = (
        node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    return tuple(" ".join(text.split()) for text in literals if _STATEMENT.search(text))


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def source() -> dict[str, Any]:
    """Return all that ``graphiti_source.json`` holds."""
    found = senders()
    return {
        "version": importlib.metadata.version("graphiti-core"),
        "senders": {sender.place: sender.line for sender in found},
        "unhooked_statements": {
            sender.place: list(sender.statements) for sender in found if not sender.hooks
        },
        "hooks": {
            "operations": signatures(GraphOperationsInterface),
            "search": signatures(SearchInterface),
        },
        "driver": signatures(GraphDriver),
        "used_by_pps": used_by_pps(),
    }


def signatures(kind: type) -> dict[str, str]:
    """Return the methods of a class, with what they take and return; of a model also its fields."""
    found: dict[str, str] = {}
    fields = cast("dict[str, Any]", getattr(kind, "model_fields", {}))
    for name, field in fields.items():
        required = ", required" if field.is_required() else ""
        found[name] = f"field {_plain(str(field.annotation))}{required}"
    for name, value in inspect.getmembers_static(kind):
        function = getattr(value, "__func__", value)
        if name.startswith("_") or not inspect.isfunction(function):
            continue
        if function.__module__.startswith("graphiti_core"):
            found[name] = signature(function)
    return found


def signature(function: Any) -> str:
    prefix = "async " if inspect.iscoroutinefunction(function) else ""
    return prefix + _plain(str(inspect.signature(function)))


def _plain(text: str) -> str:
    """Return a signature without addresses in memory, which differ from run to run."""
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def used_by_pps() -> dict[str, Any]:
    """Return what PPS imports of Graphiti: signatures of functions, methods of classes, values of constants.

    Of functions that return statements the code's digest is part of it.
    """
    found: dict[str, Any] = {}
    for module_name, names in sorted(_imports().items()):
        module = importlib.import_module(module_name)
        for name in sorted(names):
            found[f"{module_name}.{name}"] = _described(module, name)
    return found


def _imports() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for file in sorted(Path(pps.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("graphiti_core"):
                found.setdefault(str(node.module), set()).update(one.name for one in node.names)
    return found


def _described(module: ModuleType, name: str) -> object:
    value = getattr(module, name)
    if isinstance(value, ModuleType):
        return "module"
    if isinstance(value, type):
        return signatures(value)
    if inspect.isfunction(value):
        builds_statements = "queries" in module.__name__
        code = f", code {digest(inspect.getsource(value))}" if builds_statements else ""
        return signature(value) + code
    return repr(value) if isinstance(value, str | int | float) else type(value).__name__
