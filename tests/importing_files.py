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


OPEN_WEBUI: list[Any] = [
    {
        "id": "w-1",
        "title": "Sourdough",
        "created_at": 1_767_348_000,
        "chat": {
            "models": ["a-model"],
            "history": {
                "currentId": "m4",
                "messages": {
                    "m1": {"id": "m1", "parentId": None, "role": "user", "timestamp": 1_767_348_000,
                           "content": "How long does my starter Gerald rest?"},
                    "m2": {"id": "m2", "parentId": "m1", "role": "assistant", "content": "A week."},
                    "m3": {"id": "m3", "parentId": "m1", "role": "assistant", "timestamp": 1_767_348_010,
                           "content": '<details type="reasoning" done="true"><summary>Thought</summary>hm</details>'
                                      "Twelve hours.",
                           "output": [{"type": "function_call", "name": "get_time", "arguments": '{"query": "now"}'}]},
                    "m4": {"id": "m4", "parentId": "m3", "role": "user", "timestamp": 1_767_348_020,
                           "content": "Good, at 24 degrees.", "files": [{"name": "gerald.jpg"}]},
                },
            },
        },
    }
]  # fmt: skip

LIBRECHAT: dict[str, Any] = {
    "conversationId": "l-1",
    "title": "Van",
    "recursive": True,
    "messagesTree": [
        {"messageId": "x1", "isCreatedByUser": True, "text": "How thirsty is the van?",
         "createdAt": "2026-01-03T10:00:00Z", "children": [
            {"messageId": "x2", "isCreatedByUser": False, "text": "Nine litres.",
             "createdAt": "2026-01-03T10:00:05Z", "children": []},
            {"messageId": "x3", "isCreatedByUser": False, "createdAt": "2026-01-03T10:01:00Z",
             "content": [{"type": "think", "think": "hm"}, {"type": "text", "text": {"value": "Eight litres."}},
                         {"type": "tool_call", "tool_call": {"name": "search", "args": '{"query": "van"}'}}],
             "children": [{"messageId": "x4", "isCreatedByUser": True, "text": "We bought the blue one.",
                           "createdAt": "2026-01-03T10:02:00Z", "children": []}]},
         ]}
    ],
}  # fmt: skip


def rollout(kind: str, second: int, **payload: Any) -> dict[str, Any]:
    """Return one line of a session of Codex CLI."""
    return {"timestamp": f"2026-02-01T09:00:{second:02}.000Z", "type": kind, "payload": payload}


CODEX: list[Any] = [
    rollout("session_meta", 0, id="cx-1", cwd="/work/tea-shop", originator="codex_cli_rs"),
    rollout("response_item", 1, type="message", role="developer",
            content=[{"type": "input_text", "text": "Be brief."}]),
    rollout("response_item", 2, type="message", role="user",
            content=[{"type": "input_text", "text": "<environment_context>\n/work\n</environment_context>"}]),
    rollout("turn_context", 2, cwd="/work/tea-shop"),
    rollout("response_item", 3, type="message", role="user",
            content=[{"type": "input_text", "text": "The till rounds wrongly."}]),
    rollout("event_msg", 3, type="user_message", message="The till rounds wrongly."),
    rollout("response_item", 4, type="reasoning", summary=[], encrypted_content="x"),
    rollout("response_item", 5, type="function_call", name="shell", call_id="call-1",
            arguments='{"command": ["bash", "-lc", "rg round"]}'),
    rollout("response_item", 6, type="function_call_output", call_id="call-1", output="till.py"),
    rollout("response_item", 7, type="message", role="assistant",
            content=[{"type": "output_text", "text": "It rounds half to even; I changed it."}]),
    rollout("event_msg", 8, type="token_count"),
]  # fmt: skip

GEMINI: dict[str, Any] = {
    "sessionId": "gm-1",
    "projectHash": "h",
    "startTime": "2026-02-02T08:00:00Z",
    "lastUpdated": "2026-02-02T08:01:00Z",
    "directories": ["/work/tea-shop"],
    "messages": [
        {"id": "p1", "timestamp": "2026-02-02T08:00:01Z", "type": "user", "content": [{"text": "Where are the labels?"}]},
        {"id": "p2", "timestamp": "2026-02-02T08:00:02Z", "type": "info", "content": "Update available."},
        {"id": "p3", "timestamp": "2026-02-02T08:00:05Z", "type": "gemini", "content": "In print/labels.",
         "thoughts": [{"subject": "s", "description": "d"}],
         "toolCalls": [{"id": "t1", "name": "glob", "args": {"pattern": "*.svg"}, "status": "success"}]},
    ],
}  # fmt: skip
GEMINI_LINES: list[Any] = [
    {"sessionId": "gm-2", "projectHash": "h", "startTime": "2026-02-03T08:00:00Z"},
    {"id": "q1", "timestamp": "2026-02-03T08:00:01Z", "type": "user", "content": "Use blue paper."},
    {"id": "q2", "timestamp": "2026-02-03T08:00:02Z", "type": "gemini", "content": "Blue it is."},
    {"$rewindTo": "q2"},
    {
        "id": "q3",
        "timestamp": "2026-02-03T08:00:09Z",
        "type": "gemini",
        "content": "Blue paper is ordered.",
    },
    {"$set": {"summary": "Paper was ordered."}},
]

MESSAGES: list[Any] = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "My sister is called Ines.", "timestamp": "2026-02-04T08:00:00Z"},
    {"role": "assistant", "content": [{"type": "text", "text": "Noted."}],
     "tool_calls": [{"function": {"name": "save", "arguments": '{"query": "Ines"}'}}]},
    {"role": "tool", "content": "saved"},
]  # fmt: skip

WHATSAPP = """\u200e[03/02/2026, 21:04:05] Family: \u200eMessages and calls are end-to-end encrypted.
[03/02/2026, 21:04:30] Ana: Grandma's party is on the 20th
bring chairs please
[03/02/2026, 21:05:00] Rui Silva: \u200eimage omitted
[03/02/2026, 21:06:10] Rui Silva: I'll bring six: two old, four new \u200e<This message was edited>
[14/02/2026, 08:00:00] Rui Silva: Chairs are in the car
"""

MCP_MEMORY: list[Any] = [
    {"type": "entity", "name": "Marta", "entityType": "person",
     "observations": ["Plays the cello", "Allergic to nuts"]},
    {"type": "entity", "name": "Orchestra", "entityType": "organization", "observations": []},
    {"type": "relation", "from": "Marta", "to": "Orchestra", "relationType": "plays_in"},
]  # fmt: skip

CLAUDE_MEM: dict[str, Any] = {
    "exportedAt": "2026-02-05T10:00:00Z",
    "totalObservations": 1,
    "observations": [
        {"id": 7, "memory_session_id": "cm-1", "project": "tea-shop", "type": "bugfix", "title": "Till rounds down",
         "subtitle": "Half cents were lost", "narrative": "The sum was cut, not rounded.",
         "facts": '["till.py uses decimal now"]', "concepts": ["rounding"], "created_at_epoch": 1_770_000_000_000}
    ],
    "summaries": [
        {"id": 3, "memory_session_id": "cm-1", "project": "tea-shop", "request": "Fix the till",
         "learned": "Banks round half to even.", "created_at_epoch": 1_770_000_100_000}
    ],
    "prompts": [
        {"id": 5, "content_session_id": "cm-1", "prompt_text": "Why is the till off by a cent?",
         "created_at_epoch": 1_769_999_900_000}
    ],
    "sessions": [{"memory_session_id": "cm-1"}],
}  # fmt: skip

MEMORY_SERVICE: dict[str, Any] = {
    "export_metadata": {"total_memories": 2},
    "memories": [
        {"content": "The staging key rotates on Mondays", "content_hash": "h-1", "tags": ["ops", "keys"],
         "memory_type": "note", "created_at": 1_770_000_000.5, "metadata": {}},
        {"content": "", "content_hash": "h-2"},
    ],
}  # fmt: skip
MEMORY_SERVICE_BACKUP: dict[str, Any] = {
    "timestamp": "2026-02-05T10:00:00",
    "total_memories": 1,
    "memories": [
        {"id": "h-3", "document": "Backups run at four", "embedding": None,
         "metadata": {"content_hash": "h-3", "tags": "ops,backup", "type": "note", "created_at": 1_770_000_000}}
    ],
}  # fmt: skip

LETTA: dict[str, Any] = {
    "agents": [
        {"id": "agent-0", "name": "pal", "block_ids": ["block-0"], "messages": [
            {"id": "message-0", "role": "system", "content": [{"type": "text", "text": "You are pal."}],
             "created_at": "2026-02-06T08:00:00Z"},
            {"id": "message-1", "role": "user", "created_at": "2026-02-06T08:00:01Z",
             "content": [{"type": "text", "text": '{"type": "user_message", "message": "I row on Tuesdays."}'}]},
            {"id": "message-2", "role": "assistant", "created_at": "2026-02-06T08:00:02Z",
             "content": [{"type": "text", "text": "They like rowing."}],
             "tool_calls": [{"id": "c", "type": "function", "function": {
                 "name": "send_message", "arguments": '{"message": "Which club?"}'}}]},
            {"id": "message-3", "role": "tool", "content": [{"type": "text", "text": "ok"}]},
            {"id": "message-4", "role": "user", "content": [{"type": "text", "text": '{"type": "heartbeat"}'}]},
        ]},
    ],
    "blocks": [{"id": "block-0", "label": "human", "value": "Likes the river Elbe."}],
}  # fmt: skip


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
    "open-webui": lambda at: document(at / "chat-export.json", OPEN_WEBUI),
    "librechat": lambda at: document(at / "van.json", LIBRECHAT),
    "codex": lambda at: lines(at / "rollout-2026-02-01T09-00-00-cx-1.jsonl", CODEX),
    "gemini-cli": lambda at: document(at / "session-gm-1.json", GEMINI),
    "messages": lambda at: document(at / "talk.json", MESSAGES),
    "whatsapp": lambda at: note(at / "WhatsApp Chat with Family.txt", WHATSAPP),
    "mcp-memory": lambda at: lines(at / "memory.jsonl", MCP_MEMORY),
    "claude-mem": lambda at: document(at / "claude-mem.json", CLAUDE_MEM),
    "mcp-memory-service": lambda at: document(at / "memories.json", MEMORY_SERVICE),
    "letta": lambda at: document(at / "pal.af", LETTA),
    "mem0": lambda at: document(at / "mem0.json", MEM0),
    "graphiti": lambda at: document(at / "graph.json", GRAPHITI),
    "basic-memory": lambda at: note(at / "kitchen" / "green-tea.md", NOTE),
    "markdown": lambda at: note(at / "plain.md", "# Plain\n\nOne sentence. Another one.\n"),
}
"""Format → a function that makes a file of it below a folder."""
