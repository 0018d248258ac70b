"""How much memory a process keeps: what glibc's allocator is told on Linux; elsewhere nothing is done."""

from __future__ import annotations

import ctypes
import sys

_M_ARENA_MAX = -8
_ARENAS = 2


def few_arenas() -> None:
    """Let all threads share two heaps, each of which may keep what it freed; call it before there are threads.

    A process with a dozen threads that take turns has a dozen such heaps else: a third of its memory. It is a
    setting of the whole process, so only a program of PPS's own makes it.
    """
    if sys.platform == "linux":
        call = getattr(ctypes.CDLL(None), "mallopt", None)
        if call is not None:
            call(_M_ARENA_MAX, _ARENAS)


def give_back() -> None:
    """Return freed memory to the system: worth its few milliseconds after something large was built in steps."""
    if sys.platform == "linux":
        call = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if call is not None:
            call(0)
