"""The real Claude Code answers for an entity in a room, as config/talkers.toml runs it, against a local model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser_session import page_of
from tests.chat_server import chat_server
from tests.claude.client import Claude, bundled
from tests.integration.interfaces.serving import serving
from tests.room_socket import let_answer, room_socket

pytestmark = [pytest.mark.claude, pytest.mark.timeout(300)]


def test_it_streams_an_answer_from_what_the_entity_remembers_and_keeps_nothing(
    tmp_path: Path,
) -> None:
    home, person, programs = tmp_path / "home", tmp_path / "person", tmp_path / "programs"
    programs.mkdir()
    (programs / "claude").symlink_to(bundled())
    with chat_server() as chat:
        claude = Claude(bundled(), person, tmp_path / "kitchen", chat.url)
        env = {**claude.env_of_its_own(), "PATH": f"{programs}:/usr/bin:/bin"}
        with serving(home, **env) as served:
            served.create("cook")
            let_answer(served, "cook", server="command", command="claude", timeout_s=120)
            served.link.call("remember", "cook", {"content": "The kettle is red."})
            with room_socket(page_of(served, "cook")) as socket:
                room = str(socket.ask("rooms")["rooms"][0]["id"])
                socket.ask("subscribe", rooms={room: 0})
                (answer,) = socket.talk(room, "What do you know of kettle?")
                assert "The kettle is red." in answer["text"]
                assert answer["mark"] == ""
                assert len(socket.heard("words", room=room)) > 1, "word by word"
                chat.mode = "silent"
                let_answer(served, "cook", server="command", command="claude", timeout_s=5)
                socket.talk(room, "And now?")
                assert "claude was not done within 5 s" in socket.heard("ended")[-1]["problem"]
        asked = [body for body in chat.asked if "kettle" in str(body)]
        assert asked
        assert not any(body.get("tools") for body in asked)
    kept = [path for path in person.rglob("*") if path.is_file()]
    assert [path for path in kept if b"kettle" in path.read_bytes()] == []
