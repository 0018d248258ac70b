"""One event of a coding agent's session: find its entity, store it, answer with context."""

from __future__ import annotations

import asyncio
import logging
import time as clock
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from cachetools import LRUCache

from pps.app import App
from pps.core.errors import ConfigError, InvalidRequest, PPSError, StoreUnavailable, UnknownEntity
from pps.core.ids import EntityId, check_name
from pps.core.values import JSON
from pps.ingest.hook_events import SessionEvent, read_event, said_in, typed

_log = logging.getLogger(__name__)

_TO_KEEP_S = 0.3
_MOST_WAIT_S = 10.0
_MOST_SESSIONS = 1_000


class SessionFolders:
    """The folder of each session: what the client says, else where its first event came from."""

    def __init__(self) -> None:
        self._first: LRUCache[str, str] = LRUCache(_MOST_SESSIONS)

    def of(self, event: SessionEvent) -> str:
        """Return the folder that decides whose the session is; empty when nothing is known."""
        if event.project:
            return event.project
        return self._first.setdefault(event.session, event.cwd)


@dataclass(slots=True)
class _Last:
    text: str
    seen_by: set[str] = field(default_factory=set[str])


class LastPacks:
    """The last pack of each session.

    Each agent of it, the main one and each subagent, gets it once.

    So a pack that came too late for the prompt is given with the next tool, a subagent learns what
    the main agent was told, and no tool call repeats what was said.
    """

    def __init__(self) -> None:
        self._packs: LRUCache[tuple[str, str], _Last] = LRUCache(_MOST_SESSIONS)

    def put(self, owner: EntityId, session: str, text: str) -> None:
        """Replace a session's last pack."""
        self._packs[owner.group, session] = _Last(text)

    def unseen(self, owner: EntityId, session: str, agent: str) -> str:
        """Return the last pack if this agent has not had it, and note that it has now.

        Else an empty text.
        """
        last = self._packs.get((owner.group, session))
        if last is None or agent in last.seen_by:
            return ""
        last.seen_by.add(agent)
        return last.text


class HookEventDesk:
    """Takes what hooks tell.

    Every event is one entity's, or nobody's: then nothing is kept and nothing said.
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self._last = LastPacks()
        self._projects = SessionFolders()
        self._making: set[asyncio.Task[str]] = set()

    async def handle(self, message: Mapping[str, JSON], *, late: bool = False) -> dict[str, JSON]:
        """Take one event.

        Args:
            message: As the hook sent it; checked here.
            late: True from the spool: nobody waits for an answer.

        Returns:
            ``context`` for the agent, where there is any; ``kept`` False when the event must be
            told again.

        Raises:
            InvalidRequest: The message is not one of a hook's.
            UnknownEntity: It belongs to nobody.
            StoreUnavailable, Overloaded: It was not kept, and may be told again.
        """
        started = clock.perf_counter()
        event = read_event(message)
        from pps.ingest.extraction import MARK  # not at the top: it imports all that reads texts

        if event.text.lstrip().startswith(MARK):
            raise InvalidRequest("text", "is a prompt that has turns read; it is nobody's memory")
        owner = await asyncio.to_thread(self._owner, event)
        if (
            late
            and event.at
            < (await asyncio.to_thread(self._app.registry.by_group, owner.group)).created_at
        ):
            raise UnknownEntity("it was told before the entity was made: to one that was deleted")
        if event.event == "PreToolUse":
            answer: dict[str, JSON] = {
                "context": self._last.unseen(owner, event.session, event.agent)
            }
        elif late or event.event not in ("SessionStart", "UserPromptSubmit"):
            await self._keep(owner, event, late=late)
            answer = {}
        else:
            answer = await self._turn(owner, event, started)
        took_ms = (clock.perf_counter() - started) * 1000
        _log.info("entity=%s hook=%s late=%s ms=%.1f", owner.name, event.event, late, took_ms)
        return answer

    async def settled(self, timeout_s: float = 5.0) -> None:
        """Wait for packs that are being made for nobody any more."""
        if self._making:
            await asyncio.wait(set(self._making), timeout=timeout_s)

    async def _turn(self, owner: EntityId, event: SessionEvent, started: float) -> dict[str, JSON]:
        """Make the pack of a prompt or of a beginning session, then keep what happened.

        In this order, since keeping a turn sets the worker going, and that would slow down what the
        agent waits for. A pack that takes too long is left to be given later; the prompt is kept in
        time all the same.
        """
        making = self._pack_later(owner, event)
        until = started + min(event.within_s, _MOST_WAIT_S)
        left_s = until - _TO_KEEP_S - clock.perf_counter()
        if making is not None and left_s > 0:
            await asyncio.wait({making}, timeout=left_s)
        is_kept = True
        try:
            await self._keep(owner, event, late=False)
        except PPSError as error:
            if not error.retryable:
                raise
            is_kept = False
        in_time = making is not None and making.done() and clock.perf_counter() < until
        return {
            "context": self._last.unseen(owner, event.session, event.agent) if in_time else "",
            "kept": is_kept,
        }

    def _pack_later(self, owner: EntityId, event: SessionEvent) -> asyncio.Task[str] | None:
        if event.event == "UserPromptSubmit" and not said_in(event):
            return None
        task = asyncio.create_task(self._pack(owner, event))
        self._making.add(task)
        task.add_done_callback(self._making.discard)
        return task

    async def _pack(self, owner: EntityId, event: SessionEvent) -> str:
        """Make a pack and remember it as the session's last one.

        An empty text when it cannot be had.
        """
        try:
            async with self._app.memory(owner) as memory:
                if event.event == "SessionStart":
                    pack = await memory.sessions.pack(
                        "", event.session, mode="startup", resumed=event.source == "resume"
                    )
                else:
                    pack = await memory.sessions.pack(typed(event.text)[:65_536], event.session)
        except PPSError as error:
            _log.warning("entity=%s hook=%s: no pack (%s)", owner.name, event.event, error.code)
            return ""
        text = pack.text if pack.sections else ""
        self._last.put(owner, event.session, text)
        return text

    async def _keep(self, owner: EntityId, event: SessionEvent, *, late: bool) -> None:
        try:
            async with self._app.memory(owner) as memory:
                await memory.sessions.capture(event, self._belongs(owner, event), late=late)
        except ConfigError as error:
            if late:
                raise
            # The hook leaves the event in the spool, where it waits until the setting is mended.
            raise StoreUnavailable(error.message) from None

    def _owner(self, event: SessionEvent) -> EntityId:
        """Return whose an event is; blocks for a look into the registry."""
        registry = self._app.registry
        if event.entity:
            entry = registry.get(check_name(event.entity))
            if entry.archived:
                raise UnknownEntity(f"entity {event.entity!r} is archived")
            return entry.entity
        project = self._projects.of(event)
        owner = registry.route(project) if project else None
        if owner is None and event.repository:
            owner = registry.route(event.repository)
        if owner is None:
            raise UnknownEntity("no entity for this project; `pps route add FOLDER NAME` maps one")
        if event.cwd and registry.route(event.cwd) not in (None, owner):
            raise UnknownEntity("the session works in another entity's project")
        return owner

    def _belongs(self, owner: EntityId, event: SessionEvent) -> Callable[[str], bool]:
        """Return a test of a transcript's lines by folder: another entity's project fails it."""
        if event.entity:
            return lambda _: True

        @lru_cache(maxsize=256)
        def belongs(cwd: str) -> bool:
            try:
                return not cwd or self._app.registry.route(cwd) in (None, owner)
            except InvalidRequest:
                return False

        return belongs
