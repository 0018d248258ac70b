"""Query vectors kept for a while: an agent asks about one text through several channels and turns."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

from pps.models.protocols import Embedder, Fingerprint, Matrix, Vector

_Key = tuple[Fingerprint, str]


class CachedEmbedder:
    """An embedder whose query vectors are kept for 15 minutes, least recently used out first.

    The key is the model's fingerprint and the text, so one model's vector never answers for
    another's. Vectors are read-only. Safe to call from several threads; two that ask for the same
    new text at once may both compute it.

    Args:
        embedder: The model behind it.
        size: Most vectors kept; 1,024 of 384 dimensions take 1.6 MB.
        ttl_s: Seconds that a vector is kept after it was computed.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        embedder: Embedder,
        *,
        size: int = 1024,
        ttl_s: float = 900.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._embedder = embedder
        self._size = size
        self._ttl_s = ttl_s
        self._clock = clock
        self._kept: OrderedDict[_Key, tuple[float, Vector]] = OrderedDict()
        self._lock = threading.Lock()
        self.hits = 0
        self.misses = 0

    @property
    def fingerprint(self) -> Fingerprint:
        """That of the model behind it."""
        return self._embedder.fingerprint

    def embed_query(self, text: str) -> Vector:
        """Return the query's vector, computed at most ``ttl_s`` seconds ago; read-only."""
        key = (self._embedder.fingerprint, text)
        found = self._find(key)
        if found is not None:
            return found
        vector = self._embedder.embed_query(text)
        vector.setflags(write=False)
        self._keep(key, vector)
        return vector

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Return the passages' vectors, not kept."""
        return self._embedder.embed_passages(texts)

    def split(self, text: str) -> list[str]:
        """Return the text cut to the model's window."""
        return self._embedder.split(text)

    def close(self) -> None:
        """Close the model underneath."""
        self._embedder.close()

    def _find(self, key: _Key) -> Vector | None:
        with self._lock:
            kept = self._kept.get(key)
            if kept is None or kept[0] <= self._clock():
                self._kept.pop(key, None)
                self.misses += 1
                return None
            self._kept.move_to_end(key)
            self.hits += 1
            return kept[1]

    def _keep(self, key: _Key, vector: Vector) -> None:
        with self._lock:
            self._kept[key] = (self._clock() + self._ttl_s, vector)
            self._kept.move_to_end(key)
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)
