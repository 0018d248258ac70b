"""Listeners of features that work in the transaction that saves a turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pps.core.sql import Connection
from pps.core.values import Turn

TellListener: TypeAlias = Callable[[Connection, Turn], bool]
"""Lets a listener work in a new turn's transaction; True: it erased text. An exception undoes it."""


class TurnListeners:
    """The listeners of one ``memory.db``; whoever opens the memory sets them.

    Attributes:
        tellers: Called in order, in the writer's thread.
        wake: Called after turns were stored: it only wakes followers, which know by their positions
            what is new.
        erased: A listener erased text that is to be overwritten on disk.
    """

    def __init__(self) -> None:
        self.tellers: tuple[TellListener, ...] = ()
        self.wake: Callable[[], None] = _wake_nobody
        self.erased = False

    def tell(self, db: Connection, turn: Turn) -> None:
        """Tell every listener of a turn that this transaction stores."""
        for teller in self.tellers:
            self.erased = teller(db, turn) or self.erased


def _wake_nobody() -> None:
    pass
