"""The truth: SQL tables of one entity's graph; turns, jobs and records are in ``pps.journal``."""
