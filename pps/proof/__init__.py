"""The adversarial set: what ``proof`` throws at entities that were made for it, and how a leak is seen."""

from pps.isolation import (
    quiet as quiet,  # it makes the first import of graphiti_core silent, so it comes first
)
