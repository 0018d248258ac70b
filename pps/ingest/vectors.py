"""Passage vectors with a small memory, so that a text met twice in a batch is embedded once."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence

import numpy as np

from pps.models.protocols import Embedder, Matrix, Vector

_KEPT = 2_048
_GENTLE = 8
"""Texts that are few enough for one thread."""


class PassageVectors:
    """Embeds passages in one call a batch; keeps the latest 2,048 vectors (3 MB at 384 dimensions).

    Args:
        embedder: What embeds them.
        gently: Asked before each call; while it says so, calls are of a few texts. A model that works in this process
            then leaves the other cores to acknowledgements, which would wait for theirs else.
    """

    def __init__(self, embedder: Embedder, gently: Callable[[], bool] = lambda: False) -> None:
        self.embedder = embedder
        self._gently = gently
        self._kept: OrderedDict[str, Vector] = OrderedDict()

    async def of(self, texts: Sequence[str]) -> dict[str, Vector]:
        """Return the vector of each distinct text."""
        wanted = list(dict.fromkeys(texts))
        found = {text: self._kept[text] for text in wanted if text in self._kept}
        missing = [text for text in wanted if text not in found]
        while missing:
            count = _GENTLE if self._gently() else len(missing)
            texts, missing = missing[:count], missing[count:]
            rows = await asyncio.to_thread(self.embedder.embed_passages, texts)
            found.update(zip(texts, rows, strict=True))
            self._keep(texts, rows)
        return found

    async def passages(self, texts: Sequence[str]) -> list[tuple[tuple[str, ...], Matrix]]:
        """Return each text's passages and one vector a passage, shape (passages, dimension)."""
        split = await asyncio.to_thread(lambda: [tuple(self.embedder.split(text)) for text in texts])
        vectors = await self.of([passage for passages in split for passage in passages])
        width = self.embedder.fingerprint.dimension
        empty = np.zeros((0, width), dtype=np.float32)
        return [(ps, np.stack([vectors[p] for p in ps]) if ps else empty) for ps in split]

    def _keep(self, texts: Sequence[str], rows: Matrix) -> None:
        for text, row in zip(texts, rows, strict=True):
            self._kept[text] = row
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
