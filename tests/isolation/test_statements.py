"""What the code itself promises: every statement of PPS's own binds the group, and few hands hold the keys."""

from __future__ import annotations

import ast
import inspect
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from pps.isolation import graphiti_objects, neo4j_cypher
from pps.isolation.guard import FOREIGN_IDS

SOURCE = Path(__file__).resolve().parent.parent.parent / "pps"
SCRIPTS = SOURCE.parent / "scripts"
BENCHMARKS = SCRIPTS / "benchmarks"
CLAUSES = ("MATCH ", "MERGE ", "CREATE ", "DELETE ", "LOAD FROM")


def texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from texts(item)
    elif isinstance(value, dict):
        yield from texts(list(value.values()))
    elif hasattr(value, "__dataclass_fields__"):
        yield from texts([getattr(value, name) for name in value.__dataclass_fields__])


def statements() -> Iterator[tuple[str, str]]:
    for module in (neo4j_cypher, graphiti_objects):
        for name, value in vars(module).items():
            for number, text in enumerate(texts(value)):
                whole = any(clause in text for clause in CLAUSES) and not name.startswith("__")
                if whole and "RETURN" + text[-1:] != "RETURN ":
                    yield f"{module.__name__}.{name}[{number}]", text


# Beginnings that other constants of the same module end: they are in the list above with their ends.
PARTS = {"_PAIR"}


@pytest.mark.parametrize(
    ("name", "text"), [pytest.param(name, text, id=name) for name, text in statements()]
)
def test_every_statement_of_ppss_own_binds_the_group(name: str, text: str) -> None:
    assert "$group_id" in text or name.rpartition(".")[2].partition("[")[0] in PARTS


def test_the_look_up_of_owners_binds_the_group_in_every_branch() -> None:
    assert all("$group_id" in branch for branch in FOREIGN_IDS.split("UNION ALL"))


@cache
def callers() -> dict[str, set[str]]:
    """Return by the name of a function or class the files, of the product or the benchmarks, that call or make it."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for file in (*SOURCE.rglob("*.py"), *BENCHMARKS.glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call):
                called = node.func
                spelled = (
                    called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
                )
                place = file.relative_to(SOURCE if file.is_relative_to(SOURCE) else SCRIPTS)
                found[spelled].add(place.as_posix())
    return found


def calls(name: str) -> set[str]:
    return callers()[name]


def test_few_hands_hold_a_driver_below_the_guard() -> None:
    assert calls("for_own_statements") == {"isolation/client.py"}
    assert calls("GuardedDriver") == {"isolation/client.py"}
    assert calls("SqlDriver") == {"isolation/client.py"}
    assert calls("bound_driver") == {"proof/arena.py"}
    openers = {
        "app/opening.py",
        "app/shared.py",
        "proof/verify.py",
    }  # they open and close, and hand it to a client
    stock = {"benchmarks/stock.py"}  # for the throw-away rows of a benchmark, see the next test
    assert calls("open_neo4j") <= openers | stock | {"benchmarks/against.py"}
    assert calls("Graphiti") == {"isolation/client.py"} | stock
    assert calls("GraphTables") == {"app/opening.py", "proof/verify.py"} | stock
    assert calls("Neo4jStore") <= {"isolation/client.py"}
    for tables in ("SqlGraphStore", "GraphitiReads", "GraphitiTables"):
        assert all(place.startswith("isolation/") for place in calls(tables)), tables
    assert calls("GroupObjects") == {"isolation/client.py"}
    assert calls("SqlObjects") <= {"isolation/client.py", "isolation/sql_search.py"}


def test_only_a_benchmark_asks_graphiti_without_a_guard() -> None:
    holders = {
        file.relative_to(SCRIPTS.parent).as_posix()
        for file in (*SOURCE.rglob("*.py"), *BENCHMARKS.glob("*.py"))
        if "StockGraphiti" in file.read_text()
    }
    assert holders == {
        f"scripts/benchmarks/{name}.py" for name in ("stock", "against", "scale", "writing")
    }
    assert not [
        file
        for file in SOURCE.rglob("*.py")
        if re.search(r"^\s*(from|import) benchmarks", file.read_text(), re.M)
    ]


def test_nobody_outside_the_boundary_reaches_into_the_client() -> None:
    outside = [
        file for file in SOURCE.rglob("*.py") if "isolation" not in file.relative_to(SOURCE).parts
    ]
    for file in outside:
        assert "client._inside" not in file.read_text(), file
        assert "_GuardedDriver__" not in file.read_text(), file
    exposing = re.compile(r"\bInside\b(?! [`a-z])|\(IsolatedGraphitiClient\)|ExposedClient")
    assert [file for file in outside if exposing.search(file.read_text())] == [
        SOURCE / "proof" / "arena.py"
    ]


def test_the_public_clients_constructor_and_open_take_no_switch_for_a_lock() -> None:
    from pps.isolation.binding import Models
    from pps.isolation.client import IsolatedGraphitiClient

    taken = inspect.signature(IsolatedGraphitiClient.open).parameters
    assert set(taken) == {"entity", "opened", "indexes", "models", "counters"}
    assert set(Models.__annotations__) == {"embedder", "reranker", "extractor", "rerank_deadline_s"}
