"""How a process finds, starts and talks to the one server of a data folder. Standard library only."""

from __future__ import annotations

from pps.server.link import Link
from pps.server.lock import file_lock
from pps.server.runfile import RunFile
from pps.server.start import connect, stop

__all__ = ["Link", "RunFile", "connect", "file_lock", "stop"]
