"""Ports for servers of tests that stop and start again at the same address."""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path

_CHOSEN_BY_THE_SYSTEM = Path("/proc/sys/net/ipv4/ip_local_port_range")


def lasting_port() -> int:
    """Return a free port that nobody is given who asks for any: it stays free while its server is away."""
    first = int(_CHOSEN_BY_THE_SYSTEM.read_text(encoding="utf-8").split()[0])
    for port in random.sample(range(min(10_000, first - 2_000), first), 1_000):
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")
