"""Who has a memory here: the registry, entities' folders, tokens that open them, projects that lead to them."""

from __future__ import annotations

from pps.entities.deletions import Deletion
from pps.entities.folder import Entry
from pps.entities.registry import Created, Registry
from pps.entities.routing import MappedFolder, Router, RouterEntry

__all__ = ["Created", "Deletion", "Entry", "MappedFolder", "Registry", "Router", "RouterEntry"]
