"""The thresholds of similarity that hold in one memory: its own where it was calibrated, else its model's."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import TypeAdapter

from pps.config.spaces import Thresholds, spaces
from pps.recall.search import Sources

_KEPT = TypeAdapter(dict[str, Thresholds])


def model_of(sources: Sources) -> str:
    """Return the name of the embedding model; empty without one."""
    return sources.embedder.fingerprint.model if sources.embedder else ""


async def thresholds(sources: Sources) -> dict[str, Thresholds]:
    """Return what holds by space, E1 to E13; a space without thresholds is left out."""
    own, model = await own_thresholds(sources), model_of(sources)
    return {
        id_: limits
        for id_, one in spaces().items()
        if (limits := one.threshold(model, own.get(id_)))
    }


async def own_thresholds(sources: Sources) -> dict[str, Thresholds]:
    """Return what was measured with this memory's own texts and the model in use; empty where nothing was."""
    kept = await sources.journal.get_meta(_key(sources))
    return _KEPT.validate_json(kept) if kept else {}


async def keep_thresholds(sources: Sources, found: Mapping[str, Thresholds]) -> None:
    """Keep a memory's own, in place of those it had for the model in use."""
    await sources.journal.set_meta(_key(sources), _KEPT.dump_json(dict(found)).decode())


def _key(sources: Sources) -> str:
    return f"thresholds:{model_of(sources)}"
