"""What the server holds of sessions while they go on: the folder each began in, and its last pack."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from pps.core.ids import EntityId
from pps.ingest.hook_events import SessionEvent

_MOST = 1_000


class Projects:
    """The folder of each session: what the client says, else where its first event came from."""

    def __init__(self) -> None:
        self._first: OrderedDict[str, str] = OrderedDict()

    def of(self, event: SessionEvent) -> str:
        """Return the folder that decides whose the session is; empty when nothing is known."""
        if event.project:
            return event.project
        first = self._first.setdefault(event.session, event.cwd)
        self._first.move_to_end(event.session)
        if len(self._first) > _MOST:
            self._first.popitem(last=False)
        return first


@dataclass(slots=True)
class _Last:
    text: str
    seen_by: set[str] = field(default_factory=set[str])


class LastPacks:
    """The last pack of each session. Each agent of it, the main one and each subagent, gets it once.

    So a pack that came too late for the prompt is given with the next tool, a subagent learns what the main
    agent was told, and no tool call repeats what was said.
    """

    def __init__(self) -> None:
        self._packs: OrderedDict[tuple[str, str], _Last] = OrderedDict()

    def put(self, owner: EntityId, session: str, text: str) -> None:
        """Replace a session's last pack."""
        self._packs[owner.group, session] = _Last(text)
        self._packs.move_to_end((owner.group, session))
        if len(self._packs) > _MOST:
            self._packs.popitem(last=False)

    def unseen(self, owner: EntityId, session: str, agent: str) -> str:
        """Return the last pack if this agent has not had it, and note that it has now; else an empty text."""
        last = self._packs.get((owner.group, session))
        if last is None or agent in last.seen_by:
            return ""
        last.seen_by.add(agent)
        return last.text
