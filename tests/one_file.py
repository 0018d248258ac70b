"""The store of one file an entity that the suite runs on: ``PPS_STORE=sqlite`` runs it on SQL tables."""

from __future__ import annotations

import os

from pps.entities.folder import GRAPH_FILES

ONE_FILE_STORE = os.environ.get("PPS_STORE", "embedded")
GRAPH_FILE = GRAPH_FILES[ONE_FILE_STORE]
"""The file of an entity's graph, in its folder ``data``."""
