"""The guarded driver, the second layer of isolation: Graphiti and the stores get no other driver.

It checks the values of parameters and rows and does not parse Cypher. ``docs/isolation.md``
explains the rules, and rules that were tried and failed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, NoReturn, Protocol, cast

from graphiti_core.driver.driver import GraphDriver, GraphDriverSession
from graphiti_core.driver.graph_operations.graph_operations import GraphOperationsInterface
from graphiti_core.driver.query_executor import Transaction
from graphiti_core.driver.search_interface.search_interface import SearchInterface

from pps.core.errors import IsolationError
from pps.core.ids import EntityId
from pps.graph.graph_store import Executor, Rows
from pps.isolation.counters import BreachKind, IsolationCounters
from pps.isolation.guarded_values import (
    RefusedValue,
    check_rows,
    ids_of_unbound_rows,
    names_foreign_group,
    names_of,
)

_OPTIONS = frozenset(("routing_", "database_"))
_NODES = ("Entity", "Episodic", "Community", "Saga")
_EDGES = ("RELATES_TO", "MENTIONS", "HAS_MEMBER", "HAS_EPISODE", "NEXT_EPISODE")
_PATTERNS = tuple(f"(x:{label}) USING INDEX SEEK x:{label}(uuid)" for label in _NODES) + tuple(
    f"()-[x:{kind}]->() USING INDEX SEEK x:{kind}(uuid)" for kind in _EDGES
)

# With labels each branch is an index look-up: 2 ms for 20 ids, against 20 to 30 ms without. The
# hints are for new databases, whose statistics mislead the planner.
FOREIGN_IDS = "\nUNION ALL\n".join(
    f"UNWIND $ids AS id MATCH {pattern} "
    "WHERE x.uuid = id AND coalesce(x.group_id, '') <> $group_id "
    "RETURN id AS id LIMIT 1"
    for pattern in _PATTERNS
)
_BATCH = 1_000
_Work = Callable[..., Awaitable[Any]]
_Execute = Callable[..., Awaitable[tuple[Rows, Any, Any]]]


class _Runs(Protocol):
    """A session or a transaction of the wrapped driver."""

    async def run(self, query: str, **kwargs: Any) -> Any:
        """Run one statement."""
        ...


class _Session(_Runs, Protocol):
    async def execute_write(self, func: _Work, *args: Any, **kwargs: Any) -> Any: ...

    async def close(self) -> None: ...


class _Inner(Protocol):
    """The methods of a graph driver that the guard uses; Graphiti's own class declares fewer."""

    async def execute_query(self, cypher_query_: str, **kwargs: Any) -> tuple[Rows, Any, Any]: ...

    def session(self) -> _Session: ...

    def transaction(self) -> AbstractAsyncContextManager[_Runs]: ...


class _Checks:
    """The checks before and after every statement, whichever method of the driver runs it.

    ``own`` marks PPS's own statements, see ``GuardedDriver.for_own_statements``.
    """

    def __init__(self, inner: _Inner, entity: EntityId, counters: IsolationCounters) -> None:
        self._inner = inner
        self._entity = entity
        self._counters = counters

    async def before(self, query: object, parameters: Mapping[str, Any], *, own: bool) -> bool:
        """Check a statement's text and parameters; raise IsolationError if a rule is broken.

        Returns:
            Whether to run it. False if it binds no group but an empty list, so it has no results.
        """
        group = self._entity.group
        if not isinstance(query, str) or names_foreign_group(group, query):
            raise self.refuse(
                "group", "the text of a statement is not one text, or spells another group"
            )
        try:
            references = names_of(group, parameters, own=own)
        except RefusedValue as refused:
            raise self.refuse(cast(BreachKind, refused.kind), refused.why) from None
        if own:
            # Searching the text for the parameter does not protect anything: it finds mistakes in
            # our own statements.
            if not references.bound or "$group_id" not in query:
                raise self.refuse("unbound", "a statement of PPS's own does not bind the group")
            return True
        if not references.bound and not references.ids:
            if references.emptiness:
                return False
            raise self.refuse("unbound", "a statement names neither a group nor an id")
        if not await self.free(references.ids):
            raise self.refuse("id", "a statement addressed something of another group")
        return True

    async def free(self, ids: Collection[str]) -> bool:
        """Return whether none of the ids belongs to another group."""
        ordered = list(ids)
        for start in range(0, len(ordered), _BATCH):
            batch = ordered[start : start + _BATCH]
            rows, _, _ = await self._inner.execute_query(
                FOREIGN_IDS, ids=batch, group_id=self._entity.group, routing_="r"
            )
            if rows:
                return False
        return True

    async def after(self, rows: Rows, *, own: bool) -> Rows:
        """Return the rows; raise IsolationError if any belongs to another group."""
        try:
            check_rows(self._entity.group, rows)
        except RefusedValue as refused:
            raise self.refuse("row", refused.why) from None
        if not own and not await self.free(ids_of_unbound_rows(rows)):
            raise self.refuse("row", "a row named something of another group")
        return rows

    async def run(self, runner: _Runs, query: str, keywords: dict[str, Any], *, own: bool) -> Rows:
        """Run a statement in a session or a transaction, checked before and after."""
        self.options(keywords)
        parameters = _merged(keywords)
        if not await self.before(query, parameters, own=own):
            return []
        return await self.after(await _fetched(await runner.run(query, **parameters)), own=own)

    def refuse(self, kind: BreachKind, why: str) -> IsolationError:
        """Count and log a refused statement; return the error to raise."""
        return self._counters.refuse(self._entity, kind, why)

    def options(self, keywords: dict[str, Any]) -> dict[str, Any]:
        """Remove the library's options (names that end in ``_``) from the keywords.

        Returns:
            The option to pass on: ``routing_``, if present.

        Raises:
            IsolationError: For another database, and for any option but ``_OPTIONS``, because it
                may lead to another session or user.
        """
        options = {key: keywords.pop(key) for key in list(keywords) if key.endswith("_")}
        own_database = getattr(self._inner, "_database", None)
        if options.keys() - _OPTIONS or options.get("database_", own_database) != own_database:
            raise self.refuse("operation", "a statement asked for another database or another user")
        return {key: value for key, value in options.items() if key == "routing_"}


class BoundDriver(GraphDriver):
    """A ``GraphDriver`` of Graphiti, permanently bound to one entity, for any store.

    It refuses another database, a driver for another group, being copied, and changes of the
    schema. ``close`` does nothing, because the opener of the store closes it.

    Args:
        entity: The entity whose group is the only one allowed.
        counters: Counts refusals.
    """

    def __init__(self, entity: EntityId, counters: IsolationCounters) -> None:
        self.default_group_id = entity.group
        # Graphiti clones a driver whose database is not the group in use: here they are the same.
        self._database = entity.group
        self._entity = entity
        self._counters = counters
        self.search_interface: SearchInterface | None = None
        self.graph_operations_interface: GraphOperationsInterface | None = None

    @abstractmethod
    async def free(self, ids: Collection[str]) -> bool:
        """Return whether none of the ids belongs to another group, as any kind of node or edge.

        The store's constraints make an id unique within one kind only. In the tables of an
        entity's own file every id is free.
        """

    async def close(self) -> None:
        """Do nothing: the opener of the store closes it."""

    def clone(self, database: str) -> GraphDriver:
        """Return this driver for its own group; raise IsolationError for any other."""
        if database != self._database:
            self._refuse_operation("a driver for another group was asked for")
        return self

    def with_database(self, database: str) -> GraphDriver:
        """Return this driver for its own group; raise IsolationError for any other."""
        return self.clone(database)

    def __copy__(self) -> NoReturn:
        self._refuse_operation("a guarded driver was copied")

    def __deepcopy__(self, _: object) -> NoReturn:
        self._refuse_operation("a guarded driver was copied")

    def __reduce__(self) -> NoReturn:
        self._refuse_operation("a guarded driver was copied")

    async def build_indices_and_constraints(self, delete_existing: bool = False) -> None:
        """Raise IsolationError: only the store changes the schema."""
        self._refuse_operation("a change of the schema was asked for")

    def delete_all_indexes(self) -> NoReturn:
        """Raise IsolationError: only the store changes the schema."""
        self._refuse_operation("a change of the schema was asked for")

    def _refuse_operation(self, why: str) -> NoReturn:
        raise self._counters.refuse(self._entity, "operation", why)


class GuardedDriver(BoundDriver):
    """A graph driver permanently bound to one entity, which checks every statement.

    A statement runs through ``execute_query``, ``session().run``, ``session().execute_write`` or
    ``transaction()``. Each of them checks the parameters before and the rows after.

    Args:
        inner: The store's driver; no other code may use it for this entity.
        entity: The entity whose group is the only one allowed.
        counters: Counts refusals.
    """

    def __init__(self, inner: GraphDriver, entity: EntityId, counters: IsolationCounters) -> None:
        super().__init__(entity, counters)
        self.provider = inner.provider
        self.__inner = cast(_Inner, inner)
        self.__checks = _Checks(self.__inner, entity, counters)

    async def execute_query(self, cypher_query_: str, **kwargs: Any) -> tuple[Rows, Any, Any]:
        """Run one statement; raise IsolationError if its parameters or rows break a rule."""
        return await self._execute(cypher_query_, kwargs, own=False)

    def session(self, database: str | None = None) -> GraphDriverSession:
        """Open a session whose statements are checked; refuse another database."""
        if database is not None and database != self._database:
            raise self.__checks.refuse("operation", "a session asked for another database")
        return _GuardedSession(self.__inner.session(), self.__checks)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Transaction]:
        """Open a transaction whose statements are checked; a refusal rolls it back."""
        async with self.__inner.transaction() as inner:
            yield _GuardedTransaction(inner, self.__checks, own=False)

    async def free(self, ids: Collection[str]) -> bool:
        return await self.__checks.free(ids)

    def for_own_statements(self) -> Executor:
        """Return an executor for PPS's own statements, which bind the group themselves.

        Only ``Neo4jStore`` and this package use it, and they accept no Cypher from callers. Each
        statement must bind the group, so its ids are not looked up. Its rows are checked like all
        others.
        """
        return _OwnDoor(self._execute, self.__inner, self.__checks)

    async def _execute(
        self, query: str, keywords: dict[str, Any], *, own: bool
    ) -> tuple[Rows, Any, Any]:
        checks = self.__checks
        options = checks.options(keywords)
        parameters = _merged(keywords)
        if not await checks.before(query, parameters, own=own):
            return [], None, None
        rows, summary, keys = await self.__inner.execute_query(query, **parameters, **options)
        return await checks.after(rows, own=own), summary, keys


class _OwnDoor:
    """An ``Executor`` for statements that bind the group themselves."""

    def __init__(self, execute: _Execute, inner: _Inner, checks: _Checks) -> None:
        self._execute = execute
        self._inner = inner
        self._checks = checks

    async def execute_query(self, cypher_query_: str, **kwargs: Any) -> tuple[Rows, Any, Any]:
        return await self._execute(cypher_query_, kwargs, own=True)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[_GuardedTransaction]:
        async with self._inner.transaction() as inner:
            yield _GuardedTransaction(inner, self._checks, own=True)


class _GuardedTransaction(Transaction):
    def __init__(self, inner: _Runs, checks: _Checks, *, own: bool) -> None:
        self._inner = inner
        self._checks = checks
        self._own = own

    async def run(
        self, query: str, parameters: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> Rows:
        return await self._checks.run(
            self._inner, query, {**kwargs, "parameters": parameters}, own=self._own
        )


class _GuardedSession(GraphDriverSession):
    def __init__(self, inner: _Session, checks: _Checks) -> None:
        self._inner = inner
        self._checks = checks

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def run(
        self, query: str, parameters: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> Rows:
        return await self._checks.run(
            self._inner, query, {**kwargs, "parameters": parameters}, own=False
        )

    async def execute_write(self, func: _Work, *args: Any, **kwargs: Any) -> Any:
        async def guarded(inner: _Runs, *inner_args: Any, **inner_kwargs: Any) -> Any:
            return await func(
                _GuardedTransaction(inner, self._checks, own=False), *inner_args, **inner_kwargs
            )

        return await self._inner.execute_write(guarded, *args, **kwargs)

    async def close(self) -> None:
        await self._inner.close()


def _merged(keywords: dict[str, Any]) -> dict[str, Any]:
    """Merge ``params=``, ``parameters=`` and keywords; keywords win, as in Neo4j's driver."""
    nested: list[dict[str, Any]] = [
        keywords.pop(name, None) or {} for name in ("params", "parameters")
    ]
    return {**nested[0], **nested[1], **keywords}


async def _fetched(result: Any) -> Rows:
    """Return the rows of a library's result: a list, None, or an asynchronous cursor."""
    if result is None or isinstance(result, list):
        return cast(Rows, result or [])
    return [record async for record in result]
