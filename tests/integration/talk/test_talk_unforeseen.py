"""What nobody foresaw in an answer ends that answer alone: the room says so, and the next one is given."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.features.haven import room_answer
from pps.features.haven.talk import Event, Talk, Viewer
from pps.models.chat import ChatMessage, ChatTool, Piece, Words
from pps.operations.calls import Calls
from tests.waiting import settle_until


class Failing:
    """A model whose first answer breaks off with an error of no kind that is known."""

    name = "failing"
    calls_tools = False
    asked = 0

    async def stream(
        self, messages: Sequence[ChatMessage], tools: Sequence[ChatTool]
    ) -> AsyncGenerator[Piece]:
        self.asked += 1
        yield Words("One two")
        if self.asked == 1:
            raise ZeroDivisionError


async def test_an_unforeseen_error_ends_the_answer_and_not_the_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Failing()
    monkeypatch.setattr(room_answer, "make_chat_model", lambda settings, name: model)
    settings = Settings(home=tmp_path / "home", embedder=EmbedderSettings(name="hash"))
    async with App.open(settings) as app:
        entity = await app.create("ana", token=False)
        talk = Talk(app, Calls(app))
        viewer = Viewer(entity.entity)
        room = str((await talk.rooms(viewer))[0]["id"])
        events: list[Event] = []
        await talk.follow(viewer, room, 0, events.append)

        def ended() -> list[Event]:
            return [event for event in events if event["event"] == "ended"]

        await talk.say(viewer, room, str(uuid.uuid4()), "Hello.")
        await settle_until(lambda: len(ended()) == 1)
        assert "inside PPS" in str(ended()[0]["problem"])
        await talk.say(viewer, room, str(uuid.uuid4()), "Hello again.")
        await settle_until(lambda: len(ended()) == 2)
        assert "problem" not in ended()[1]
        page = await talk.earlier(viewer, room, 1_000)
        kept = [(message["text"], message["mark"]) for message in page["messages"]]  # pyright: ignore
        assert kept == [
            ("Hello.", ""),
            ("One two", "cut off"),
            ("Hello again.", ""),
            ("One two", ""),
        ]
        await talk.close()
