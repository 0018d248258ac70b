"""The boundary: all that touches an entity's graph goes through here, and nothing of another entity does."""

from pps.isolation import (
    quiet as quiet,  # it makes the first import of graphiti_core silent, so it comes first
)
