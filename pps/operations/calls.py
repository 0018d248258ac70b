"""Carrying out verbs for the surfaces: one place that opens the memory, times, counts and logs a call."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time as clock
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pps.app import App
from pps.core.errors import InvalidRequest, PPSError
from pps.core.ids import EntityId
from pps.core.request_id import serving
from pps.core.values import JSON
from pps.entities import Router
from pps.ingest.drafts import unset
from pps.operations.all import verbs_for
from pps.operations.project.desk import Projects
from pps.operations.table import Answer, AnyVerb, Audience

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Tally:
    """How often a verb ended in one way, and how long that took in all."""

    times: int = 0
    seconds: float = 0.0


Caller: TypeAlias = "str | EntityId | Router"
"""An entity, by name (from the owner of the machine) or by the id that a token stands for; or a router."""


class Calls:
    """Lets entities and routers do verbs.

    A verb that writes is carried through even when its caller goes away in the middle: a write of
    several steps is never left half done because a client hung up.

    Attributes:
        unset: The ways to read a text that no setting makes possible here; no tool offers them.
        most_sessions: How many protocol sessions one entity or router may have at once.
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self._writes: set[asyncio.Task[Answer]] = set()
        self.unset = unset(app.settings.extractor.mode)
        self.most_sessions = app.settings.server.sessions
        self.tallies: defaultdict[tuple[str, str], Tally] = defaultdict(Tally)

    async def answer(self, caller: Caller, verb: str, arguments: Mapping[str, JSON], *, runner: bool = False) -> Answer:
        """Let an entity or a router do a verb.

        Args:
            caller: Who asks; an entity's verbs do not exist for a router, nor a router's for an entity.
            verb: A name of the table.
            arguments: As they came over the wire; checked here.
            runner: The router asks as a runner of tasks.

        Raises:
            InvalidRequest: No such verb for this caller, or an argument breaks a bound.
            PPSError: Whatever the memory raises.
        """
        audience: Audience = "entity"
        if isinstance(caller, Router):
            audience = "runner" if runner else "router"
        verbs = verbs_for(audience)
        found = verbs.get(verb)
        if found is None:
            raise InvalidRequest("verb", f"there is none of that name; there are {', '.join(verbs)}")
        with serving(secrets.token_hex(4)):
            if found.hints.read_only:
                return await self._carried_out(caller, found, arguments)
            write = asyncio.create_task(self._carried_out(caller, found, arguments))
            self._writes.add(write)
            write.add_done_callback(self._writes.discard)
            return await asyncio.shield(write)

    async def settled(self, timeout_s: float = 30.0) -> None:
        """Wait until every write in hand has ended; its errors were its caller's."""
        if self._writes:
            await asyncio.wait(set(self._writes), timeout=timeout_s)

    async def _carried_out(self, caller: Caller, verb: AnyVerb, arguments: Mapping[str, JSON]) -> Answer:
        started = clock.perf_counter()
        outcome = "internal"
        try:
            given = verb.parse(arguments)
            if isinstance(caller, Router):
                answer = await verb.answer(Projects(self._app, caller), given)
            else:
                async with self._app.memory(caller) as memory:
                    answer = await verb.answer(memory, given)
            outcome = "ok"
        except PPSError as error:
            outcome = error.code
            raise
        except asyncio.CancelledError:
            outcome = "cancelled"
            raise
        finally:
            self._note(caller, verb.name, outcome, clock.perf_counter() - started)
        return answer

    def _note(self, caller: Caller, verb: str, outcome: str, seconds: float) -> None:
        tally = self.tallies[verb, outcome]
        tally.times += 1
        tally.seconds += seconds
        _log.info("%s verb=%s outcome=%s ms=%.1f", _named(caller), verb, outcome, seconds * 1000)


def _named(caller: Caller) -> str:
    if isinstance(caller, Router):
        return f"router={caller.id}"
    return f"entity={caller if isinstance(caller, str) else caller.name}"
