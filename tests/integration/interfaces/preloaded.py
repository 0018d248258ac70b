"""What a server and a command import, once, in the process that those of ``forked`` are forked from."""

from __future__ import annotations

from importlib import import_module

from pps.core.footprint import few_arenas, one_thread_a_sum

few_arenas()
one_thread_a_sum()
_LATE = (
    *(
        "pps.__main__",
        "pps.interfaces.cli.main",
        "pps.interfaces.serve",
        "pps.app.opening",
        "pps.interfaces.mcp.endpoint",
        "pps.isolation.client",
    ),
    *("chromadb", "chromadb.api.rust", "graphiti_core.graphiti", "tantivy"),
)
for _late in _LATE:
    import_module(_late)
import_module("pps.operations.catalog").all_operations()
