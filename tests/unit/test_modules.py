"""The shape of the package: unique file names, unique class names, and no import cycles."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import rustworkx

import pps

_ROOT = Path(pps.__file__).parent


def test_a_basename_occurs_once() -> None:
    """``finding.py`` names one file; ``__init__`` and ``__main__`` are apart."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in _ROOT.rglob("*.py"):
        if not path.stem.startswith("__"):
            places[path.name].append(str(path.relative_to(_ROOT)))
    assert not _repeated(places), "a basename occurs once in pps/"


def test_a_class_name_occurs_in_one_module() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for module, tree in _modules().items():
        for name in {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}:
            places[name].append(module)
    assert not _repeated(places), "a class name occurs in one module of pps/"


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    """Imports within functions count; those for type checkers alone do not."""
    modules = _modules()
    graph: rustworkx.PyDiGraph[str, None] = rustworkx.PyDiGraph()
    nodes = {module: graph.add_node(module) for module in modules}
    for module, tree in modules.items():
        for imported in _imports(tree) & modules.keys():
            if imported != module:
                graph.add_edge(nodes[module], nodes[imported], None)
    groups = rustworkx.strongly_connected_components(graph)
    cycles = [sorted(graph[node] for node in group) for group in groups if len(group) > 1]
    assert not cycles, "modules of pps/ import each other in a circle"


@cache
def _modules() -> Mapping[str, ast.Module]:
    """Return the syntax tree of each module by its dotted name."""
    trees: dict[str, ast.Module] = {}
    for path in _ROOT.rglob("*.py"):
        parts = path.relative_to(_ROOT.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        trees[name] = ast.parse(path.read_text(encoding="utf-8"))
    return trees


def _imports(tree: ast.AST) -> set[str]:
    """Return the dotted names that a module imports, and the packages that it imports names from."""
    names: set[str] = set()
    for node in _without_type_checking(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
    return names


def _without_type_checking(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        yield child
        yield from _without_type_checking(child)


def _repeated(places: Mapping[str, list[str]]) -> dict[str, list[str]]:
    return {name: sorted(where) for name, where in places.items() if len(where) > 1}
