"""How a process finds, starts and talks to the one server of a data folder. Standard library only."""

from __future__ import annotations

from pps.link.client import Link
from pps.link.lock import file_lock
from pps.link.runfile import RunFile
from pps.link.start import connect, stop

__all__ = ["Link", "RunFile", "connect", "file_lock", "stop"]
