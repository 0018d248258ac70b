"""The attacks of the feature haven on rooms, as ``pps verify-isolation`` runs them: they reach nothing, and see what leaks."""

from __future__ import annotations

from pathlib import Path

import pytest

from pps.config import EmbedderSettings, Settings
from pps.entities.rooms import TalkRoom
from pps.features.haven import talk
from pps.proof.by_feature import with_features
from pps.proof.verify import Report, verify


async def report_of(home: Path) -> Report:
    settings = Settings(home=home, embedder=EmbedderSettings(name="hash"))
    return await with_features(await verify(settings, operations=1), settings)


async def test_verify_isolation_attacks_rooms_and_nothing_gets_through(tmp_path: Path) -> None:
    report = await report_of(tmp_path / "home")
    assert report.ok, report
    assert report.operations["feature"] > 40
    assert report.refused["NotFound"] > 30


async def test_the_attacks_see_a_room_that_every_viewer_may_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def room(self: talk.Talk, viewer: talk.Viewer, id: str) -> TalkRoom:
        return self._rooms.get(id)  # pyright: ignore[reportPrivateUsage] - the lock is taken away

    monkeypatch.setattr(talk.Talk, "room", room)
    report = await report_of(tmp_path / "home")
    seen = {finding.operation for finding in report.leaks}
    assert "feature: haven: follow a room of theirs" in seen
    assert "feature: haven: earlier in a room of theirs" in seen
    assert "feature: haven" in seen, "something of theirs was changed"


async def test_the_attacks_see_a_message_that_is_kept_by_who_was_sent_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TalkRoom, "present", TalkRoom.ever)
    report = await report_of(tmp_path / "home")
    assert "feature: haven: what was said while it was sent out" in {
        finding.operation for finding in report.leaks
    }
