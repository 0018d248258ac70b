"""A process's resources: its cores, its memory, and the pauses of its garbage collector."""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

_M_ARENA_MAX = -8
_ARENAS = 2
_SWITCH_S = 0.0005


def cores() -> int:
    """Return how many processors this process may use, by its container or ``taskset``."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def few_arenas() -> None:
    """Let all threads share two heaps, each of which may keep what it freed.

    Call it before there are threads.

    A process with a dozen threads that take turns has a dozen such heaps else: a third of its
    memory. It is a setting of the whole process, told to glibc's allocator, so only a program of
    PPS's own makes it.
    """
    if sys.platform == "linux":
        call = getattr(ctypes.CDLL(None), "mallopt", None)
        if call is not None:
            call(_M_ARENA_MAX, _ARENAS)


def one_thread_a_sum() -> None:
    """Let numpy work out each product in the thread that asks for it.

    Call it before numpy is imported.

    A vector query is some tenths of a millisecond of sums. OpenBLAS hands each to all cores, where
    its threads then spin for a while, in the way of the embedder's and of other queries: ambient
    recall took twice as long at p95. What the environment says of it already stays. A program that
    uses PPS may want other sums on all cores.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def switch_threads_often() -> None:
    """Let a thread keep the interpreter for 0.5 ms at most while another waits for it.

    An answer waits for threads that index, and Python's 5 ms add up. It is a setting of the whole
    process, so only a program of PPS's own makes it.
    """
    sys.setswitchinterval(_SWITCH_S)


@contextmanager
def loading() -> Generator[None]:
    """Pause the garbage collector while libraries are imported: it would scan them a dozen times.

    A quarter of the start of ``pps serve``. Afterwards, also after an error, the collector runs
    again if it ran before: a program that uses PPS may have switched it off.
    """
    ran = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if ran:
            gc.enable()


def load(module: str) -> ModuleType:
    """Import a module that a start does without, and return it; call it in a thread."""
    with loading():
        return import_module(module)


def end_at_once() -> None:
    """Let the process end without a last garbage collection, which takes ``pps serve`` 0.7 s.

    Torch's compiler says on stderr what nobody collected, so where torch is loaded that look is
    taken.
    """
    atexit.register(lambda: gc.unfreeze() if "torch" in sys.modules else gc.freeze())


def keep_what_is_loaded() -> None:
    """Let the collector pass over all that there is by now: libraries and models stay for good.

    Without it each full collection stops the process for 0.2 s, every few hundred recalls. It takes
    no time itself, since it collects nothing before: libraries leave some dozens of objects to
    collect, of a quarter of a million.
    """
    gc.freeze()


def give_back() -> None:
    """Return freed memory to the system, within milliseconds, after something large was built."""
    if sys.platform == "linux":
        call = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if call is not None:
            call(0)
