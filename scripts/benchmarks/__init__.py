"""Measuring PPS on data that is not part of it, through the public verbs only."""

import pps.isolation  # noqa: F401 - it makes the first import of graphiti_core silent
