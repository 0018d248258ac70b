"""Passage vectors with a small memory, so that a text met twice in a batch is embedded once."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

import numpy as np

from pps.models.protocols import Embedder, Matrix, Vector

_KEPT = 2_048
_AWAITED = 16_384
_GENTLE = 8
"""Texts that are few enough for one thread."""
_AHEAD = 128
"""Texts that are embedded ahead in one call: whoever asks for one of them meanwhile waits for them all."""

_log = logging.getLogger(__name__)


class PassageVectors:
    """Embeds passages in one call a batch, and keeps what will be asked for again.

    A turn is indexed when it comes in, and once more with its facts when its job is done, which may be thousands of
    turns later. So a vector that was asked for but once stays longest: up to 16,384 of them (25 MB), and of those that
    were asked for again the last 2,048, or as many as the latest call wanted. What is being embedded for one is waited
    for by the next who asks.

    Args:
        embedder: What embeds them.
        gently: Asked before each call; while it says so, calls are of a few texts. A model that works in this process
            then leaves the other cores to acknowledgements, which would wait for theirs else.
    """

    def __init__(self, embedder: Embedder, gently: Callable[[], bool] = lambda: False) -> None:
        self.embedder = embedder
        self._gently = gently
        self._awaited: OrderedDict[str, Vector] = OrderedDict()
        self._kept: OrderedDict[str, Vector] = OrderedDict()
        self._calls: dict[str, asyncio.Task[dict[str, Vector]]] = {}

    async def of(self, texts: Sequence[str], soon: Sequence[str] = ()) -> dict[str, Vector]:
        """Return the vector of each distinct text, all short enough for the model.

        Of ``soon``, texts of any length, the ``passages`` are asked for next: one call embeds them too.
        """
        wanted = list(
            dict.fromkeys([*texts, *(part for parts in await self.split(soon) for part in parts)])
        )
        found: dict[str, Vector] = {}
        missing = wanted
        while missing := self._missing(missing, found):
            mine = [text for text in missing if text not in self._calls]
            if mine:
                found |= await self._embed(mine[: self._at_once(len(mine))])
            else:  # another's call that fails is tried again: what it failed for may be none of these
                await asyncio.wait({self._calls[text] for text in missing})
        _shorten(self._kept, max(_KEPT, len(wanted)))
        _shorten(self._awaited, max(_AWAITED, len(wanted)))
        return found

    async def passages(self, texts: Sequence[str]) -> list[tuple[tuple[str, ...], Matrix]]:
        """Return each text's passages and one vector a passage, shape (passages, dimension)."""
        split = await self.split(texts)
        vectors = await self.of([passage for passages in split for passage in passages])
        width = self.embedder.fingerprint.dimension
        empty = np.zeros((0, width), dtype=np.float32)
        return [(ps, np.stack([vectors[p] for p in ps]) if ps else empty) for ps in split]

    def know(self, vectors: Mapping[str, Vector]) -> None:
        """Take vectors of passages from elsewhere: the model is not asked for them."""
        self._awaited.update(vectors)

    @asynccontextmanager
    async def ahead(self, texts: Callable[[], Awaitable[Sequence[str]]]) -> AsyncGenerator[None]:
        """Embed what will be asked for next while the body runs; what is not begun by its end is left for then.

        An error is logged and no more: whoever asks for the text that causes it meets it too.
        """
        task = asyncio.create_task(self._embed_ahead(texts))
        try:
            yield
        finally:
            task.cancel()
        if task.done() and (error := task.exception()):
            _log.info("nothing is embedded ahead: %s", error)

    async def _embed_ahead(self, texts: Callable[[], Awaitable[Sequence[str]]]) -> None:
        parts = {part for parts in await self.split(await texts()) for part in parts}
        left = sorted(parts, key=len)  # alike in length: less padding
        while left := [text for text in left if not self._has(text)]:
            await self._embed(left[: self._at_once(_AHEAD)])

    async def _embed(self, texts: list[str]) -> dict[str, Vector]:
        """Embed texts that nobody has asked the model for; once begun it goes on, whatever becomes of who asked."""
        call = asyncio.create_task(self._call(texts))
        self._calls.update(dict.fromkeys(texts, call))
        return await asyncio.shield(call)

    async def _call(self, texts: list[str]) -> dict[str, Vector]:
        try:
            rows = await asyncio.to_thread(self.embedder.embed_passages, texts)
            found = {
                text: row.copy() for text, row in zip(texts, rows, strict=True)
            }  # a view would keep all rows
            self._awaited.update(found)
        finally:
            for text in texts:
                del self._calls[text]
        return found

    def _at_once(self, most: int) -> int:
        return _GENTLE if self._gently() else most

    async def split(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """Return each text's passages."""
        if not texts:
            return []
        return await asyncio.to_thread(lambda: [tuple(self.embedder.split(text)) for text in texts])

    def _missing(self, wanted: Sequence[str], found: dict[str, Vector]) -> list[str]:
        """Add what is kept to what is found, from now on among what was asked for again; return what is in neither."""
        for text in wanted:
            for kept in (self._awaited, self._kept):
                if text not in found and (vector := kept.pop(text, None)) is not None:
                    found[text] = self._kept[text] = vector
        return [text for text in wanted if text not in found]

    def _has(self, text: str) -> bool:
        return text in self._awaited or text in self._kept or text in self._calls


def _shorten(kept: OrderedDict[str, Vector], most: int) -> None:
    while len(kept) > most:
        kept.popitem(last=False)
