"""Entries of the change log for each written row of the graph, for a follower with a copy.

The indexes need an entry where a text changes. A copy needs one for whatever changes: a mention
that is joined, what Graphiti's own pipeline saves. Triggers see all of it, in the transaction that
changes the row. In a file they are of the writing connection alone, and only a memory that
publishes its graph has them. On PostgreSQL the tables have them (``journal/postgresql.sql``), and
they act in the transactions of such a memory.
"""

from __future__ import annotations

from typing import Final

from pps.core.sql import Connection
from pps.journal.entries import GraphKind
from pps.journal.postgresql import PostgresConnection

_LOGGED: Final[tuple[tuple[str, str, GraphKind], ...]] = (
    ("node", "uuid", "graph_node"),
    ("fact", "uuid", "graph_fact"),
    ("episode", "uuid", "graph_episode"),
    ("mention", "episode", "graph_episode"),
)
"""Table, the column with the id of what is to be read again, and what that is."""
_ROW_OF: Final = {"INSERT": "NEW", "UPDATE": "NEW", "DELETE": "OLD"}


def log_graph_rows(connection: Connection) -> None:
    """Log every graph row that is inserted, updated or deleted on this connection from now on."""
    if isinstance(connection, PostgresConnection):
        return
    for table, column, kind in _LOGGED:
        for event, row in _ROW_OF.items():
            name = f"log_{table}_{event.lower()}"
            connection.execute(
                f"CREATE TEMP TRIGGER IF NOT EXISTS {name} AFTER {event} ON main.{table} BEGIN "
                f"DELETE FROM change_log WHERE kind = '{kind}' AND id = {row}.{column}; "
                f"INSERT INTO change_log (kind, id) VALUES ('{kind}', {row}.{column}); END"
            )
