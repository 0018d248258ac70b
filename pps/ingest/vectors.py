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
    """Embeds passages in one call a batch; keeps those of the latest call, and of 2,048 texts (3 MB) at least.

    Args:
        embedder: What embeds them.
        gently: Asked before each call; while it says so, calls are of a few texts. A model that works in this process
            then leaves the other cores to acknowledgements, which would wait for theirs else.
    """

    def __init__(self, embedder: Embedder, gently: Callable[[], bool] = lambda: False) -> None:
        self.embedder = embedder
        self._gently = gently
        self._kept: OrderedDict[str, Vector] = OrderedDict()

    async def of(self, texts: Sequence[str], soon: Sequence[str] = ()) -> dict[str, Vector]:
        """Return the vector of each distinct text.

        Args:
            texts: Each short enough for the model.
            soon: Texts of any length whose ``passages`` are asked for next: one call embeds them too.
        """
        wanted = list(dict.fromkeys([*texts, *(part for parts in await self._split(soon) for part in parts)]))
        found = {text: self._kept[text] for text in wanted if text in self._kept}
        missing = [text for text in wanted if text not in found]
        while missing:
            count = _GENTLE if self._gently() else len(missing)
            texts, missing = missing[:count], missing[count:]
            rows = await asyncio.to_thread(self.embedder.embed_passages, texts)
            found.update(zip(texts, rows, strict=True))
            self._keep(texts, rows, most=max(_KEPT, len(wanted)))
        return found

    async def passages(self, texts: Sequence[str]) -> list[tuple[tuple[str, ...], Matrix]]:
        """Return each text's passages and one vector a passage, shape (passages, dimension)."""
        split = await self._split(texts)
        vectors = await self.of([passage for passages in split for passage in passages])
        width = self.embedder.fingerprint.dimension
        empty = np.zeros((0, width), dtype=np.float32)
        return [(ps, np.stack([vectors[p] for p in ps]) if ps else empty) for ps in split]

    async def _split(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        if not texts:
            return []
        return await asyncio.to_thread(lambda: [tuple(self.embedder.split(text)) for text in texts])

    def _keep(self, texts: Sequence[str], rows: Matrix, most: int) -> None:
        for text, row in zip(texts, rows, strict=True):
            self._kept[text] = row
        while len(self._kept) > most:
            self._kept.popitem(last=False)
