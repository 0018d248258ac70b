"""Taking in what other programs kept: each format is read into the messages that ``remember`` takes."""

from pps.ingest.importing.chat import TurnLine, read_lines

__all__ = ["TurnLine", "read_lines"]
