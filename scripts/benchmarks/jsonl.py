"""Reading the JSON lines that ``locomo_to_graph.py`` writes, or anything of their shape."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from benchmarks.data import Conversation, Question, Said, fact, node, speaker
from pps.core.errors import InvalidRequest
from pps.core.time import parse
from pps.core.values import NodeDraft

NAMELESS = "data"
"""The conversation of lines that name no group."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line, and where it stands for the message that refuses it."""

    values: Mapping[str, Any]
    where: str

    def text(self, *keys: str, default: str | None = None) -> str:
        """Return the first of the keys that is set, as text; refuse a line that lacks all of them."""
        for key in keys:
            if self.values.get(key) not in (None, ""):
                return str(self.values[key])
        if default is None:
            raise InvalidRequest("data", f"{self.where} has no {keys[0]!r}")
        return default

    def texts(self, key: str) -> list[str]:
        """Return a list of texts; what is absent or null is empty."""
        found: Any = self.values.get(key) or []
        if not isinstance(found, list):
            raise InvalidRequest("data", f"{self.where}: {key!r} must be a list")
        return [str(one) for one in cast("list[Any]", found)]

    def time(self, key: str) -> datetime | None:
        """Return an instant, or None where there is none; a time without a zone is UTC."""
        found = self.values.get(key)
        if found in (None, ""):
            return None
        try:
            moment = datetime.fromisoformat(str(found).strip())
        except ValueError:
            raise InvalidRequest("data", f"{self.where}: {key!r} is not an ISO 8601 time") from None
        return parse((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat())


def read_folder(folder: Path) -> list[Conversation]:
    """Return the conversations of a folder of JSON lines.

    ``episodes.jsonl`` and ``queries.jsonl`` are needed; ``nodes.jsonl``, ``edges.jsonl`` and ``mentions.jsonl`` are
    read where there. A node lies on the turns that mention it and on those that support a fact of it; one that lies
    on none is left out and counted, since nothing is written without a turn.

    Raises:
        InvalidRequest: One of the first two is missing, or a line is not what it should be.
    """
    found: dict[str, Conversation] = {}
    names: dict[str, dict[str, str]] = {}
    for row in _rows(folder, "episodes"):
        group = row.text("group_id", default=NAMELESS)
        conversation = found.setdefault(group, Conversation(group))
        turn = _said(row)
        conversation.say(turn)
        aliases = {row.text(key, default="") for key in ("dia_id", "name")} - {""}
        names.setdefault(group, {}).update(dict.fromkeys(aliases, turn.id))
    if not found:
        raise InvalidRequest("data", f"{folder / 'episodes.jsonl'} is empty")
    _read_graph(folder, found)
    for row in _rows(folder, "queries"):
        conversation = _owner(found, row)
        conversation.ask(
            _question(row, names.get(conversation.name, {}), len(conversation.questions))
        )
    return list(found.values())


def _read_graph(folder: Path, found: dict[str, Conversation]) -> None:
    """Put nodes and facts on the turns that they stand on."""
    rows = {row.text("uuid"): row for row in _rows(folder, "nodes", needed=False)}
    nodes = {key: _node(row) for key, row in rows.items()}
    for row in _rows(folder, "edges", needed=False):
        _attach(_owner(found, row), row, nodes)
    for row in _rows(folder, "mentions", needed=False):
        _mention(_near(found, row), row, nodes)
    placed = {
        key
        for conversation in found.values()
        for turn in conversation.turns.values()
        for key in turn.nodes
    }
    for key in rows.keys() - placed:
        _near(found, rows[key]).note("nodes that stand on no turn left out")


def _near(found: Mapping[str, Conversation], row: Row) -> Conversation:
    """Return the conversation that a line names, or the first: where there is nothing to write, none is made."""
    return found.get(row.text("group_id", default=""), next(iter(found.values())))


def _owner(found: dict[str, Conversation], row: Row) -> Conversation:
    """Return the conversation that a line belongs to; one without turns is made for it."""
    only = next(iter(found)) if len(found) == 1 else NAMELESS
    group = row.text("group_id", default=only)
    return found.setdefault(group, Conversation(group))


def _rows(folder: Path, name: str, *, needed: bool = True) -> Iterator[Row]:
    path = folder / f"{name}.jsonl"
    if not path.is_file():
        if needed:
            raise InvalidRequest("data", f"{path} is missing; locomo_to_graph.py writes it")
        return
    try:
        with path.open(encoding="utf-8-sig") as lines:
            yield from _parsed(lines, path)
    except OSError as error:
        raise InvalidRequest("data", f"{path} cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise InvalidRequest("data", f"{path} is not UTF-8") from None


def _parsed(lines: Iterable[str], path: Path) -> Iterator[Row]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
        except json.JSONDecodeError:
            raise InvalidRequest("data", f"{path}:{number} is not JSON") from None
        if not isinstance(values, dict):
            raise InvalidRequest("data", f"{path}:{number} is not a JSON object")
        yield Row(cast("dict[str, Any]", values), f"{path}:{number}")


def _said(row: Row) -> Said:
    uuid, content = row.text("uuid", "id", "dia_id"), row.text("content", "text", default="")
    # A document is nobody's message, and what lies beside it in the file is not around it.
    is_message = row.text("source", default="message") == "message"
    actor = speaker(content) if is_message else ""
    return Said(
        id=uuid,
        content=content,
        actor=actor,
        role="assistant" if actor == "Assistant" else "user",
        session=row.text("session", default="default" if is_message else uuid),
        at=row.time("valid_at"),
    )


def _node(row: Row) -> NodeDraft:
    return node(row.text("name", "uuid"), _kind(row), row.text("summary", default=""))


def _kind(row: Row) -> str:
    return next((label for label in row.texts("labels") if label != "Entity"), "Thing")


def _attach(conversation: Conversation, row: Row, nodes: Mapping[str, NodeDraft]) -> None:
    """Put a fact on every turn that supports it: the same statement made again adds a support."""
    keys = (row.text("source_node_uuid"), row.text("target_node_uuid"))
    ends = {key: nodes.get(key) or node(key, "Thing") for key in keys}
    said = fact(
        (ends[keys[0]], ends[keys[1]]),
        row.text("name", default="RELATED_TO"),
        row.text("fact", default=""),
        (row.time("valid_at"), row.time("invalid_at")),
    )
    supports = [
        conversation.turns[one]
        for one in dict.fromkeys(row.texts("episodes"))
        if one in conversation.turns
    ]
    conversation.note("facts that stand on no turn left out", not supports)
    for turn in supports:
        conversation.note("facts beyond what one turn may carry left out", not turn.add(said, ends))


def _mention(conversation: Conversation, row: Row, nodes: Mapping[str, NodeDraft]) -> None:
    """Put a node on the turn that mentions it."""
    key = row.text("target_node_uuid")
    turn, named = conversation.turns.get(row.text("source_node_uuid")), nodes.get(key)
    if turn is None or named is None:
        conversation.note("mentions of a turn or a node that the data lack left out")
        return
    conversation.note("nodes beyond what one turn may carry left out", not turn.mention(key, named))


def _question(row: Row, names: dict[str, str], number: int) -> Question:
    gold = row.texts("gold_episodes") or [names.get(one, one) for one in row.texts("gold_dia_ids")]
    return Question(
        id=row.text("qid", "id", default=str(number)),
        text=row.text("query", "question", default=""),
        category=row.text("category", default="none"),
        gold=frozenset(gold),
        days=frozenset(row.texts("days")),
    )
