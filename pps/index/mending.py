"""Opening Chroma on a folder that may have seen a crash; what is torn is made again from the rows."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Mapping
from pathlib import Path

from pps.core.errors import IsolationError, StoreError
from pps.index.chroma import ChromaClient, Number, chroma_errors, open_client
from pps.index.neighbours import Neighbours
from pps.index.rows import RowStore, State

_log = logging.getLogger(__name__)
_LAST_WRITTEN = "index_metadata.pickle"
"""Chroma saves a graph's files in place and this one after them all."""


def attach(
    folder: Path, rows: RowStore, state: State, marks: Mapping[str, Number]
) -> tuple[ChromaClient, dict[str, Neighbours]]:
    """Open Chroma and bring it to what the rows say.

    After a clean close the sizes of its files are enough. After a crash a graph whose save was cut short
    is not even loaded, since that may end the process; another is tried out, and is not trusted a second
    time if that did end it. When graphs are made again, all rows start in memory.

    Raises:
        IsolationError: Chroma's files are another entity's.
        StoreError: Chroma cannot be opened on an empty folder either.
    """
    doubtful = state != "clean"
    if state == "probing" or (is_torn(folder) if doubtful else listing(folder) != rows.marks().get("files", "{}")):
        return _made_again(folder, rows, marks)
    if doubtful:
        rows.mark({"state": "probing"})
    try:
        client = open_client(folder)
    except StoreError as error:
        _log.warning("%s", error.message)
        return _made_again(folder, rows, marks)
    try:
        return client, _agreeing(folder, client, rows, marks, doubtful=doubtful)
    except StoreError as error:
        _log.warning("%s", error.message)
        _close(folder, client)
        return _made_again(folder, rows, marks)
    except BaseException:
        _close(folder, client)
        raise


def listing(folder: Path) -> str:
    """Return the sizes of the graphs' files as JSON, to be kept at a clean close; none of a folder that is gone."""
    graphs = [graph for graph in folder.iterdir() if graph.is_dir()] if folder.exists() else []
    files = [file for graph in graphs for file in graph.iterdir()]
    return json.dumps({str(file.relative_to(folder)): file.stat().st_size for file in files}, sort_keys=True)


def is_torn(folder: Path) -> bool:
    """Tell whether a save of a graph was cut short: a file of it is younger than the one written last."""
    for graph in folder.iterdir():
        if graph.is_dir():
            times = {file.name: file.stat().st_mtime_ns for file in graph.iterdir()}
            if times and times.get(_LAST_WRITTEN, -1) < max(times.values()):
                return True
    return False


def _agreeing(
    folder: Path, client: ChromaClient, rows: RowStore, marks: Mapping[str, Number], *, doubtful: bool
) -> dict[str, Neighbours]:
    with chroma_errors(folder):
        present = list(client.list_collections())
        held = {found.name: found.metadata or {} for found in present}
    if any(some.get("pps_group") != marks["pps_group"] for some in held.values()):
        raise IsolationError(f"{folder} holds the vectors of another entity")
    if any(some.get(key) != value for some in held.values() for key, value in marks.items()):
        raise StoreError(f"the graph in {folder} is of another model than its rows")
    sizes = rows.sizes()  # Chroma itself takes 0.6 s to count 100,000
    graphs = {found.name: Neighbours(folder, found, filled=rows.inside(found.name) > 0) for found in present}
    for name in sizes.keys() - graphs.keys():
        if rows.inside(name):
            raise StoreError(f"the graph of {name} in {folder} is gone")
        graphs[name] = Neighbours.make(folder, client, name, marks)
    for name, graph in graphs.items():
        if doubtful:
            if not graph.agrees(rows, name):
                graph.agree(rows, name)
            if not graph.answers(rows, name):
                raise StoreError(f"the graph of {name} in {folder} lost rows in a crash")
    return graphs


def _made_again(
    folder: Path, rows: RowStore, marks: Mapping[str, Number]
) -> tuple[ChromaClient, dict[str, Neighbours]]:
    _log.warning("making the graphs of neighbours in %s again from its rows: %s", folder, rows.sizes())
    with chroma_errors(folder):
        for found in folder.iterdir():
            if found.is_dir():
                shutil.rmtree(found)
            elif found.name.startswith("chroma.sqlite3"):
                found.unlink()
    rows.unmerge()
    client = open_client(folder)
    try:
        return client, {name: Neighbours.make(folder, client, name, marks) for name in rows.sizes()}
    except BaseException:
        _close(folder, client)
        raise


def _close(folder: Path, client: ChromaClient) -> None:
    with chroma_errors(folder):
        client.close()
