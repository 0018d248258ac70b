"""The tools on the other store: the same calls, the same answers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.interfaces.every_tool import done, use_every_tool
from tests.integration.interfaces.serving import ERAS, Served, neo4j_env, serving
from tests.neo4j_server import Neo4jServer
from tests.sampling import sample

pytestmark = pytest.mark.neo4j


@pytest.fixture(scope="module")
def on_neo4j(
    neo4j_server: Neo4jServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("on_neo4j") / "home", **neo4j_env(neo4j_server)) as served:
        yield served


@pytest.mark.parametrize("era", sample(ERAS, 1, "neo4j"))
async def test_every_tool_does_its_work(on_neo4j: Served, era: str) -> None:
    """Over HTTP; what the bridge and the other era make of an answer does not depend on the store."""
    async with on_neo4j.client(on_neo4j.create(f"http_{ERAS.index(era)}"), era) as client:
        await use_every_tool(client)
        assert (await done(client, "stats"))["store"] == "neo4j"


def test_a_deleted_entity_leaves_nothing_on_the_server(on_neo4j: Served) -> None:
    on_neo4j.create("leaving")
    on_neo4j.link.call(
        "remember", "leaving", {"content": "Soon gone.", "nodes": [{"name": "Nobody"}]}
    )
    assert on_neo4j.pps("entity", "delete", "leaving", "--yes").returncode == 0
    assert on_neo4j.pps("stats", "leaving").returncode == 3
