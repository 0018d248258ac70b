"""What a start imports, in processes of their own: what an answer does not need is not waited for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from pps.operations.catalog import OPERATIONS, locate, operations_for

_LATE = (
    *("graphiti_core", "neo4j", "networkx", "rich", "mcp", "mcp_types", "chromadb", "tantivy"),
    *("pps.memory", "pps.ingest.rules", "pps.recall.engine", "pps.squad.knowing"),
)
"""What neither the start of a server nor a question about the registry needs."""

_LISTED = """
import asyncio, json, sys
from pathlib import Path
import pps.interfaces.serve
from pps.app import App
from pps.config import Settings
from pps.operations.calls import Calls, OPERATOR

async def main():
    async with App.open(Settings(home=Path(sys.argv[1]))) as app:
        return (await Calls(app).answer(OPERATOR, "entity_list", {})).data

data = asyncio.run(main())
print(json.dumps({"data": data, "modules": list(sys.modules)}))
"""


def _imported(code: str, *arguments: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_a_server_starts_and_lists_its_entities_without_what_a_memory_needs(tmp_path: Path) -> None:
    listed = _imported(_LISTED, str(tmp_path / "home"))
    assert listed["data"] == {"entities": []}
    assert not set(_LATE) & set(listed["modules"])  # pyright: ignore[reportArgumentType]


_OPENED = """
import asyncio, json, sys
from pathlib import Path
from pps.app import App
from pps.config import EmbedderSettings, Settings

async def main():
    settings = Settings(home=Path(sys.argv[1]), embedder=EmbedderSettings(name="hash"))
    async with App.open(settings) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            await memory.remember("Ana lives in Bern.")
            return len((await memory.recall("Where does Ana live?"))["facts"])

facts = asyncio.run(main())
print(json.dumps({"facts": facts, "modules": list(sys.modules)}))
"""


def test_an_embedded_home_never_needs_the_library_of_neo4j(tmp_path: Path) -> None:
    used = _imported(_OPENED, str(tmp_path / "home"))
    assert used["facts"]
    assert not {"neo4j", "networkx", "rich", "openai", "mcp"} & set(used["modules"])  # pyright: ignore[reportArgumentType]


def test_graphiti_knows_the_times_of_neo4j_once_its_library_is_there() -> None:
    code = """
import json, sys
import pps.isolation
from graphiti_core.helpers import parse_db_date
assert "neo4j" not in sys.modules
assert parse_db_date("2026-01-02T03:04:05+00:00").year == 2026
import pps.isolation.neo4j
from graphiti_core.driver.neo4j_driver import Neo4jDriver
from neo4j.time import DateTime
assert Neo4jDriver.__module__ == "graphiti_core.driver.neo4j_driver"
assert issubclass(Neo4jDriver, pps.isolation.quiet.graphiti_core.graphiti.GraphDriver)
print(json.dumps({"year": parse_db_date(DateTime(2025, 1, 2)).year}))
"""
    assert _imported(code) == {"year": 2025}


def test_the_bridge_needs_neither_the_server_nor_the_protocols_library() -> None:
    code = "import json, sys, pps.interfaces.mcp.bridge; print(json.dumps(list(sys.modules)))"
    late = {*_LATE, "pydantic", "starlette", "sqlite3", "pps.operations.table"}
    assert not late & set(_imported(code))


def test_the_command_line_is_built_without_what_its_commands_need() -> None:
    code = """
import json, sys
from pps.interfaces.cli.main import build
build()
print(json.dumps(list(sys.modules)))
"""
    late = {*_LATE, "asyncio", "pydantic", "starlette", "sqlite3", "pps.operations.table"}
    assert not {*late, "pps.server"} & set(_imported(code))


def test_each_operation_is_found_by_its_name_without_importing_the_others() -> None:
    code = """
import json, sys
from pps.operations.catalog import locate
locate("stats", ["entity"]).load()
print(json.dumps([name for name in sys.modules if name.startswith("pps.operations")]))
"""
    assert "pps.operations.squad_tools" not in _imported(code)
    for operation in OPERATIONS:
        place = locate(operation.name, [operation.audience])
        assert place is not None
        assert place.load() is operation
    assert locate("stats", ["router", "entity"]) == locate("stats", ["entity"])
    assert locate("stats", ["entity"], {"core"}) is None
    assert locate("nonesuch", ["entity"]) is None
    both = ("entity", "owner")
    for name, operation in operations_for(*both).items():
        place = locate(name, both)
        assert place is not None
        assert place.load() is operation
