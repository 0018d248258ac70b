"""The drivers under the boundary, for whoever opens and closes them; only the client runs statements on one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from graphiti_core.driver.driver import GraphDriver


@dataclass(frozen=True, slots=True)
class EntityDriver:
    """The driver that an entity's client is opened on, and how to give it back."""

    driver: GraphDriver
    store: Literal["embedded", "neo4j"]
    close: Callable[[], Awaitable[None]]
