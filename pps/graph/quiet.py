"""Import this before anything of ``graphiti_core``: it makes that first import silent and free of side effects.

Graphiti reports usage by default, and at import it loads whatever ``.env`` lies in a parent folder into the
environment of the process. Neither may happen: settings come from ``pps.config`` alone.
"""

from __future__ import annotations

import os
import warnings

import dotenv

os.environ["GRAPHITI_TELEMETRY_ENABLED"] = "false"  # read when a Graphiti is made, so it has to stay


def _load_nothing(*_: object, **__: object) -> bool:
    return False


# Only while Graphiti is imported: a program that uses PPS may want dotenv for itself.
_load_dotenv, dotenv.load_dotenv = dotenv.load_dotenv, _load_nothing
try:
    with warnings.catch_warnings():
        # Its models still declare their settings in Pydantic's old way; nobody here can change that.
        warnings.simplefilter("ignore", DeprecationWarning)
        import graphiti_core as graphiti_core
finally:
    dotenv.load_dotenv = _load_dotenv
