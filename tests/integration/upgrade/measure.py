"""How long the upgrade of a large memory takes: ``python -m tests.integration.upgrade.measure FACTS [FOLDER]``.

Makes a ``graph.lbug`` with so many facts, a fifth as many nodes and episodes, two mentions an episode, and vectors of
384 numbers on all nodes and facts; upgrades it, and writes seconds, bytes and the memory that the process took.
"""

from __future__ import annotations

import csv
import json
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import ladybug

from pps.store import graph_upgrade
from tests.integration.upgrade.old_graphs import GROUP, TABLES, an_id, make_memory

DIMENSION = 384
MOMENT = "2026-03-01 09:30:00"
PPS = json.dumps({"pps": json.dumps({"kind": "fact", "attributes": {}})})


def _write(file: Path, rows: Iterable[Sequence[object]]) -> Path:
    with file.open("w", newline="") as opened:
        csv.writer(opened, quoting=csv.QUOTE_MINIMAL).writerows(rows)
    return file


def make(data: Path, facts: int) -> None:
    """Make a memory of an earlier PPS with so many facts, of LadybugDB's own import of CSV files."""
    make_memory(data)
    dice = random.Random(7)  # noqa: S311 - the same numbers each time
    vectors = [
        f"[{','.join(f'{dice.uniform(-1, 1):.5f}' for _ in range(DIMENSION))}]" for _ in range(50)
    ]
    nodes = [an_id(f"node {number}") for number in range(max(2, facts // 5))]
    episodes = [an_id(f"episode {number}") for number in range(max(1, facts // 5))]
    pairs = [(dice.choice(nodes), dice.choice(nodes)) for _ in range(facts)]
    ids = [an_id(f"fact {number}") for number in range(facts)]
    common = (GROUP, MOMENT)
    tables = {
        "Entity": (
            (id_, f"node {number}", *common, "[Entity]", vectors[number % 50], "A summary.", PPS)
            for number, id_ in enumerate(nodes)
        ),
        "Episodic": (
            (
                id_,
                "episode",
                *common,
                "text",
                "",
                f"What was said as number {number}. " * 3,
                MOMENT,
                "[]",
            )
            for number, id_ in enumerate(episodes)
        ),
        "RelatesToNode_": (
            (
                *(ids[number], "KNOWS", *common, *pairs[number]),
                *(f"One knows the other, as number {number} says.", vectors[number % 50]),
                *(f"[{episodes[number % len(episodes)]}]", "", MOMENT, "", "", PPS),
            )
            for number in range(facts)
        ),
        "RELATES_TO from Entity": (
            (subject, fact) for fact, (subject, _) in zip(ids, pairs, strict=True)
        ),
        "RELATES_TO from RelatesToNode_": (
            (fact, target) for fact, (_, target) in zip(ids, pairs, strict=True)
        ),
        "MENTIONS": (
            (episode, node, an_id(f"{episode} {node}"), GROUP, MOMENT)
            for number, episode in enumerate(episodes)
            for node in (nodes[number % len(nodes)], nodes[(number + 1) % len(nodes)])
        ),
    }
    database = ladybug.Database(data / "graph.lbug", buffer_pool_size=2**31, max_db_size=2**36)
    connection = ladybug.Connection(database)
    for table in TABLES:
        connection.execute(f"CREATE {table}")
    with tempfile.TemporaryDirectory() as folder:
        for name, rows in tables.items():
            file = _write(Path(folder) / f"{name}.csv", rows)
            options = "parallel=false, null_strings=['']"
            table, _, source = name.partition(" from ")
            if source:
                target = "Entity" if source == "RelatesToNode_" else "RelatesToNode_"
                options = f"from='{source}', to='{target}', {options}"
            connection.execute(f"COPY {table} FROM '{file}' ({options})")
    connection.close()
    database.close()


def main(facts: int, folder: str | None) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as place:
        data = Path(place) / "data"
        make(data, facts)
        graph_bytes = (data / "graph.lbug").stat().st_size
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        steps: dict[str, float] = {}
        began = started = time.perf_counter()

        def told(what: str, done: int, total: int) -> None:
            nonlocal began
            at = time.perf_counter()
            steps[what] = round(steps.get(what, 0.0) + at - began, 2)
            began = at

        processor = time.process_time()
        done = graph_upgrade.upgrade(data, GROUP, "measured", told)
        assert done is not None
        result = {
            "rows": done.rows,
            "seconds": round(time.perf_counter() - started, 2),
            "processor_seconds": round(time.process_time() - processor, 2),
            "steps": steps,
            "graph_lbug_bytes": graph_bytes,
            "copy_bytes": done.copy_bytes,
            "memory_db_bytes": (data / "memory.db").stat().st_size,
            "most_memory_before_kib": before,
            "most_memory_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        }
        sys.stdout.write(f"{json.dumps(result, indent=2)}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
