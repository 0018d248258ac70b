"""Who has a memory here: the registry, entities' folders, tokens that open them, projects that lead to them."""

from __future__ import annotations

from pps.entities.deletions import Deletion
from pps.entities.registry import Created, Entry, Registry
from pps.entities.routers import Router, RouterEntry, Routers
from pps.entities.routes import ProjectRoute, Routes
from pps.entities.watched import Watched, WatchedFolder

__all__ = [
    "Created",
    "Deletion",
    "Entry",
    "ProjectRoute",
    "Registry",
    "Router",
    "RouterEntry",
    "Routers",
    "Routes",
    "Watched",
    "WatchedFolder",
]
