"""Recordings without what the client itself has to say: its notes, reminders, lists, requests, results of its tools.

What a person typed, what the model said and used, ids and times stay as they were.
"""

from __future__ import annotations

import json
import re
from typing import Any

CUT = "…"
_OWN = "local-command-stdout|local-command-stderr|local-command-caveat|command-contents|system-reminder|note"
_TAGS = re.compile(rf"(<({_OWN})>).*?(</\2>)", re.DOTALL)
_OF_A_LINE = {
    "type",
    "subtype",
    "operation",
    "parentUuid",
    "uuid",
    "timestamp",
    "sessionId",
    "isSidechain",
    "isMeta",
}
_OF_ANY_SPEECH = _OF_A_LINE | {
    "agentId",
    "cwd",
    "entrypoint",
    "forkedFrom",
    "isApiErrorMessage",
    "isCompactSummary",
    "isVisibleInTranscriptOnly",
    "message",
    "origin",
    "promptId",
    "promptSource",
    "userType",
    "version",
}
_OF_A_MESSAGE = {"id", "type", "role", "model", "content", "stop_reason"}
_OF_A_QUEUED_PROMPT = {"type", "prompt", "commandMode", "origin"}


def payload(raw: bytes) -> bytes:
    """Return a payload without the note that the client adds to notices of finished tasks; else to the byte."""
    return _TAGS.sub(rf"\1{CUT}\3", raw.decode()).encode()


def transcript(text: str) -> str:
    """Return a transcript's lines trimmed; a line without its end stays without."""
    return "".join(
        _line(json.loads(line)) for line in text.splitlines(keepends=True) if line.endswith("\n")
    )


def _line(entry: dict[str, Any]) -> str:
    if entry.get("type") in ("user", "assistant"):
        entry = {name: value for name, value in entry.items() if name in _OF_ANY_SPEECH}
        entry["message"] = _message(entry)
    else:
        attachment = entry.get("attachment")
        names = _OF_A_LINE if attachment else {"type", "subtype", "operation"}
        entry = {name: value for name, value in entry.items() if name in names}
        if attachment:
            names = _OF_A_QUEUED_PROMPT if attachment["type"] == "queued_command" else {"type"}
            entry["attachment"] = {
                name: value for name, value in attachment.items() if name in names
            }
    return json.dumps(entry, ensure_ascii=False, separators=(",", ":")) + "\n"


def _message(entry: dict[str, Any]) -> dict[str, Any]:
    message = {name: value for name, value in entry["message"].items() if name in _OF_A_MESSAGE}
    made_up = bool(
        entry.get("isMeta")
        or entry.get("isCompactSummary")
        or message.get("model") == "<synthetic>"
    )
    content = message["content"]
    if isinstance(content, str):
        return {**message, "content": CUT if made_up else _said(content)}
    return {**message, "content": [_block(block, made_up=made_up) for block in content]}


def _block(block: dict[str, Any], *, made_up: bool) -> dict[str, Any]:
    if block["type"] == "tool_result":
        return {**block, "content": CUT}
    if block["type"] == "text":
        return {**block, "text": CUT if made_up else _said(block["text"])}
    return block


def _said(text: str) -> str:
    return _TAGS.sub(rf"\1{CUT}\3", text)
