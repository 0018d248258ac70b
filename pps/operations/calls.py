"""Carrying out operations: check the caller, open the memory, time, count and log the call."""

from __future__ import annotations

import asyncio
import logging
import re
import sys
import time as clock
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from pps.app import App
from pps.core.errors import InvalidRequest, NotFound, PPSError
from pps.core.json_bounds import is_large
from pps.core.json_shapes import plain_name
from pps.core.log_context import NO_REQUEST, new_request_id, request_id, serving
from pps.core.trust import CAPTURED
from pps.entities.paths import without_paths
from pps.operations.catalog import (
    Located,
    all_operations,
    locate,
    located,
    operations_for,
)
from pps.operations.table import Answer, AnyOperation, Audience

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from pps.context.lines import Line
    from pps.core.ids import EntityId
    from pps.core.values import JSON
    from pps.entities.routing import Router
    from pps.ingest.indexer import Progress
    from pps.operations.inputs import Input
    from pps.operations.pack_tools import PackTools

_log = logging.getLogger(__name__)
_BEAT_S = 10.0
_LEAST_PAUSE_S = 0.1
_ID = re.compile(r"[0-9a-f]{8}[0-9a-f-]{0,28}")
_MOST_NAMED = 3
_MOST_VALUE = 80
PACK_TOOL = "pack_tool"
"""What tallies call every tool of a pack."""
_TAKE_TITLES = frozenset(
    {"id", "ids", "keep", "drop", "center", "source_ids"}
    | {"node_id", "target_node_id", "anchor_node_id"}
)
"""Arguments that take ids or titles."""


@runtime_checkable
class RoutedSubject(Protocol):
    """What a router's operations act on.

    ``named`` is the entity that one of them led to, empty for none.
    """

    named: str


@dataclass(slots=True)
class CallTally:
    """How often an operation ended in one way, and how long that took in all."""

    times: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ProgressReport:
    """How far a long operation is; ``total`` is 0 while nobody knows."""

    what: str
    done: int
    total: int


class _Reports:
    """The latest report; a reader is woken at most ten times a second."""

    def __init__(self) -> None:
        self.wake = asyncio.Event()
        self.last = ProgressReport("starting", 0, 0)
        self._told_at = 0.0

    def told(self, stage: str, done: int, total: int) -> None:
        self.last = ProgressReport(stage, done, total)
        if done >= total or clock.monotonic() - self._told_at > _LEAST_PAUSE_S:
            self._told_at = clock.monotonic()
            self.wake.set()


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks.

    Attributes:
        audiences: Whose operations they may ask for, the first one's first where two share a name.
        entity: Whose memory an entity's operations act on: the id that a token stands for, or a
            name from the owner.
        router: Whose projects those of routers and runners act on.
        toolsets: The only ones whose operations they may ask for; None for all.
        actor: Who writes; empty is the person. It is the connection's: no argument changes it.
    """

    audiences: tuple[Audience, ...]
    entity: EntityId | str | None = None
    router: Router | None = None
    toolsets: frozenset[str] | None = None
    actor: str = ""

    @classmethod
    def of_entity(
        cls, entity: EntityId | str, toolsets: Iterable[str] | None = None, actor: str = ""
    ) -> Caller:
        return cls(
            ("entity",),
            entity,
            toolsets=None if toolsets is None else frozenset(toolsets),
            actor=actor,
        )

    @classmethod
    def of_router(cls, router: Router) -> Caller:
        """Return a router, who may also carry out the tasks of its projects."""
        return cls(("router", "runner"), router=router)

    @property
    def entity_name(self) -> str:
        """The name of the entity whose memory they ask.

        Empty where a call names it, or its project.
        """
        if self.entity is None or isinstance(self.entity, str):
            return self.entity or ""
        return self.entity.name

    @property
    def name(self) -> str:
        """How the log names them."""
        if self.entity is not None:
            actor = f" actor={self.actor}" if self.actor else ""
            return (
                f"entity={self.entity if isinstance(self.entity, str) else self.entity.name}{actor}"
            )
        return f"router={self.router.id}" if self.router else self.audiences[0]


OPERATOR = Caller(("operator",))


def owner(router: Router, entity: str | None = None) -> Caller:
    """Return the owner of the machine, who may call all operations.

    For one entity if it is named.
    """
    return Caller(
        (*(("entity",) if entity else ()), "owner", "operator", "router", "runner"), entity, router
    )


class Calls:
    """Lets callers do operations.

    One that writes is carried through even when its caller goes away in the middle: a write of
    several steps is never left half done because a client hung up. A long one that nobody listens
    to any more is given up, where it can be asked for again and goes on from there.

    Attributes:
        most_sessions: How many protocol sessions one entity or router may have at once.
    """

    def __init__(self, app: App, table: tuple[AnyOperation, ...] | None = None) -> None:
        """Let callers of an app do the operations of the catalog, or of another table."""
        self._app = app
        app.provide_shared_lines(self._shared_lines)
        self._writes: set[asyncio.Task[Answer]] = set()
        self._other_table = table
        self._pack_tools: PackTools | None = None
        self._made_at = -1
        self.most_sessions = app.settings.server.sessions
        self.tallies: defaultdict[tuple[str, str], CallTally] = defaultdict(CallTally)

    @property
    def table(self) -> tuple[AnyOperation, ...]:
        """Every operation that there is here now, without those of features that are off.

        Imports them all.
        """
        self._follow_features()
        base = all_operations() if self._other_table is None else self._other_table
        table = (*base, *self._added)
        if not self._of_off:
            return table
        return tuple(operation for operation in table if operation not in self._of_off)

    def _follow_features(self) -> None:
        """Note which operations features add and which are off, anew when one was switched."""
        features = self._app.features
        if self._made_at == features.changes:
            return
        usable = [
            (feature, feature.feature)
            for feature in features.installed()
            if feature.feature is not None
        ]
        self._of_off = {
            operation: name.name
            for name, feature in usable
            if not features.is_on(name.name)
            for operation in feature.operations()
        }
        self._added = tuple(
            operation
            for name, feature in usable
            if not name.is_shipped
            for operation in feature.operations()
        )
        base = located().values() if self._other_table is None else self._other_table
        self._names = frozenset(place.name for place in (*base, *self._added))
        self._pack_tools = None
        self._made_at = features.changes

    async def operations(self, caller: Caller) -> dict[str, AnyOperation]:
        """Return what a caller is offered, by name; with the tools of its entity's packs.

        Those made from kinds are offered only where they are named, since there are so many; they
        answer anyway.
        """
        from pps.operations.pack_tools import TYPED

        named = caller.toolsets or ()
        tools = await self._of_packs(caller)
        return self._of_table(caller) | {
            name: tool
            for name, tool in tools.items()
            if not tool.toolset.endswith(TYPED) or tool.toolset in named
        }

    async def find(self, caller: Caller, name: str) -> AnyOperation:
        """Return the operation of a name.

        The name of a pack's tool may have dots and camelCase and a server's name in front, such as
        ``odei.neo4j.foundation.list.v2``.

        Raises:
            InvalidRequest: There is no such operation for this caller.
        """
        operation = await self._find_in_table(caller, name)
        if operation is not None:
            return operation
        tools = await self._of_packs(caller)
        from pps.operations.pack_tools import tool_name

        parts = name.split(".")
        for start in range(len(parts)):
            tool = tools.get(tool_name(".".join(parts[start:])))
            # Only versioned tools of packs may have a server's name in front.
            if tool is not None and (start == 0 or "." in getattr(tool, "dotted", "")):
                return tool
        if "owner" in caller.audiences:
            for operation, feature in self._of_off.items():
                if operation.name == name:
                    raise InvalidRequest(
                        "operation",
                        f"is of the feature {feature}, which is off; `pps feature enable "
                        f"{feature}` switches it on",
                    )
        offered = ", ".join(await self.operations(caller))
        raise InvalidRequest("operation", f"there is none of that name; there are {offered}")

    async def toolsets(self, caller: Caller) -> frozenset[str]:
        """Return the toolsets of a caller's audiences, and those of its entity's packs."""
        audiences = self._audiences(caller)
        of_table = {place.toolset for place in self._places() if place.audience in audiences}
        return frozenset(of_table) | {
            kind_pack.toolset for kind_pack in (await self._of_packs(caller)).values()
        }

    def _of_table(self, caller: Caller) -> dict[str, AnyOperation]:
        return operations_for(*self._audiences(caller), toolsets=caller.toolsets, table=self.table)

    async def _find_in_table(self, caller: Caller, name: str) -> AnyOperation | None:
        """Return an operation of the table.

        Of the catalog its module alone is imported, in a thread.
        """
        self._follow_features()
        if self._other_table is not None or self._of_off:
            return self._of_table(caller).get(name)
        place = locate(name, self._audiences(caller), caller.toolsets)
        if place is None:  # of another distribution's feature, or nobody's
            return self._of_table(caller).get(name)
        if place.module in sys.modules:
            return place.load()
        return await asyncio.to_thread(place.load)

    def _places(self) -> Iterable[Located | AnyOperation]:
        """Return the names, audiences and toolsets of the table.

        Of the catalog nothing is imported.
        """
        self._follow_features()
        if self._other_table is not None or self._of_off:
            return self.table
        return (*located().values(), *self._added)

    def _audiences(self, caller: Caller) -> tuple[Audience, ...]:
        """Return the audiences of a caller: those of an entity, and of members if it is one."""
        named = (
            caller.entity
            if isinstance(caller.entity, str) or caller.entity is None
            else caller.entity.name
        )
        if (
            named is None
            or "entity" not in caller.audiences
            or not self._app.registry.squads.is_member(named)
        ):
            return caller.audiences
        return (*caller.audiences, "member")

    async def _of_packs(self, caller: Caller) -> Mapping[str, AnyOperation]:
        if caller.entity is None or "entity" not in caller.audiences:
            return {}
        kinds = await self._app.kinds_of(caller.entity)
        if not kinds.packs:
            return {}
        self._follow_features()
        if self._pack_tools is None:
            from pps.operations.pack_tools import PackTools

            self._pack_tools = PackTools(operations_for("entity", table=self.table))
        tools = self._pack_tools.of(kinds)
        allowed = caller.toolsets
        return (
            tools
            if allowed is None
            else {name: tool for name, tool in tools.items() if tool.toolset in allowed}
        )

    async def answer(
        self,
        caller: Caller,
        name: str,
        arguments: Mapping[str, JSON],
        progress: Progress | None = None,
        *,
        for_model: bool = False,
    ) -> Answer:
        """Let a caller do an operation.

        Args:
            caller: Who asks.
            name: An operation's; those of others do not exist for them.
            arguments: As they came over the wire; checked here.
            progress: Told how far a long one is.
            for_model: A model reads the answer: it gets what it needs, a page of bounded size.

        Raises:
            InvalidRequest: No such operation for this caller, or an argument breaks a bound.
            PPSError: Whatever the memory raises.
        """
        operation = await self.find(caller, name)
        request = request_id()
        with serving(new_request_id() if request == NO_REQUEST else request):
            if operation.hints.read_only or (progress and not operation.carried_through):
                return await self._carried_out(
                    caller, operation, arguments, progress, for_model=for_model
                )
            write = asyncio.create_task(
                self._carried_out(caller, operation, arguments, progress, for_model=for_model)
            )
            self._writes.add(write)
            write.add_done_callback(self._writes.discard)
            return await asyncio.shield(write)

    async def reported(
        self,
        caller: Caller,
        name: str,
        arguments: Mapping[str, JSON],
        *,
        for_model: bool = False,
    ) -> AsyncGenerator[ProgressReport | Answer]:
        """Yield how far a long operation is, again and again, and its answer last.

        Raises as ``answer``.

        When the reader goes away it is given up.
        """
        reports = _Reports()
        work = asyncio.create_task(
            self.answer(caller, name, arguments, reports.told, for_model=for_model)
        )
        work.add_done_callback(lambda _: reports.wake.set())
        try:
            while not work.done():
                with suppress(TimeoutError):
                    await asyncio.wait_for(reports.wake.wait(), _BEAT_S)
                reports.wake.clear()
                if not work.done():
                    yield reports.last
            yield work.result()
        finally:
            work.cancel()
            await asyncio.wait([work])

    async def settled(self, timeout_s: float = 30.0) -> None:
        """Wait until every write in hand has ended; its errors were its caller's."""
        if self._writes:
            await asyncio.wait(set(self._writes), timeout=timeout_s)

    async def _carried_out(
        self,
        caller: Caller,
        operation: AnyOperation,
        arguments: Mapping[str, JSON],
        progress: Progress | None,
        *,
        for_model: bool,
    ) -> Answer:
        started = clock.perf_counter()
        outcome = "internal"
        try:
            zone = await self._zone(caller, operation.audience)
            # Which entity a project's memory is, only its operation finds out.
            times = None if operation.audience in ("router", "runner") else zone
            if is_large(arguments):
                request = await asyncio.to_thread(operation.parse, arguments, times)
            else:
                request = operation.parse(arguments, times)
            self._check_captures(caller, request)
            async with self._subject(caller, operation.audience) as subject:
                if (
                    operation.hints.destructive
                    and operation.audience == "entity"
                    and "member" in self._audiences(caller)
                ):
                    answer = await self._forgotten(
                        caller, operation, request, subject, zone, for_model=for_model
                    )
                else:
                    answer = await operation.answer(
                        subject, request, progress, zone, for_model=for_model
                    )
                answer = replace(
                    answer,
                    entity=_entity_of(caller, request, subject),
                    as_of=_as_of(request),
                )
            outcome = "ok"
        except PPSError as error:
            outcome = error.code
            if isinstance(error, NotFound):
                _add_values(error, arguments)
            if "owner" not in caller.audiences:
                error.map_texts(lambda text: without_paths(text, self._app.settings.home))
            raise
        except asyncio.CancelledError:
            outcome = "cancelled"
            raise
        finally:
            self._note(caller, operation.name, outcome, clock.perf_counter() - started)
        return answer

    @asynccontextmanager
    async def _subject(self, caller: Caller, audience: Audience) -> AsyncGenerator[Any]:
        app = self._app.by(caller.actor)
        if audience == "member" and caller.entity is not None:
            async with self._app.features.provided("desks")(app, caller.entity) as desk:
                yield desk
            return
        if audience == "entity" and caller.entity is not None:
            async with app.memory(caller.entity) as memory:
                yield memory
        elif audience in ("router", "runner") and caller.router is not None:
            yield self._app.features.provided("projects")(app, caller.router)
        else:
            yield app

    async def _shared_lines(
        self, entity: EntityId, text: str, limit: int
    ) -> Sequence[tuple[str, Line]]:
        """Return lines of what others share with an entity, while a feature provides them."""
        find = self._app.features.provided("shared_lines")
        return await find(self._app, entity, text, limit) if find else ()

    async def _zone(self, caller: Caller, audience: Audience) -> tzinfo:
        """Return the zone of a call's times without one: the entity's, else the settings'."""
        if audience in ("entity", "member") and caller.entity is not None:
            with suppress(PPSError):  # whoever opens the memory next says what is wrong with it
                return await self._app.zone_of(caller.entity)
        return await self._app.zone_of(None)

    def _check_captures(self, caller: Caller, request: Input) -> None:
        """Raise InvalidRequest if a member's own text names a source of hooks or imports."""
        from pps.operations.inputs import SourcedText

        if not isinstance(request, SourcedText) or request.source not in CAPTURED:
            return
        if "owner" not in caller.audiences and "member" in self._audiences(caller):
            raise InvalidRequest(
                "source", f"{request.source!r} is that of hooks and imports: give another one"
            )

    async def _forgotten(
        self,
        caller: Caller,
        operation: AnyOperation,
        request: Input,
        subject: object,
        zone: tzinfo,
        *,
        for_model: bool,
    ) -> Answer:
        """Let a member erase, with its copies in the pool.

        Also while squads are off, as text must not stay there.
        """

        async def act(changed: Input) -> Answer:
            return await operation.answer(subject, changed, None, zone, for_model=for_model)

        forget = self._app.features.provided("member_forgetting", is_off_too=True)
        return await forget(self._app, caller.entity or "", operation, request, act)

    def _note(self, caller: Caller, name: str, outcome: str, seconds: float) -> None:
        self._follow_features()
        # A pack's tools have names of its owner: they are counted together.
        counted_name = name if name in self._names else PACK_TOOL
        tally = self.tallies[counted_name, outcome]
        tally.times += 1
        tally.seconds += seconds
        ms = round(seconds * 1000, 1)
        fields = {"caller": caller.name, "operation": name, "outcome": outcome, "ms": ms}
        _log.info(
            "%s operation=%s outcome=%s ms=%.1f",
            caller.name,
            name,
            outcome,
            ms,
            extra={"fields": fields},
        )


def _as_of(request: Input) -> str:
    moment = getattr(request, "as_of", None)
    if moment is None:
        return ""
    from pps.operations.item_views import model_time

    return model_time(moment) or ""


def _entity_of(caller: Caller, request: Input, subject: object) -> str:
    """Return the name of the entity that an operation acted on; empty for none or several."""
    if isinstance(subject, RoutedSubject):
        return subject.named
    if isinstance(subject, App):
        named: object = getattr(request, "entity", None)
        return named if isinstance(named, str) else ""
    return caller.entity_name


def _add_values(error: NotFound, arguments: Mapping[str, JSON]) -> None:
    """Name what was asked for in an error, so that another's id reads as one that is nobody's."""
    if (
        error.noun == "project"
    ):  # one outside the roots reads as one that is not there, to the letter
        return
    nested = [argument for argument in arguments.values() if isinstance(argument, Mapping)]
    for place in nested if error.noun == "id" else (arguments, *nested):
        value = place.get(error.noun)
        if isinstance(value, str) and 0 < len(value) <= _MOST_VALUE:
            error.values = (value,)
            return
    if error.noun != "id":
        return
    ids: list[str] = []
    titles: list[str] = []
    for name, value in arguments.items():
        for reference in value if isinstance(value, list) else [value]:
            if not isinstance(reference, str):
                continue
            if _ID.fullmatch(reference):
                ids.append(reference)
            elif plain_name(name) in _TAKE_TITLES and 0 < len(reference) <= _MOST_VALUE:
                titles.append(reference)
    if ids or titles:
        error.values = tuple((ids or titles)[:_MOST_NAMED])
        error.remedy = "recall and timeline show the ids that there are"
