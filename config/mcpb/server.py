"""The entry point of the bundle for MCP clients: makes the entity that is set, where it is not there, and serves it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Serve the entity of ``PPS_ENTITY`` on stdin and stdout."""
    entity = os.environ.get("PPS_ENTITY", "").strip()
    pps = [sys.executable, "-m", "pps"]
    create = [*pps, "entity", "create", "--", entity]
    # Clients log stderr, and what it prints holds a token.
    created = subprocess.run(  # noqa: S603 - our own program
        create, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False
    )
    if created.returncode:
        sys.exit(created.returncode)
    os.execv(sys.executable, [*pps, "mcp", "--entity", entity])  # noqa: S606 - our own program


if __name__ == "__main__":
    main()
