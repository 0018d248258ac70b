"""What a command that reads turns says and is told is nobody's memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from pps.config import INSIDE
from pps.ingest.extraction import MARK
from pps.interfaces.cli.client_settings import program
from pps.server import spool
from tests.integration.hooks.acting import PATIENT
from tests.integration.interfaces.serving import Served, pps

REFUSED = "conversations of the program that reads turns for this memory"


def test_transcripts_and_prompts_of_the_extractor_are_nobodys_memory(
    served: Served, tmp_path: Path
) -> None:
    said = {
        "type": "user",
        "sessionId": "s",
        "uuid": "u",
        "message": {"role": "user", "content": f"{MARK}\nWrite."},
    }
    (tmp_path / "own.jsonl").write_text(json.dumps(said))
    served.create("reader")
    found = served.link.call(
        "import", "", {"entity": "reader", "paths": [str(tmp_path / "own.jsonl")]}
    )["data"]
    assert (found["turns"], found["passed"]) == (0, {REFUSED: 1})
    for prompt, env in ((f"{MARK}\nWrite.", {}), ("Said inside an extractor.", {INSIDE: "1"})):
        command = [
            sys.executable,
            "-I",
            "-S",
            str(PATIENT),
            str(program()),
            "UserPromptSubmit",
            "--entity",
            "reader",
        ]
        told = json.dumps({"session_id": "s", "cwd": str(tmp_path), "prompt": prompt}).encode()
        hook = subprocess.run(
            [*command, "--home", str(served.home)],
            input=told,
            env=env,
            capture_output=True,
            check=True,
        )
        assert (hook.stdout, hook.stderr) == (b"", b"")
    assert served.link.call("stats", "reader", {})["data"]["turns"] == 0
    assert not spool.waiting(served.home)
    inside = pps({**served.env, INSIDE: "1"}, "mcp", "--entity", "reader", given="")
    assert (inside.returncode, inside.stdout) == (0, "")
