"""A stand-in for a command that reads turns: what it was asked it keeps, and it answers by a script.

    python stand_in.py FOLDER

``FOLDER/script.json`` is a list of facts, each with ``said``: words of the turns that it is about; a fact is answered
when a turn of the prompt has them. ``{"do": "…"}`` in it does something else: ``sleep``, ``hold``, ``fail``, ``flood``,
``prose``.
Each prompt is kept as ``FOLDER/asked-N.txt``, and what the environment had of ours in ``FOLDER/env-N.txt``.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path


def main(folder: Path) -> None:
    """Answer the prompt on stdin."""
    prompt = sys.stdin.read()
    number = len(list(folder.glob("asked-*.txt")))
    (folder / f"asked-{number}.txt").write_text(prompt)
    ours = [name for name in os.environ if name.startswith(("PPS_", "NEO4J_"))]
    (folder / f"env-{number}.txt").write_text(
        "\n".join([str(Path.cwd()), *(one.name for one in Path.cwd().iterdir()), *sorted(ours)])
    )
    script = json.loads((folder / "script.json").read_text())
    turns = [json.loads(line) for line in prompt.partition("\nTurns:\n")[2].splitlines()]
    for one in script:
        if "do" in one:
            act(one["do"], folder)
    facts = [
        {**one, "turns": one.get("turns") or numbers(turns, one["said"])}
        for one in script
        if "said" in one
    ]
    answer = {"nodes": nodes(script), "facts": [one for one in facts if one["turns"]]}
    sys.stdout.write(f"Here it is:\n{json.dumps(answer)}")


def numbers(turns: list[dict[str, object]], said: object) -> list[object]:
    words = said if isinstance(said, list) else [said]
    return [turn["turn"] for turn in turns if any(str(one) in str(turn["text"]) for one in words)]


def nodes(script: list[dict[str, object]]) -> list[object]:
    return [one["node"] for one in script if "node" in one]


def act(what: str, folder: Path) -> None:
    if what == "sleep":
        time.sleep(60)
    elif what == "hold":
        while not (folder / "go").exists():
            time.sleep(0.02)
    elif what == "fail":
        sys.exit(3)
    elif what == "flood":
        sys.stdout.write("x" * 2_000_000)
    elif what == "prose":
        sys.stdout.write("I could not find any facts, sorry.")
        sys.exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
