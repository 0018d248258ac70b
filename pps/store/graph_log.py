"""Triggers that write a change log entry for each changed row of a graph that is published.

The indexes need entries for changed texts only. The published graph needs one for every changed
row, also for mentions and for what Graphiti's pipeline saves. Triggers see them all, in the same
transaction. In SQLite they are temporary triggers of the writing connection, created only if the
memory publishes its graph. In PostgreSQL they belong to the tables (``journal/postgresql.sql``) and
act only in transactions of memories that publish their graph.
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
"""Table, its column with the id to log, and the kind of the log's entry."""
_ROW_OF: Final = {"INSERT": "NEW", "UPDATE": "NEW", "DELETE": "OLD"}


def log_graph_rows(connection: Connection) -> None:
    """Log each graph row that this connection inserts, updates or deletes from now on."""
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
