"""Graphiti on the embedded store: its import, and the dialect that the driver mends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from graphiti_core.edges import EntityEdge
from graphiti_core.nodes import EntityNode
from graphiti_core.utils.bulk_utils import add_nodes_and_edges_bulk

from pps.core.ids import new_group
from pps.graph.ladybug import LadybugDriver, open_ladybug
from pps.graph.store_embedded import EmbeddedStore
from tests.integration.graph_items import T0, new_id


async def saved_by_graphiti(
    driver: LadybugDriver, group: str
) -> tuple[list[EntityNode], list[EntityEdge]]:
    nodes = [
        EntityNode(name=name, group_id=group, created_at=T0, name_embedding=[1.0, 0.0])
        for name in "abc"
    ]
    for node in nodes:
        await node.save(driver)
    edges = [
        EntityEdge(
            source_node_uuid=nodes[start].uuid,
            target_node_uuid=nodes[end].uuid,
            name="R",
            fact=f"{start} to {end}",
            group_id=group,
            created_at=T0,
            reference_time=T0,
            fact_embedding=[1.0, 0.0],
        )
        for start, end in ((0, 1), (1, 2), (2, 0))
    ]
    return nodes, edges


async def test_facts_saved_by_graphiti_name_their_ends_whichever_way_they_are_saved(
    driver: LadybugDriver, store: EmbeddedStore
) -> None:
    nodes, edges = await saved_by_graphiti(driver, store.group)
    await edges[0].save(driver)
    await edges[1].save(driver)
    await add_nodes_and_edges_bulk(driver, [], [], [], [edges[2]], None)  # type: ignore[arg-type]
    found = {fact.uuid: (fact.subject, fact.object) for fact in await store.scan_facts("", 10)}
    assert found == {edge.uuid: (edge.source_node_uuid, edge.target_node_uuid) for edge in edges}
    assert await store.distances(nodes[0].uuid, 1) == {
        nodes[0].uuid: 0,
        nodes[1].uuid: 1,
        nodes[2].uuid: 1,
    }
    for edge in edges:
        assert (await EntityEdge.get_by_uuid(driver, edge.uuid)).reference_time == T0


async def test_facts_that_do_not_name_their_ends_are_put_right_when_the_file_is_opened(
    path: Path,
) -> None:
    driver = await open_ladybug(path)
    await driver.execute_query(
        "CREATE (a:Entity {uuid: $a, group_id: $g}), (b:Entity {uuid: $b, group_id: $g}), (a)-[:RELATES_TO]->"
        "(:RelatesToNode_ {uuid: $e, group_id: $g, name: 'R', fact: 'f', created_at: $at})-[:RELATES_TO]->(b)",
        **(ids := {"a": new_id(), "b": new_id(), "e": new_id(), "g": new_group()}),
        at=T0,
    )
    await driver.close()
    driver = await open_ladybug(path)
    [fact] = await EmbeddedStore(driver, ids["g"]).facts([ids["e"]])
    assert (fact.subject, fact.object) == (ids["a"], ids["b"])
    await driver.close()


async def test_building_indexes_changes_nothing(driver: LadybugDriver) -> None:
    await driver.build_indices_and_constraints(delete_existing=True)
    await driver.delete_all_indexes()
    assert driver.clone("other") is driver


def test_importing_graphiti_reads_no_env_file_and_reports_nothing(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("STRAY=1\nGRAPHITI_TELEMETRY_ENABLED=true\n")
    code = (
        "import os, dotenv; own = dotenv.load_dotenv\n"
        "from pps.graph.ladybug import open_ladybug\n"
        "from graphiti_core.telemetry.telemetry import is_telemetry_enabled\n"
        "assert dotenv.load_dotenv is own; print(os.environ.get('STRAY'), is_telemetry_enabled())"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    # From a script: dotenv looks for the file in the folders above the caller's, and in the working folder.
    script = tmp_path / "program.py"
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["None", "False"]
