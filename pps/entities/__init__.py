"""Who has a memory here: the registry, entities' folders and the tokens that open them."""

from __future__ import annotations

from pps.entities.registry import Created, Entry, Registry
from pps.entities.routes import ProjectRoute, Routes

__all__ = ["Created", "Entry", "ProjectRoute", "Registry", "Routes"]
