"""Record what Claude Code sends to its hooks: play the scenes of tests/claude/scenes.py in the real program.

    python -m tests.claude CLAUDE [--into FOLDER] [--home FOLDER] [--scene NAME]

CLAUDE is the path of the program. Its model is played by this process, on the loopback, and it is told to reach
nothing else; to be sure, give the recording a network of its own:

    unshare --net --mount sh -c 'mount -t tmpfs none /home; ip link set lo up; python -m tests.claude CLAUDE'

HOME's name gets into the recordings, so it is a neutral one, and it must not be there yet. Each scene becomes a
folder of FOLDER: ``NN-EVENT.json`` is the payload to the byte, ``NN-EVENT.jsonl`` what its transcript had grown by
since the event before, both without what the client itself has to say (tests/claude/trim.py).
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
from pathlib import Path

from pps.interfaces.cli.client_settings import CLAUDE, hook_clients, program
from tests.claude import trim
from tests.claude.client import Claude
from tests.claude.model import talking_model
from tests.claude.scenes import SCENES, Stage, script

RECORDED = Path(__file__).parents[1] / "integration" / "hooks" / "recorded"
_ALLOWED = "--allowedTools=Bash,Agent,mcp__plugin_pps_memory"


def main() -> None:
    """Record what is asked for."""
    asked = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asked.add_argument("claude", type=Path, help="the program claude")
    asked.add_argument("--into", type=Path, default=RECORDED, help="where the recordings go")
    asked.add_argument(
        "--home",
        type=Path,
        default=Path("/home/ana"),
        help="the home folder; made, and removed again",
    )
    asked.add_argument(
        "--scene", choices=SCENES, action="append", help="only this one; all unless said"
    )
    given = asked.parse_args()
    for scene in given.scene or SCENES:
        if given.home.exists():
            sys.exit(f"{given.home} is there already; name another folder with --home")
        try:
            record(scene, given.claude.resolve(), given.home, given.into)
        finally:
            shutil.rmtree(given.home, ignore_errors=True)


def record(scene: str, claude: Path, home: Path, into: Path) -> None:
    """Play a scene, and write down its events in their order."""
    notes = home / ".taken"
    notes.mkdir(parents=True)
    version = _play(scene, claude, home, notes)
    folder = into / scene
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "version").write_text(version + "\n")
    known: dict[str, str] = {}
    for number, taken in enumerate(sorted(notes.glob("*.json")), 1):
        name = f"{number:02d}-{taken.stem.split('-')[1]}"
        (folder / f"{name}.json").write_bytes(trim.payload(taken.read_bytes()))
        path = json.loads(taken.read_bytes())["transcript_path"]
        lines = taken.with_suffix(".jsonl")
        if grown := _grown(known, path, lines.read_text() if lines.exists() else ""):
            (folder / f"{name}.jsonl").write_text(trim.transcript(grown))
    print(f"{scene}: {len(list(folder.glob('*.json')))} events of Claude Code {version}")  # noqa: T201 - a command


def _play(scene: str, claude: Path, home: Path, notes: Path) -> str:
    """Play a scene with a memory of its own for the plugin; return the client's version."""
    settings = home / "hooks.json"
    settings.write_text(json.dumps(_settings(notes)))
    held = {"Bake the bread": threading.Event()}
    with talking_model(script(home / "kitchen"), held=held) as model:
        plugin = str(program().parents[1])
        arguments = (
            "--settings",
            str(settings),
            "--plugin-dir",
            plugin,
            "--permission-mode",
            "acceptEdits",
            _ALLOWED,
        )
        env = {"PPS_HOME": str(home / "pps"), "PPS_EMBEDDER__NAME": "hash", "PPS_SERVER__PORT": "0"}
        client = Claude(claude, home, home / "kitchen", model.url, arguments, env)
        _pps(env, "entity", "create", "kitchen")
        try:
            SCENES[scene](Stage(client, model, lambda: _events(notes)))
        finally:
            _pps(env, "serve", "--stop")
        return client.version


def _grown(known: dict[str, str], path: str, now: str) -> str:
    """Return what a transcript has grown by since the last event, up to its last whole line."""
    now, before = now[: now.rfind("\n") + 1], known.get(path, "")
    if not now.startswith(before):
        raise SystemExit(f"{path} was written anew: recordings cannot say that yet")
    known[path] = now
    return now[len(before) :]


def _settings(notes: Path) -> dict[str, object]:
    hook = [sys.executable, str(Path(__file__).with_name("take.py")), str(notes)]
    return {
        "hooks": {
            event: [
                {
                    "hooks": [
                        {"type": "command", "command": shlex.join([*hook, event]), "timeout": 20}
                    ]
                }
            ]
            for event in hook_clients()[CLAUDE].events
        },
        "pluginConfigs": {
            "pps@inline": {"options": {"python": sys.executable, "entity": "kitchen"}}
        },
    }


def _pps(env: dict[str, str], *arguments: str) -> None:
    command = [sys.executable, "-m", "pps", *arguments]
    subprocess.run(command, env={**os.environ, **env}, check=True, timeout=60, capture_output=True)


def _events(notes: Path) -> list[str]:
    return [one.stem.split("-")[1] for one in sorted(notes.glob("*.json"))]


if __name__ == "__main__":
    main()
