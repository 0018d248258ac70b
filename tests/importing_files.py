"""Small files of every format that an import knows, made by hand, and what is in them."""

from __future__ import annotations

import ctypes
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

SESSION = "7c1f0f4e-1111-4222-8333-944445555666"


def entry(kind: str, uuid: str, content: Any, **more: Any) -> dict[str, Any]:
    """Return one line of a Claude Code transcript."""
    message = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {"id": more.pop("message", f"msg_{uuid}"), "model": "claude-x"}
    return {
        "type": kind,
        "uuid": uuid,
        "sessionId": SESSION,
        "cwd": "/work/tea-shop",
        "timestamp": "2026-03-01T09:00:00.000Z",
        "isSidechain": False,
        "message": message,
        **more,
    }


TRANSCRIPT: list[Any] = [
    {"type": "summary", "summary": "A shop for tea", "leafUuid": "u-9"},
    {"type": "file-history-snapshot", "messageId": "x", "snapshot": {}},
    entry("user", "u-1", "Please add a price list."),
    entry("user", "u-2", "<command-name>/clear</command-name>"),
    entry("user", "u-3", "Caveat: generated", isMeta=True),
    entry("assistant", "u-4", [{"type": "thinking", "thinking": "hm"}], message="m1"),
    entry("assistant", "u-5", [{"type": "text", "text": "I will write it."}], message="m1"),
    entry(
        "assistant",
        "u-6",
        [
            {
                "type": "tool_use",
                "id": "t-1",
                "name": "Bash",
                "input": {"command": "ls", "description": "List files"},
            }
        ],
        message="m1",
    ),
    entry("user", "u-7", [{"type": "tool_result", "tool_use_id": "t-1", "content": "prices.md"}]),
    "{not json",
    entry(
        "assistant",
        "u-8",
        [{"type": "text", "text": "It is there."}],
        timestamp="2026-03-01T09:05:00Z",
    ),
    entry("user", "u-10", "The whole talk, retold.", isCompactSummary=True),
    entry("user", "u-11", "Look at teas.", isSidechain=True, agentId="a1"),
    {"type": "system", "subtype": "compact_boundary", "sessionId": SESSION, "uuid": "u-12"},
]


def node(
    name: str, parent: str | None, message: dict[str, Any] | None, *children: str
) -> dict[str, Any]:
    """Return one node of a ChatGPT conversation's tree."""
    return {"id": name, "message": message, "parent": parent, "children": list(children)}


def said(uuid: str, role: str, *parts: Any, **more: Any) -> dict[str, Any]:
    """Return one message of ChatGPT."""
    content = {"content_type": "text", "parts": list(parts)}
    return {
        "id": uuid,
        "author": {"role": role},
        "content": content,
        "create_time": 1_700_000_000.5,
        **more,
    }


CHATGPT: list[Any] = [
    {
        "title": "Tea at home",
        "conversation_id": "c-1",
        "create_time": 1_700_000_000.0,
        "current_node": "d",
        "mapping": {
            "r": node("r", None, None, "s"),
            "s": node("s", "r", said("m0", "system", "be kind"), "a"),
            "a": node("a", "s", said("m1", "user", "How long must green tea stand?"), "b", "c"),
            "b": node("b", "a", said("m2", "assistant", "Ten minutes.")),
            "c": node("c", "a", said("m3", "assistant", "search(tea)", recipient="browser"), "t"),
            "t": node("t", "c", said("m4", "tool", "a long page"), "d"),
            "d": node(
                "d",
                "t",
                said(
                    "m5",
                    "assistant",
                    "Two minutes.",
                    {"content_type": "image_asset_pointer", "asset": "x"},
                ),
            ),
        },
    },
    {
        "title": None,
        "id": "c-2",
        "mapping": {"a": node("a", None, said("n1", "user", "Only this."))},
    },
]

CLAUDE: list[Any] = [
    {
        "uuid": "k-1",
        "name": "Bread",
        "summary": "How bread is baked.",
        "created_at": "2026-01-02T10:00:00Z",
        "chat_messages": [
            {
                "uuid": "k-2",
                "sender": "human",
                "text": "How hot?",
                "content": [{"type": "text", "text": "How hot must the oven be?"}],
                "created_at": "2026-01-02T10:00:01Z",
                "attachments": [
                    {"file_name": "oven.txt", "extracted_content": "Oven: 250 degrees."}
                ],
                "files": [{"file_name": "oven.png"}],
            },
            {
                "uuid": "k-3",
                "sender": "assistant",
                "text": "Hot.",
                "content": [
                    {"type": "tool_use", "name": "web_search", "input": {"query": "oven heat"}},
                    {"type": "tool_result", "content": []},
                    {"type": "text", "text": "As hot as it gets."},
                ],
                "created_at": "2026-01-02T10:01:00Z",
            },
            {"uuid": "k-4", "sender": "robot", "text": "?"},
        ],
    }
]

MEM0: dict[str, Any] = {
    "results": [
        {
            "id": "e-1",
            "memory": "Likes green tea",
            "hash": "h",
            "metadata": {},
            "categories": ["food & drink"],
            "created_at": "2026-02-01T08:00:00-08:00",
            "user_id": "ana",
        },
        {"id": "e-2", "memory": "", "metadata": None},
    ],
    "relations": [{"source": "ana", "relationship": "lives_in", "target": "Lisbon"}],
}

OPENMEMORY: dict[str, Any] = {
    "user": {"user_id": "ana"},
    "categories": [{"id": "cat-1", "name": "travel"}],
    "memories": [
        {
            "id": "o-1",
            "content": "Has been to Porto",
            "state": "active",
            "created_at": "2026-02-01T08:00:00+00:00",
            "category_ids": ["cat-1"],
            "app_id": "x",
        },
        {
            "id": "o-2",
            "content": "Old",
            "state": "deleted",
            "created_at": "2026-02-01T08:00:00+00:00",
            "app_id": "x",
        },
    ],
}

GRAPHITI: dict[str, Any] = {
    "nodes": [
        {"uuid": "g-1", "name": "Ana", "labels": ["Entity", "Person"], "summary": "A baker.", "group_id": "theirs",
         "name_embedding": [0.1], "attributes": {"age": 40, "group_id": "theirs"}, "created_at": "2026-01-01"},
        {"uuid": "g-2", "name": "Lisbon", "labels": ["Entity"], "summary": "", "created_at": "2026-01-01T00:00:00Z"},
        {"uuid": "g-3", "name": "Alone", "labels": ["Entity"], "summary": "No edge.", "created_at": "2026-01-01"},
    ],
    "edges": [
        {"uuid": "f-1", "source_node_uuid": "g-1", "target_node_uuid": "g-2", "name": "LIVES_IN",
         "fact": "Ana lives in Lisbon.", "episodes": ["p-1"], "valid_at": "2025-01-01T00:00:00Z", "invalid_at": None},
        {"uuid": "f-2", "source_node_uuid": "g-1", "target_node_uuid": "g-2", "name": "was born in",
         "fact": "Ana was born in Lisbon.", "episodes": [], "valid_at": None,
         "expired_at": "2026-01-03T00:00:00Z", "created_at": "2026-01-02T00:00:00Z"},
        {"uuid": "f-3", "source_node_uuid": "g-1", "target_node_uuid": "nobody", "name": "X", "fact": "x"},
    ],
    "episodes": [
        {"uuid": "p-1", "name": "talk", "content": "Ana: I live in Lisbon.", "source": "message",
         "source_description": "chat", "valid_at": "2025-06-01T00:00:00Z", "group_id": "theirs"}
    ],
}  # fmt: skip

NOTE = """---
title: Green Tea
type: recipe
permalink: kitchen/green-tea
tags: [tea, kitchen]
date: 2026-01-05
---
# Green Tea

Water must not boil. See also [[Kettle|the kettle]].

- [method] Eighty degrees are right #heat (from a book)
- [ ] buy more
- requires [[Kettle]] (any)
- contrasts with [[Black Tea#How]]
"""

CHAT: list[Any] = [
    {"content": "Hello.", "session": "s", "source_ref": "r-1", "occurred_at": "2026-01-01"},
    {"content": "What?", "mood": "odd"},
    {
        "content": "Ana lives here.",
        "session": "s",
        "nodes": [{"name": "Ana", "kind": "Person"}],
        "facts": [{"subject": "Ana", "relation": "LIVES_IN", "object": "Lisbon"}],
    },
]


def lines(path: Path, values: list[Any]) -> Path:
    """Write a file of JSON lines; a text is written as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "\n".join(one if isinstance(one, str) else json.dumps(one) for one in values) + "\n"
    )
    return path


def document(path: Path, value: Any) -> Path:
    """Write a JSON file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


def packed(path: Path, members: dict[str, str]) -> Path:
    """Write a zip file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return path


def note(path: Path, text: str) -> Path:
    """Write a text file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def without_rights() -> None:
    """Let this thread open what its user may open, and no more, also where that is root."""
    capabilities = (
        ctypes.c_uint32 * 6
    )()  # effective, permitted and inheritable, twice: none of them
    ctypes.CDLL(None).capset((ctypes.c_uint32 * 2)(0x20080522, 0), capabilities)


MAKE: dict[str, Callable[[Path], Path]] = {
    "jsonl": lambda at: lines(at / "talk.jsonl", CHAT),
    "claude-code": lambda at: lines(at / "-work-tea-shop" / f"{SESSION}.jsonl", TRANSCRIPT),
    "chatgpt": lambda at: packed(
        at / "chatgpt.zip", {"conversations-000.json": json.dumps(CHATGPT), "user.json": "{}"}
    ),
    "claude": lambda at: document(at / "conversations.json", CLAUDE),
    "mem0": lambda at: document(at / "mem0.json", MEM0),
    "graphiti": lambda at: document(at / "graph.json", GRAPHITI),
    "basic-memory": lambda at: note(at / "kitchen" / "green-tea.md", NOTE),
    "markdown": lambda at: note(at / "plain.md", "# Plain\n\nOne sentence. Another one.\n"),
}
"""Format → a function that makes a file of it below a folder."""
