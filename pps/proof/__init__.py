"""The adversarial set: attacks on entities that are made for it, and the detection of leaks."""

from pps.isolation import (
    quiet as quiet,  # it makes the first import of graphiti_core silent, so it comes first
)
