"""Measuring PPS on data that is not part of it, through the public verbs only."""

from pps.isolation import quiet as quiet  # it makes the first import of graphiti_core silent
