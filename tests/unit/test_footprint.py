"""What a process of PPS's own tells the allocator and the garbage collector."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAPS = """
import ctypes, os, sys, tempfile, threading
from pps.core.footprint import few_arenas, give_back

if sys.argv[1] == "few":
    few_arenas()
together = threading.Barrier(8)

def work():
    kept = [bytearray(5_000) for _ in range(200)]
    together.wait()  # all eight hold memory at once
    kept.clear()

threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
give_back()
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
libc.fclose.argtypes = [ctypes.c_void_p]
libc.malloc_info.argtypes = [ctypes.c_int, ctypes.c_void_p]
path = os.path.join(tempfile.mkdtemp(), "heaps.xml")
file = libc.fopen(path.encode(), b"w")
libc.malloc_info(0, file)
libc.fclose(file)
print(open(path).read().count("<heap nr="))
"""

FROZEN = """
import gc
from pps.core.footprint import keep_what_is_loaded
before = len(gc.get_objects())
keep_what_is_loaded()
print(gc.get_freeze_count() > before / 2, len(gc.get_objects()) < before / 10)
"""

LOADING = """
import gc
from pps.core.footprint import loading
seen = []
gc.callbacks.append(lambda phase, info: seen.append(phase))
def garbage():
    for _ in range(100_000):
        knot = []
        knot.append(knot)
with loading():
    garbage()
    print(not seen, end=" ")
try:
    with loading():
        raise ImportError
except ImportError:
    garbage()
print(len(seen) > 0, end=" ")
gc.disable()
with loading():
    pass
print(not gc.isenabled())
"""

ENDING = """
import atexit, gc, sys
from pps.core.footprint import end_at_once
many = [[number] for number in range(100_000)]
atexit.register(lambda: print(gc.get_freeze_count() > 100_000))
end_at_once()
gc.freeze()
if sys.argv[1] == "torch":
    sys.modules["torch"] = sys
"""

SUMS = """
import os, sys
from pps.core.footprint import one_thread_a_sum
if sys.argv[1] == "one":
    one_thread_a_sum()
import numpy as np
matrix = np.ones((500, 500), np.float32)
matrix @ matrix
print(len(os.listdir("/proc/self/task")) if sys.platform == "linux" else 1)
"""

PROGRAM = """
import os, sys
from pps.__main__ import main
sys.argv = ["pps", "--version"]
try:
    main()
except SystemExit:
    print(os.environ["OPENBLAS_NUM_THREADS"], "numpy" in sys.modules)
"""


def _said(program: str, *arguments: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True
    )
    return ended.stdout.strip()


def test_all_threads_share_two_heaps() -> None:
    assert int(_said(HEAPS, "few")) <= 2 < int(_said(HEAPS, "many"))


def test_what_is_loaded_is_out_of_the_collectors_way() -> None:
    assert _said(FROZEN) == "True True"


def test_nothing_is_collected_while_libraries_are_loaded_and_after_that_it_is_as_before() -> None:
    assert _said(LOADING) == "True True True"


def test_a_process_that_ends_does_not_look_for_garbage_in_what_is_loaded() -> None:
    assert _said(ENDING, "plain") == "True"
    assert _said(ENDING, "torch") == "False"


def test_a_process_counts_the_cores_that_it_may_use() -> None:
    counted = (
        "import os, sys\n"
        "from pps.core.footprint import cores\n"
        "if sys.platform == 'linux':\n"
        "    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "    assert cores() == 1\n"
        "assert cores() >= 1\n"
    )
    subprocess.run([sys.executable, "-c", counted], check=True)


def test_a_product_is_worked_out_by_the_thread_that_asks() -> None:
    assert _said(SUMS, "one") == "1"
    assert int(_said(SUMS, "all")) >= 1


def test_the_program_asks_for_that_unless_the_environment_says_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    assert _said(PROGRAM).splitlines()[-1] == "1 False"
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    assert _said(PROGRAM).splitlines()[-1] == "3 False"
