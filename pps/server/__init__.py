"""How a process finds, starts and talks to the one server of a data folder.

Standard library only.
"""

from __future__ import annotations

from pps.server.link import Link, connect, find, stop
from pps.server.runfile import RunFile

__all__ = ["Link", "RunFile", "connect", "find", "stop"]
