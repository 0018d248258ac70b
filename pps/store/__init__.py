"""The truth: SQL tables of one entity. So far its graph; turns, jobs and records are still in ``pps.journal``."""
