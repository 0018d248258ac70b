"""Runs the program of the hooks with more time than Claude Code gives it: ``patient_hook.py PROGRAM EVENT ...``.

For tests of what a hook says and keeps. Those of its deadlines run the program itself.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

MORE_S = 60.0


def main() -> None:
    program = sys.argv.pop(1)
    hook = ModuleType("pps_hook")
    exec(compile(Path(program).read_text("utf-8"), program, "exec"), vars(hook))  # noqa: S102
    hook.DEADLINES_S = {event: given_s + MORE_S for event, given_s in hook.DEADLINES_S.items()}
    hook.HANDED_ON_S += MORE_S
    hook.run()


main()
