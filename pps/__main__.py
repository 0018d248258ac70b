"""``pps`` and ``python -m pps``: the surfaces put together, so that none imports another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pps.config import Settings


def main() -> None:
    """Run the command line; a server or a bridge is imported only when it is asked for."""
    from pps.core.footprint import end_at_once, few_arenas, loading, one_thread_a_sum

    few_arenas()
    one_thread_a_sum()
    end_at_once()

    with loading():
        from pps.interfaces.cli.machine import Runners
        from pps.interfaces.cli.main import run

    run(Runners(serve=_serve, bridge=_bridge, projects=_projects))


def _serve(settings: Settings, auto: bool) -> None:
    from pps.core.footprint import loading

    with loading():
        from pps.interfaces.serve import serve

    serve(settings, auto=auto)


def _bridge(home: Path, entity: str, toolset: str, actor: str) -> None:
    from pps.interfaces.mcp.bridge import serve_stdio

    serve_stdio(home, entity, toolset, actor)


def _projects(home: Path, roots: list[str]) -> None:
    from pps.interfaces.mcp.bridge import serve_projects

    serve_projects(home, roots)


if __name__ == "__main__":
    main()
