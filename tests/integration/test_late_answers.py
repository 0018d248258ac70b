"""What hooks left in the spool is taken in after a later event of its session was told to the server."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pps.ingest.hook_events import SessionEvent
from pps.memory import Memory

BEGAN = datetime(2026, 5, 1, 9, tzinfo=UTC)


def _line(kind: str, uuid: str, text: str, at: datetime) -> str:
    content = text if kind == "user" else [{"type": "text", "text": text}]
    entry = {
        "type": kind,
        "uuid": uuid,
        "parentUuid": None,
        "isSidechain": False,
        "userType": "external",
        "sessionId": "s",
        "cwd": "/kitchen",
        "version": "2.0.0",
        "timestamp": at.isoformat().replace("+00:00", "Z"),
        "message": {"id": f"msg_{uuid}", "role": kind, "model": "m", "content": content},
    }
    return json.dumps(entry) + "\n"


async def test_an_answer_whose_line_came_late_is_known_by_it_though_a_later_event_was_told_first(
    memory: Memory, tmp_path: Path
) -> None:
    transcript = tmp_path / "t.jsonl"
    prompt = _line("user", "u1", "What is for dinner?", BEGAN)
    answer = _line("assistant", "a1", "Soup.", BEGAN + timedelta(seconds=1))
    transcript.write_text(prompt + answer)

    def event(number: int, name: str, text: str = "", size: int = 0) -> SessionEvent:
        return SessionEvent(
            id=f"{number:032x}",
            at=BEGAN + timedelta(seconds=number),
            event=name,
            session="s",
            cwd="/kitchen",
            transcript=str(transcript),
            size=size,
            text=text,
        )

    async def told(one: SessionEvent, *, late: bool) -> None:
        await memory.sessions.capture(one, lambda _: True, late=late)

    await told(event(9, "SessionStart"), late=False)
    await told(event(0, "UserPromptSubmit", "What is for dinner?"), late=True)
    await told(event(2, "Stop", "Soup.", len(prompt)), late=True)
    said = [(turn.role, turn.content) for turn in await memory.parts.journal.scan(0, 10)]
    assert said == [("user", "What is for dinner?"), ("assistant", "Soup.")]
    [_, kept] = await memory.parts.journal.scan(0, 10)
    assert not kept.source_ref.startswith("answer:")
