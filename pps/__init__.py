"""PPS: a private, lasting memory for AI agents. Cheap to import; `pps.open` loads the rest."""

from __future__ import annotations

__version__ = "0.1.0"
