"""Measuring PPS on data that is not part of it, through the public verbs only."""
