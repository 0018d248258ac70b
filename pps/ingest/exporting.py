"""Export a memory as JSON lines for an import: every turn once, with its nodes and facts.

A fact goes with each turn that supports it, a node with the first line that needs it; a fact or
node without a turn gets a line of its own. Then follow whole records whose kinds packs define,
which ``pps import --format records`` restores, and last the rows of features' tables, also of
features that are off or whose package is gone. Groups are not written, and ids only for references
between records: another memory makes its own. Anchors are files already.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TextIO

from pps.core.errors import InvalidRequest, StoreError
from pps.core.time import export_text, iso
from pps.core.values import JSON, Fact, Node, Turn
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.journal import Journal
from pps.journal.kept_records import KEPT, KNOWN, whole

SOURCE = "export"
_PAGE = 500


class Exporter:
    """Writes one entity's turns, nodes and facts, oldest turn first."""

    def __init__(self, client: IsolatedGraphitiClient, journal: Journal, self_node: str) -> None:
        self._client = client
        self._journal = journal
        self._self_node = self_node
        self._written: set[str] = set()

    async def write(self, path: Path) -> int:
        """Write a new file of mode 0600, or none after an error; return its number of lines."""
        file = await asyncio.to_thread(_create_file, path)
        count = 0
        try:
            async for line in self.lines():
                file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
                count += 1
            await asyncio.to_thread(_flush_and_close, file)
        except OSError as error:
            await asyncio.to_thread(_close_and_remove, file, path)
            raise StoreError(f"{path}: cannot be written ({error.strerror})") from error
        except BaseException:
            _close_and_remove(file, path)
            raise
        return count

    async def lines(self) -> AsyncGenerator[dict[str, JSON]]:
        """Yield the lines, in the form that ``pps import --format jsonl`` reads."""
        graph = await self._journal.records.graph()
        self._written = {self._self_node, *graph.records}
        sources = {record.turn for record in graph.records.values()}
        relations = {relation.id for relation in graph.relations}
        seq = 0
        while turns := await self._journal.scan(seq, _PAGE):
            plain = [turn for turn in turns if turn.uuid not in sources]
            for line in await self._turn_lines(plain):
                yield line
            seq = turns[-1].seq
        after = ""
        while facts := await self._client.scan_facts(after, _PAGE):
            alone = [fact for fact in facts if not fact.episodes and fact.uuid not in relations]
            names = await self._nodes(end for fact in alone for end in (fact.subject, fact.object))
            for fact in alone:
                line: dict[str, JSON] = {
                    "content": fact.text,
                    "kind": "fact",
                    "occurred_at": export_text(fact.valid_at or fact.created_at),
                }
                yield _origin(fact.uuid) | line | self._graph_fields([], [fact], names)
            after = facts[-1].uuid
        after = ""
        while nodes := await self._client.scan_nodes(after, _PAGE):
            for node in nodes:
                if node.uuid not in self._written:
                    text = f"{node.name}: {node.summary}" if node.summary else node.name
                    line = {"content": text, "kind": "node", "occurred_at": iso(node.created_at)}
                    yield _origin(node.uuid) | line | self._graph_fields([node], [], {})
            after = nodes[-1].uuid
        records = [*graph.records.values()]
        for start in range(0, len(records), _PAGE):
            page = records[start : start + _PAGE]
            for record in await self._journal.records.read(partial(whole, records=page)):
                yield KEPT.dump_python(record, mode="json", exclude_defaults=True)
        place = ("", "", "")
        while rows := await self._journal.features.exported(place):
            for row in rows:
                yield asdict(row)
            place = (rows[-1].feature, rows[-1].table, rows[-1].id)

    async def _turn_lines(self, turns: Sequence[Turn]) -> list[dict[str, JSON]]:
        ids = [turn.uuid for turn in turns]
        facts = await self._client.facts_of_episodes(ids)
        mentioned = await self._client.mentioned_nodes(ids)
        by_turn: dict[str, list[Fact]] = {}
        for fact in facts:
            for turn in fact.episodes:
                by_turn.setdefault(turn, []).append(fact)
        ends = [end for fact in facts for end in (fact.subject, fact.object)]
        of_turns = [node for ids_of_turn in mentioned.values() for node in ids_of_turn]
        nodes = await self._nodes([*ends, *of_turns])
        lines: list[dict[str, JSON]] = []
        for turn in turns:
            named = [nodes[id_] for id_ in mentioned.get(turn.uuid, ()) if id_ in nodes]
            own_facts = by_turn.get(turn.uuid, [])
            lines.append(_turn_fields(turn) | self._graph_fields(named, own_facts, nodes))
        return lines

    async def _nodes(self, ids: Iterable[str]) -> dict[str, Node]:
        wanted = list(dict.fromkeys(ids))
        return {node.uuid: node for node in await self._client.nodes(wanted)} if wanted else {}

    def _graph_fields(
        self, named: Sequence[Node], facts: Sequence[Fact], nodes: Mapping[str, Node]
    ) -> dict[str, JSON]:
        """Return the nodes of a line that no earlier line has, and its facts with known ends."""
        ends = [nodes[end] for fact in facts for end in (fact.subject, fact.object) if end in nodes]
        new = {node.uuid: node for node in (*named, *ends) if node.uuid not in self._written}
        self._written |= new.keys()
        fields: dict[str, JSON] = {}
        if new:
            by_name = sorted(new.values(), key=lambda node: node.name)
            fields["nodes"] = [_node_fields(node) for node in by_name]
        whole = [fact for fact in facts if fact.subject in nodes and fact.object in nodes]
        if whole:
            named_facts = [
                _fact_fields(fact, nodes[fact.subject].name, nodes[fact.object].name)
                for fact in whole
            ]
            fields["facts"] = sorted(named_facts, key=lambda fact: json.dumps(fact))
        return fields


_WRONG_PLACE = (
    errno.EACCES,
    errno.EPERM,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.EROFS,
)


def _create_file(path: Path) -> TextIO:
    try:
        descriptor = os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
    except FileExistsError:
        raise InvalidRequest("file", f"there is something at {path} already") from None
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidRequest("file", f"there is no folder {path.parent}; make it first") from None
    except OSError as error:
        if error.errno in _WRONG_PLACE:
            raise InvalidRequest("file", f"{path} cannot be written ({error.strerror})") from None
        raise StoreError(f"{path}: cannot be written ({error.strerror})") from error
    return os.fdopen(descriptor, "w", encoding="utf-8")


def _flush_and_close(file: TextIO) -> None:
    file.flush()
    os.fsync(file.fileno())
    file.close()


def _close_and_remove(file: TextIO, path: Path) -> None:
    path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # a failed write fails again here
        file.close()


def _origin(uuid: str) -> dict[str, JSON]:
    return {"source": SOURCE, "source_ref": f"{KNOWN}{uuid}", "role": "system"}


def _without_empty(**fields: JSON) -> dict[str, JSON]:
    return {name: value for name, value in fields.items() if value}


def _turn_fields(turn: Turn) -> dict[str, JSON]:
    return _without_empty(
        content=turn.content,
        role=turn.role,
        session=turn.session,
        source=turn.source,
        source_ref=turn.source_ref or f"{KNOWN}{turn.uuid}",
        occurred_at=export_text(turn.occurred_at, turn.utc_offset_s),
        kind=turn.kind,
        actor=turn.actor,
        tags=list(turn.tags),
        chunk=[turn.chunk.path, turn.chunk.part, turn.chunk.parts] if turn.chunk else None,
    )


def _node_fields(node: Node) -> dict[str, JSON]:
    return _without_empty(
        name=node.name,
        kind=node.kind,
        summary=node.summary,
        aliases=list(node.aliases),
        tags=list(node.tags),
        attributes=node.attributes,
    )


def _fact_fields(fact: Fact, subject: str, target: str) -> dict[str, JSON]:
    times = {"valid_at": fact.valid_at, "invalid_at": fact.invalid_at}
    dated: dict[str, JSON] = {name: export_text(moment) for name, moment in times.items() if moment}
    kind = fact.kind if fact.kind != "fact" else None
    return _without_empty(
        subject=subject, relation=fact.relation, object=target, text=fact.text, **dated, kind=kind
    )
