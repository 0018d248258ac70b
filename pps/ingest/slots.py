"""How many entities a language model reads for at the same time: who finds no place is told when one is free."""

from __future__ import annotations

from collections.abc import Callable


class Places:
    """A bounded number of places, 1 or more. Not for several threads: it lives in one event loop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: set[object] = set()
        self._waiting: dict[object, Callable[[], None]] = {}

    def claim(self, who: object, told: Callable[[], None]) -> bool:
        """Take a place; without one, ``told`` is called when one is free. Newcomers let those who wait go first."""
        if len(self._taken) >= self._most or (self._waiting and who not in self._waiting):
            self._waiting.setdefault(who, told)
            return False
        self._waiting.pop(who, None)
        self._taken.add(who)
        return True

    def waits(self, who: object) -> bool:
        """Tell whether ``who`` found no place and still wants one."""
        return who in self._waiting

    def release(self, who: object) -> None:
        """Give a place back, or the wish for one."""
        self._waiting.pop(who, None)
        if who in self._taken:
            self._taken.remove(who)
            for told in list(self._waiting.values()):
                told()
