"""Listeners of features that run in the transaction that saves a turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pps.core.sql import Connection
from pps.core.values import Turn

TellListener: TypeAlias = Callable[[Connection, Turn], bool]
"""Called with the transaction and its new turn; returns whether it erased text.

An exception undoes the transaction.
"""


class TurnListeners:
    """The listeners of one memory; set by the code that opens it.

    Attributes:
        tellers: Listeners, called in order in the writer's thread.
        wake: Called after turns were stored, to wake followers; they read what is new from their
            positions.
        erased: Whether a listener erased text that must be overwritten on disk.
    """

    def __init__(self) -> None:
        self.tellers: tuple[TellListener, ...] = ()
        self.wake: Callable[[], None] = lambda: None
        self.erased = False

    def tell(self, db: Connection, turn: Turn) -> None:
        """Call every listener with a turn that this transaction stores."""
        for teller in self.tellers:
            self.erased = teller(db, turn) or self.erased
