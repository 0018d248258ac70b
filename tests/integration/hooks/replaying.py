"""What Claude Code really sent (see recorded/README.md), told again to the real hook, to the byte but for folders."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from pps.interfaces.cli.client_settings import hook_clients
from tests.integration.hooks.acting import RECORDED, Ended, Session

EVENTS = hook_clients()["claude"].events

SCENES = ("printed", "typed", "filled")
_MOMENT = re.compile(r'("timestamp":")([^"]+)')
_PROJECT = "/home/ana/kitchen"
_TRANSCRIPTS = "/home/ana/.claude/projects/-home-ana-kitchen"


@dataclass(frozen=True)
class Recorded:
    """One payload as it came, and what its transcript had grown by.

    Attributes:
        name: Scene and file, such as ``typed/03-Stop``.
    """

    name: str
    event: str
    raw: bytes
    grown: str

    @property
    def payload(self) -> dict[str, Any]:
        return json.loads(self.raw)

    @property
    def session(self) -> str:
        return str(self.payload["session_id"])

    @property
    def is_told(self) -> bool:
        """Whether our hook is told of it: the client goes by the matcher of the settings."""
        return re.search(EVENTS[self.event].matcher, self.payload.get("tool_name", "")) is not None

    @property
    def ways(self) -> list[str]:
        """How it came about: how a session began or ended, what compacted it, which tool."""
        payload = self.payload
        return [
            str(payload[name])
            for name in ("source", "trigger", "reason", "tool_name")
            if name in payload
        ]

    @property
    def shape(self) -> tuple[str, ...]:
        """What kind of payload it is: payloads of one shape have the same fields, from the same source or tool."""
        return (self.event, *self.ways, *sorted(self.payload))


@cache
def recorded() -> tuple[Recorded, ...]:
    """Return the recordings of all scenes, in their order."""
    return tuple(one for scene in SCENES for one in of_scene(RECORDED / scene))


def of_scene(folder: Path) -> Iterator[Recorded]:
    """Yield the recordings of a scene's folder, in their order."""
    for path in sorted(folder.glob("*.json")):
        lines = path.with_suffix(".jsonl")
        grown = lines.read_text() if lines.exists() else ""
        yield Recorded(
            f"{folder.name}/{path.stem}", path.stem.partition("-")[2], path.read_bytes(), grown
        )


def shapes() -> list[Recorded]:
    """Return one recording of each shape."""
    return list({one.shape: one for one in recorded()}.values())


@dataclass
class Replay:
    """Recorded sessions that are played again in a folder of a test's.

    Attributes:
        home: The data folder. project: Stands for the project that was worked in.
        transcripts: The folder of the sessions' transcripts, which grow as they did. A moment of the recording becomes
            that of the event before its line came, and is before a ``Stop``: a line may come late, it was said in time.
        keeps_deadlines: As that of a ``Session``.
    """

    home: Path
    project: Path
    transcripts: Path
    keeps_deadlines: bool = False
    _moments: dict[str, str] = field(default_factory=dict[str, str])
    _before: str = field(default_factory=lambda: _now())

    def __post_init__(self) -> None:
        self.transcripts.mkdir(parents=True, exist_ok=True)

    def told(self, one: Recorded) -> bytes:
        """Return a payload with the folders of the test."""
        return _moved(one.raw.decode(), self).encode()

    def grow(self, one: Recorded) -> None:
        """Let the transcript grow as it had when the event came."""
        if one.grown:
            with (self.transcripts / Path(one.payload["transcript_path"]).name).open("a") as file:
                file.write(_MOMENT.sub(self._moment, _moved(one.grown, self)))

    def _moment(self, found: re.Match[str]) -> str:
        return found[1] + self._moments.setdefault(found[2], self._before)

    def run(self, one: Recorded, given: bytes | None = None) -> Ended:
        """Run the hook of an event, with its payload unless another is given."""
        begun = _now()
        session = Session(
            self.home, self.project, id=one.session, keeps_deadlines=self.keeps_deadlines
        )
        ended = session.raw(one.event, self.told(one) if given is None else given)
        self._before = begun if one.event == "Stop" else _now()
        return ended

    def play(self, *, but: str = "") -> dict[str, Ended]:
        """Run all scenes from begin to end, hook by hook; return how each hook ended, by the recording's name."""
        ended: dict[str, Ended] = {}
        for one in recorded():
            self.grow(one)
            if one.is_told and one.event != but:
                ended[one.name] = self.run(one)
        return ended


def _moved(text: str, replay: Replay) -> str:
    """Put the test's folders in the place of those that were recorded, in ``cwd`` and ``transcript_path`` alone."""
    text = text.replace(f'"cwd":"{_PROJECT}"', f'"cwd":"{replay.project}"')
    return text.replace(
        f'"transcript_path":"{_TRANSCRIPTS}/', f'"transcript_path":"{replay.transcripts}/'
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
