"""Counts and logs what the boundary refused, and reports it to the call it happened in."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Literal, TypeAlias

from pps.core.errors import IsolationError
from pps.core.ids import EntityId
from pps.core.log_context import request_id

_log = logging.getLogger(__name__)

BreachKind: TypeAlias = Literal["group", "id", "unbound", "row", "operation", "audit"]
"""Kinds of refused accesses.

- ``group``: a parameter names another group, or no group where one is required.
- ``id``: an id belongs to another group, or is not an id.
- ``unbound``: a statement names neither a group nor an id.
- ``row``: a statement returned a row of another group.
- ``operation``: an attempt to bypass the boundary (another database, another group's driver, a
    change of the schema).
- ``audit``: stored data connect two groups.
"""

_present: ContextVar[list[BreachKind] | None] = ContextVar("pps_breaches", default=None)


class IsolationCounters:
    """Counts of refused accesses by entity and by kind; one object per process, never reset.

    Args:
        level: Log level of each refusal; tests that attack on purpose use DEBUG.
    """

    def __init__(self, level: int = logging.ERROR) -> None:
        self._level = level
        self._by_kind: Counter[BreachKind] = Counter()
        self._by_entity: Counter[str] = Counter()

    @property
    def total(self) -> int:
        """The number of all refusals."""
        return self._by_kind.total()

    def by_kind(self) -> Mapping[BreachKind, int]:
        """Return kind → number of refusals."""
        return dict(self._by_kind)

    def by_entity(self) -> Mapping[str, int]:
        """Return name of the entity whose call was refused → number of refusals."""
        return dict(self._by_entity)

    def refuse(self, entity: EntityId, kind: BreachKind, why: str) -> IsolationError:
        """Count and log a refusal; return the error to raise.

        Args:
            entity: The entity whose call is refused.
            kind: The kind of access.
            why: One sentence, without text of a memory and without ids.
        """
        self._by_kind[kind] += 1
        self._by_entity[entity.name] += 1
        breaches = _present.get()
        if breaches is not None:
            breaches.append(kind)
        message = "isolation: refused (%s) for entity %s, request %s: %s"
        _log.log(self._level, message, kind, entity.name, request_id(), why)
        return IsolationError(f"refused at the boundary of {entity.name}: {why}")


class NoBreach:
    """A ``with`` block that raises IsolationError if anything in it was refused.

    Graphiti catches every exception in some of its look-ups and continues with an empty result;
    this block raises nevertheless. Tasks that are started in the block count as part of it.
    """

    def __init__(self, entity: EntityId) -> None:
        self._entity = entity
        self._breaches: list[BreachKind] = []
        self._token: Token[list[BreachKind] | None] | None = None

    def __enter__(self) -> None:
        self._token = _present.set(self._breaches)

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> None:
        if self._token is not None:
            _present.reset(self._token)
        outer = _present.get()
        if outer is not None:
            outer.extend(self._breaches)
        is_raised_already = isinstance(error, IsolationError) or (
            error is not None and not isinstance(error, Exception)
        )
        if self._breaches and not is_raised_already:
            raise IsolationError(
                f"refused at the boundary of {self._entity.name}: "
                "a part of this call reached outside"
            ) from error
