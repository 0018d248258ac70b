"""Passage vectors with a cache, so that a passage that is needed twice is embedded once."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

import numpy as np

from pps.models.protocols import Embedder, Matrix, Vector

_MOST_REUSED = 2_048
_MOST_AWAITED = 16_384
_TEXTS_A_GENTLE_CALL = 8
"""So few texts occupy one thread only."""
_TEXTS_AHEAD = 128
"""Texts of one call ahead of need; a request for one of them waits for the whole call."""

_log = logging.getLogger(__name__)


class PassageVectors:
    """Embeds passages in one call a batch, and caches vectors that will be needed again.

    A turn is indexed when it is received, and again with its facts when its job is done, which may
    be thousands of turns later. So vectors that were requested once stay longest: up to 16,384 of
    them (25 MB). Of those that were requested again the last 2,048 stay, or as many as the latest
    call needed. A request for a passage that is being embedded waits for that call.

    Args:
        embedder: The embedder.
        gently: Called before each call of the embedder; while it returns True, a call has few
            texts. A model in this process then leaves the other cores to acknowledgements.
    """

    def __init__(self, embedder: Embedder, gently: Callable[[], bool] = lambda: False) -> None:
        self.embedder = embedder
        self._gently = gently
        self._awaited: OrderedDict[str, Vector] = OrderedDict()
        self._reused: OrderedDict[str, Vector] = OrderedDict()
        self._calls: dict[str, asyncio.Task[dict[str, Vector]]] = {}

    async def of(self, texts: Sequence[str], soon: Sequence[str] = ()) -> dict[str, Vector]:
        """Return text → vector for texts that are all short enough for the model.

        The passages of ``soon``, texts of any length, will be requested next: they are embedded in
        the same calls.
        """
        passages_soon = await self.split(soon)
        wanted = list(dict.fromkeys([*texts, *(part for parts in passages_soon for part in parts)]))
        vectors: dict[str, Vector] = {}
        missing = self._take_cached(wanted, vectors)
        while missing:
            own = [text for text in missing if text not in self._calls]
            if own:
                vectors |= await self._embed(own[: self._at_once(len(own))])
            else:  # if another's call fails, these are tried again: another text may be at fault
                await asyncio.wait({self._calls[text] for text in missing})
            missing = self._take_cached(missing, vectors)
        _shorten(self._reused, max(_MOST_REUSED, len(wanted)))
        _shorten(self._awaited, max(_MOST_AWAITED, len(wanted)))
        return vectors

    async def passages(self, texts: Sequence[str]) -> list[tuple[tuple[str, ...], Matrix]]:
        """Return each text's passages and their vectors, shape (passages, dimension)."""
        split = await self.split(texts)
        vectors = await self.of([passage for passages in split for passage in passages])
        empty = np.zeros((0, self.embedder.fingerprint.dimension), dtype=np.float32)
        result: list[tuple[tuple[str, ...], Matrix]] = []
        for passages in split:
            rows = [vectors[passage] for passage in passages]
            result.append((passages, np.stack(rows) if rows else empty))
        return result

    def know(self, vectors: Mapping[str, Vector]) -> None:
        """Add known vectors of passages to the cache, so that the model is not called for them."""
        self._awaited.update(vectors)

    @asynccontextmanager
    async def ahead(self, texts: Callable[[], Awaitable[Sequence[str]]]) -> AsyncGenerator[None]:
        """Embed texts that will be requested next while the body runs; stop when the body ends.

        An error is only logged: a request for the text that causes it raises it again.
        """
        task = asyncio.create_task(self._embed_ahead(texts))
        try:
            yield
        finally:
            task.cancel()
        error = task.exception() if task.done() else None
        if error:
            _log.info("nothing is embedded ahead: %s", error)

    async def _embed_ahead(self, texts: Callable[[], Awaitable[Sequence[str]]]) -> None:
        parts = {part for parts in await self.split(await texts()) for part in parts}
        left = sorted(parts, key=len)  # alike in length: less padding
        while left := [text for text in left if not self._has(text)]:
            await self._embed(left[: self._at_once(_TEXTS_AHEAD)])

    async def _embed(self, texts: list[str]) -> dict[str, Vector]:
        """Embed texts that no running call embeds; the call goes on if its caller is cancelled."""
        call = asyncio.create_task(self._call(texts))
        self._calls.update(dict.fromkeys(texts, call))
        return await asyncio.shield(call)

    async def _call(self, texts: list[str]) -> dict[str, Vector]:
        try:
            rows = await asyncio.to_thread(self.embedder.embed_passages, texts)
            # Copies: a view of one row would keep all rows in memory.
            vectors = {text: row.copy() for text, row in zip(texts, rows, strict=True)}
            self._awaited.update(vectors)
        finally:
            for text in texts:
                del self._calls[text]
        return vectors

    def _at_once(self, most: int) -> int:
        return _TEXTS_A_GENTLE_CALL if self._gently() else most

    async def split(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """Return each text's passages."""
        if not texts:
            return []
        return await asyncio.to_thread(lambda: [tuple(self.embedder.split(text)) for text in texts])

    def _take_cached(self, wanted: Sequence[str], vectors: dict[str, Vector]) -> list[str]:
        """Add cached vectors to ``vectors`` and mark them as reused; return the missing texts."""
        for text in wanted:
            for cache in (self._awaited, self._reused):
                if text in vectors:
                    break
                vector = cache.pop(text, None)
                if vector is not None:
                    vectors[text] = vector
                    self._reused[text] = vector
        return [text for text in wanted if text not in vectors]

    def _has(self, text: str) -> bool:
        return text in self._awaited or text in self._reused or text in self._calls


def _shorten(cache: OrderedDict[str, Vector], most: int) -> None:
    while len(cache) > most:
        cache.popitem(last=False)
