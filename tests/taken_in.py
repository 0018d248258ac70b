"""Waits until a served memory has taken in all that it was told, however busy the machine is."""

from __future__ import annotations

from tests.integration.interfaces.serving import Served
from tests.waiting import wait_until


def wait_until_taken_in(served: Served, entity: str) -> None:
    """Wait until no turn and no index entry of an entity is unfinished."""

    def is_done() -> bool:
        stats = served.link.call("stats", entity, {})["data"]
        return not stats["unfinished_jobs"] and not stats["index_lag"]

    wait_until(is_done)
