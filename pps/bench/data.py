"""Reading a benchmark's records: JSON lines of episodes, nodes, edges and queries, by conversation."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from pps.core.errors import InvalidRequest
from pps.core.time import parse
from pps.core.values import FactDraft, NodeDraft

_LONGEST_NAME = 500
_LONGEST_FACT = 4_000


@dataclass(frozen=True, slots=True)
class Question:
    """A query and the ids of the turns that answer it."""

    id: str
    text: str
    category: str
    gold: frozenset[str]


@dataclass(slots=True)
class Said:
    """A turn of the data with the nodes and facts that stand on it."""

    id: str
    content: str
    actor: str
    session: str
    at: datetime
    nodes: dict[str, NodeDraft] = field(default_factory=dict[str, NodeDraft])
    facts: list[FactDraft] = field(default_factory=list[FactDraft])


@dataclass(slots=True)
class Conversation:
    """One conversation: what was said, what is asked, and how many facts stand on no turn (left out)."""

    name: str
    turns: dict[str, Said] = field(default_factory=dict[str, Said])
    questions: list[Question] = field(default_factory=list[Question])
    unsupported: int = 0


def read_conversations(folder: Path) -> list[Conversation]:
    """Return the conversations of a folder of JSON lines.

    ``episodes.jsonl`` and ``queries.jsonl`` are needed; ``nodes.jsonl`` and ``edges.jsonl`` are read where there.

    Raises:
        InvalidRequest: The folder lacks one of the first two, or a line is not what it should be.
    """
    found: dict[str, Conversation] = {}
    for row in _rows(folder, "episodes"):
        conversation = found.setdefault(row["group_id"], Conversation(row["group_id"]))
        conversation.turns[row["uuid"]] = _said(row)
    names = {row["uuid"]: row for row in _rows(folder, "nodes", needed=False)}
    for row in _rows(folder, "edges", needed=False):
        _attach(found[row["group_id"]], row, names)
    for row in _rows(folder, "queries"):
        gold = frozenset(row["gold_episodes"])
        question = Question(row["qid"], row["query"], str(row["category"]), gold)
        found[row["group_id"]].questions.append(question)
    return list(found.values())


def _rows(folder: Path, name: str, *, needed: bool = True) -> Iterator[dict[str, Any]]:
    path = folder / f"{name}.jsonl"
    if not path.is_file():
        if needed:
            raise InvalidRequest("data", f"{path} is missing; locomo_to_graph.py writes it")
        return
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                raise InvalidRequest("data", f"{path}:{number} is not JSON") from None


def _said(row: dict[str, Any]) -> Said:
    speaker, colon, _ = str(row["content"]).partition(": ")
    return Said(
        id=row["uuid"],
        content=row["content"],
        actor=speaker if colon and len(speaker) <= 40 else "",
        session=str(row.get("session", "default")),
        at=parse(row["valid_at"]),
    )


def _attach(conversation: Conversation, row: dict[str, Any], nodes: dict[str, dict[str, Any]]) -> None:
    """Put a fact on every turn that supports it: the same statement made again adds a support."""
    ends = [nodes[row[end]] for end in ("source_node_uuid", "target_node_uuid")]
    fact = FactDraft(
        subject=ends[0]["name"][:_LONGEST_NAME],
        relation=row["name"],
        object=ends[1]["name"][:_LONGEST_NAME],
        text=row["fact"][:_LONGEST_FACT],
        valid_at=parse(row["valid_at"]) if row.get("valid_at") else None,
        invalid_at=parse(row["invalid_at"]) if row.get("invalid_at") else None,
    )
    supports = [conversation.turns[one] for one in dict.fromkeys(row["episodes"]) if one in conversation.turns]
    conversation.unsupported += not supports
    for turn in supports:
        turn.facts.append(fact)
        turn.nodes.update((end["uuid"], _node(end)) for end in ends)


def _node(row: dict[str, Any]) -> NodeDraft:
    labels: Sequence[str] = [label for label in row.get("labels", ()) if label != "Entity"]
    return NodeDraft(row["name"][:_LONGEST_NAME], labels[0] if labels else "Thing", row.get("summary", ""))
