"""How many files somebody has to open who follows one turn in, or one recall: counted by what runs, on every thread."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pps
from pps.app import App
from pps.config import EmbedderSettings, Settings

PACKAGE = str(Path(pps.__file__).parent)


class Seen:
    """The files of the package whose functions run between ``watching`` and its end."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self._on = False

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        if self._on and event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            self.files.add(frame.f_code.co_filename.removeprefix(PACKAGE + "/"))

    @contextmanager
    def watching(self) -> Iterator[None]:
        self._on = True
        try:
            yield
        finally:
            self._on = False


@contextmanager
def profiled() -> Iterator[Seen]:
    """Note what runs, also on threads that are started within."""
    seen = Seen()
    before, before_threads = sys.getprofile(), threading.getprofile()
    threading.setprofile(seen)
    sys.setprofile(seen)
    try:
        yield seen
    finally:
        sys.setprofile(before)
        threading.setprofile(before_threads)  # pyright: ignore[reportArgumentType] - None takes it away


async def test_a_turn_that_is_remembered_is_followed_in_few_files(tmp_path: Path) -> None:
    with profiled() as seen:
        async with App.open(Settings(home=tmp_path, embedder=EmbedderSettings(name="hash"))) as app:
            await app.create("ana")
            async with app.memory("ana") as memory:
                await memory.remember("Ana waters the fern. #home [[Fern]]")
                assert await memory.settled()
                await memory.parts.worker.stop()  # what it does with the turn is another way
                with seen.watching():
                    await memory.remember("Ana lives in Lisbon. #home [[Fern]]", wait="journal")
    assert len(seen.files) <= 20, sorted(seen.files)


async def test_a_recall_is_followed_in_few_files(tmp_path: Path) -> None:
    with profiled() as seen:
        async with App.open(Settings(home=tmp_path, embedder=EmbedderSettings(name="hash"))) as app:
            await app.create("ana")
            async with app.memory("ana") as memory:
                await memory.remember("Ana waters the fern.", actor="Ana")
                assert await memory.settled()
                await memory.parts.worker.stop()
                await memory.recall("What does Ana water?")  # what is made once is made
                with seen.watching():
                    recalled = await memory.recall("What does Ana water?")
    assert recalled["episodes"]
    # Eleven of recall itself; the others are those of the stores, and what all modules share.
    assert len(seen.files) <= 48, " ".join(sorted(seen.files))
