"""Every public method, route and command has an isolation test: what is there is compared with manifest.toml."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import typer.main

from benchmarks.__main__ import app as benchmarks
from pps.app import App
from pps.entities.registry import Registry
from pps.entities.routing import Routers, Watched
from pps.entities.routing import Routes as ProjectRoutes
from pps.entities.tasks import Tasks
from pps.ingest.documents import Documents
from pps.interfaces.cli.main import build
from pps.interfaces.http.routes import HttpRoutes
from pps.isolation.client import IsolatedGraphitiClient
from pps.memory import Memory
from pps.recall.explore import Walks

HERE = Path(__file__).parent
ATTACKS = HERE.parent.parent / "pps" / "proof"
MANIFEST: dict[str, dict[str, list[str]]] = tomllib.loads((HERE / "manifest.toml").read_text())


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def routes() -> set[str]:
    parts = cast(
        "Any",
        SimpleNamespace(
            **dict.fromkeys(
                ("app", "activity", "browsers", "calls", "home", "names", "talk", "trust")
            )
        ),
    )
    parts.mcp = lambda *_: None
    return {str(getattr(route, "path", route)) for route in HttpRoutes(parts).starlette().routes}


def commands(app: Any) -> set[str]:
    def walk(command: Any, head: str) -> Iterator[str]:
        for name, one in getattr(command, "commands", {}).items():
            if hasattr(one, "commands"):
                yield from walk(one, f"{head}{name} ")
            else:
                yield f"{head}{name}"

    return set(walk(app, ""))


THERE: dict[str, Callable[[], set[str]]] = {
    "client": lambda: public(IsolatedGraphitiClient),
    "memory": lambda: public(Memory),
    "app": lambda: public(App),
    "registry": lambda: public(Registry),
    "documents": lambda: public(Documents),
    "watched": lambda: public(Watched),
    "project_routes": lambda: public(ProjectRoutes),
    "routers": lambda: public(Routers),
    "agent_tasks": lambda: public(Tasks),
    "graph": lambda: public(Walks),
    "routes": routes,
    "commands": lambda: commands(build()),
    "benchmarks": lambda: commands(typer.main.get_command(benchmarks)),
}


def test_the_manifest_has_a_section_for_each_way_in() -> None:
    assert set(MANIFEST) == set(THERE)


@pytest.mark.parametrize("section", sorted(THERE))
def test_everything_public_has_an_isolation_test(section: str) -> None:
    there, listed = THERE[section](), set(MANIFEST[section])
    assert there - listed == set(), (
        "write an isolation test for these, then list it in manifest.toml"
    )
    assert listed - there == set(), "these are no longer there"


def functions(file: Path) -> set[str]:
    tree = ast.parse(file.read_text())
    return {
        node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }


@pytest.mark.parametrize("section", sorted(THERE))
def test_every_listed_test_exists_and_its_file_mentions_what_it_is_for(section: str) -> None:
    attacks = "".join(file.read_text() for file in (HERE / "attacks.py", *ATTACKS.glob("*.py")))
    for name, tests in MANIFEST[section].items():
        assert tests, name
        mentioned = attacks
        for test in tests:
            file, _, function = test.partition("::")
            assert function in functions(HERE / file), test
            mentioned += (HERE / file).read_text()
        word = re.split(r"[/{]", name.strip("/"))[0].split()[-1]
        assert re.search(rf"\b{re.escape(word)}\b", mentioned), (
            f"{section}.{name} is not used by {tests}"
        )
