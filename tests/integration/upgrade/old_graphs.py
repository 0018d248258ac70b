"""Graph files as an earlier PPS left them, written with LadybugDB itself or with the SQL of that time."""

from __future__ import annotations

import json
import sqlite3
import uuid
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import ladybug

from pps.core.ids import new_group
from pps.graph.mapping import mention_id
from pps.journal.db import APPLICATION_ID, prepare_file
from pps.journal.old_graph import LADYBUG, SQL

GROUP: Final = new_group()
AT: Final = datetime(2026, 3, 1, 9, 30, 0, 5, tzinfo=UTC)
WORD: Final = "zanzibar"
"""Stands in every text of the graph that ``make_ladybug_graph`` writes."""
TABLES: Final = (
    "NODE TABLE Episodic(uuid STRING PRIMARY KEY, name STRING, group_id STRING, created_at TIMESTAMP, source STRING, "
    "source_description STRING, content STRING, valid_at TIMESTAMP, entity_edges STRING[])",
    "NODE TABLE Entity(uuid STRING PRIMARY KEY, name STRING, group_id STRING, created_at TIMESTAMP, labels STRING[], "
    "name_embedding FLOAT[], summary STRING, attributes STRING)",
    "NODE TABLE Community(uuid STRING PRIMARY KEY, name STRING, group_id STRING, created_at TIMESTAMP, "
    "name_embedding FLOAT[], summary STRING)",
    "NODE TABLE RelatesToNode_(uuid STRING PRIMARY KEY, name STRING, group_id STRING, created_at TIMESTAMP, "
    "source_node_uuid STRING, target_node_uuid STRING, fact STRING, fact_embedding FLOAT[], episodes STRING[], "
    "expired_at TIMESTAMP, valid_at TIMESTAMP, invalid_at TIMESTAMP, reference_time TIMESTAMP, attributes STRING)",
    "NODE TABLE Saga(uuid STRING PRIMARY KEY, name STRING, group_id STRING, created_at TIMESTAMP, summary STRING, "
    "first_episode_uuid STRING, last_episode_uuid STRING, last_summarized_at TIMESTAMP, "
    "last_summarized_episode_valid_at TIMESTAMP)",
    "REL TABLE RELATES_TO(FROM Entity TO RelatesToNode_, FROM RelatesToNode_ TO Entity)",
    *(
        f"REL TABLE {name}({ends}, uuid STRING, group_id STRING, created_at TIMESTAMP)"
        for name, ends in (
            ("MENTIONS", "FROM Episodic TO Entity"),
            ("HAS_MEMBER", "FROM Community TO Entity, FROM Community TO Community"),
            ("HAS_EPISODE", "FROM Saga TO Episodic"),
            ("NEXT_EPISODE", "FROM Episodic TO Episodic"),
        )
    ),
)


def an_id(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, name))


class LadybugFile:
    """Writes one ``graph.lbug``; what is written stays in its log."""

    def __init__(self, path: Path, group: str = GROUP) -> None:
        self._group = group
        self._database = ladybug.Database(
            path, buffer_pool_size=2**28, max_db_size=2**36, auto_checkpoint=False
        )
        self._connection = ladybug.Connection(self._database)
        self._run("CALL force_checkpoint_on_close=false")
        for table in TABLES:
            self._run(f"CREATE {table}")

    def __enter__(self) -> LadybugFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        self._database.close()

    def checkpoint(self) -> None:
        self._run("CHECKPOINT")

    def node(self, name: str, *, attributes: str | None = "{}", **more: Any) -> str:
        values = {"labels": ["Entity"], "summary": f"{name} {WORD}", **more}
        return self._row("Entity", name, attributes=attributes, **values)

    def fact(
        self, name: str, subject: str, target: str, *, names_ends: bool = True, **more: Any
    ) -> str:
        ends = {"source_node_uuid": subject, "target_node_uuid": target} if names_ends else {}
        values = {"fact": f"{name} {WORD}", "attributes": "{}", **ends, **more}
        fact = self._row("RelatesToNode_", name, **values)
        self._run(
            "MATCH (s:Entity {uuid: $subject}) MATCH (f:RelatesToNode_ {uuid: $fact}) MATCH (o:Entity {uuid: $target}) "
            "CREATE (s)-[:RELATES_TO]->(f), (f)-[:RELATES_TO]->(o)",
            subject=subject,
            fact=fact,
            target=target,
        )
        return fact

    def episode(self, name: str, **more: Any) -> str:
        values = {"source": "text", "content": f"{name} {WORD}", "valid_at": AT, **more}
        return self._row("Episodic", name, **values)

    def community(self, name: str, **more: Any) -> str:
        return self._row("Community", name, **{"summary": WORD, **more})

    def saga(self, name: str, **more: Any) -> str:
        return self._row("Saga", name, **{"summary": WORD, **more})

    def join(
        self, source: tuple[str, str], edge: str, target: tuple[str, str], id_: str | None
    ) -> None:
        """Join two rows, each a table and a uuid."""
        self._run(
            f"MATCH (a:{source[0]} {{uuid: $a}}) MATCH (b:{target[0]} {{uuid: $b}}) "
            f"CREATE (a)-[:{edge} {{uuid: $id, group_id: $group_id, created_at: $at}}]->(b)",
            a=source[1],
            b=target[1],
            id=id_,
            group_id=self._group,
            at=_stored(AT),
        )

    def _row(self, table: str, name: str, **values: Any) -> str:
        id_ = an_id(name)
        row = {"uuid": id_, "name": name, "group_id": self._group, "created_at": AT, **values}
        row = {key: _stored(value) for key, value in row.items() if value is not None}
        self._run(f"CREATE (:{table} {{{', '.join(f'{key}: ${key}' for key in row)}}})", **row)
        return id_

    def _run(self, statement: str, **parameters: Any) -> None:
        result = self._connection.execute(statement, parameters)
        for one in result if isinstance(result, list) else [result]:
            one.close()


def _stored(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def make_memory(data: Path, group: str = GROUP) -> None:
    """Make a ``memory.db`` of the version before the graph's tables moved into it."""
    from pps.journal.db import MIGRATIONS

    data.mkdir(parents=True, exist_ok=True)
    prepare_file(data / "memory.db", group, MIGRATIONS[:22])


def make_ladybug_graph(data: Path, group: str = GROUP) -> Path:
    """Make a memory whose graph has a row of everything, most of it in LadybugDB's log alone."""
    make_memory(data, group)
    path = data / LADYBUG
    with LadybugFile(path, group) as file:
        ada = file.node(
            "Ada",
            labels=["Entity", "Person"],
            name_embedding=[0.25, 0.5],
            attributes=json.dumps(
                {
                    "mood": "calm",
                    "pps": json.dumps(
                        {
                            "kind": "Person",
                            "aliases": ["Lady Ada"],
                            "tags": ["math"],
                            "attributes": {"born": 1815},
                        }
                    ),
                }
            ),
        )
        file.checkpoint()
        bob = file.node("Bob", attributes=None)
        first = file.episode("first", entity_edges=[an_id("knows")])
        second = file.episode("second", source="message", source_description="chat")
        file.fact(
            "knows",
            ada,
            bob,
            fact_embedding=[0.5, 0.5],
            episodes=[second, first],
            valid_at=datetime(2024, 5, 1, tzinfo=UTC),
            invalid_at=AT,
            expired_at=AT,
            reference_time=AT,
            attributes=json.dumps(
                {
                    "strength": 3,
                    "pps": json.dumps(
                        {
                            "kind": "fact",
                            "attributes": {"by": "hand"},
                            "times": {"valid_at": "month"},
                        }
                    ),
                }
            ),
        )
        file.fact("likes", bob, bob, names_ends=False)
        file.join(("Episodic", first), "MENTIONS", ("Entity", ada), mention_id(group, first, ada))
        file.join(
            ("Episodic", first), "MENTIONS", ("Entity", ada), an_id("mention of the pipeline")
        )
        file.join(("Episodic", second), "MENTIONS", ("Entity", bob), None)
        circle = file.community("circle", name_embedding=[1.0, 0.0])
        file.join(("Community", circle), "HAS_MEMBER", ("Entity", ada), an_id("member"))
        file.join(("Community", circle), "HAS_MEMBER", ("Entity", ada), an_id("member again"))
        tale = file.saga("tale", first_episode_uuid=first, last_summarized_at=AT)
        file.join(("Saga", tale), "HAS_EPISODE", ("Episodic", first), an_id("in the tale"))
        file.join(("Episodic", first), "NEXT_EPISODE", ("Episodic", second), an_id("then"))
    return path


GRAPH_ROWS: Final = {
    "node": 2,
    "fact": 2,
    "support": 2,
    "episode": 2,
    "mention": 2,
    "community": 1,
    "saga": 1,
    "member": 1,
    "saga_episode": 1,
    "episode_order": 1,
}
"""What ``make_ladybug_graph`` wrote, as rows of the tables."""


def tables_of(database: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of every table of the graph in a file of SQLite, by table, in order."""
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as db:
        return {
            table: sorted(db.execute(f"SELECT * FROM {table}").fetchall(), key=repr)  # noqa: S608 - a literal
            for table in GRAPH_ROWS
        }


def make_sql_graph(data: Path, upgraded: Path, group: str = GROUP) -> Path:
    """Make a memory whose graph lies in ``graph.db``, with the rows of a ``memory.db`` that is upgraded."""
    make_memory(data, group)
    path = data / SQL
    schema = Path(__file__).with_name("graph_db.sql").read_text()
    with closing(sqlite3.connect(path)) as db:
        db.executescript(schema.replace("{group}", f"'{group}'"))
        db.execute("ATTACH ? AS upgraded", (str(upgraded),))
        for table in GRAPH_ROWS:
            columns = ", ".join(row[1] for row in db.execute(f"PRAGMA main.table_info({table})"))
            db.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM upgraded.{table}")  # noqa: S608 - literals
        db.execute("INSERT INTO meta (key, value) VALUES ('group', ?)", (group,))
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute("PRAGMA user_version = 1")
        db.commit()
    return path
