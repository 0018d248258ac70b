"""The boundary: every access to an entity's graph goes through this package."""

from pps.isolation import (
    quiet as quiet,  # it makes the first import of graphiti_core silent, so it comes first
)
