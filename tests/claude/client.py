"""The real Claude Code, run by hand of a test: with a model of its own, a home of its own, and no way out."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import pty
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

_KEY = "sk-ant-no-key-at-all-000000000000"
_QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL": "1",
    "CLAUDE_CODE_MCP_STARTUP_WAIT_MS": "60000",  # on a loaded machine its own few seconds end before a server is there
    "HTTPS_PROXY": "http://127.0.0.1:9",  # nobody is there: what goes elsewhere goes nowhere
    "HTTP_PROXY": "http://127.0.0.1:9",
    "NO_PROXY": "127.0.0.1,localhost",
}
_PROGRAMS = ("bash", "cat", "echo", "env", "ls", "sh", "true", "wc")
"""All that it finds in its PATH: no ssh and no git, with which it would ask the world for plugins."""
_PROMPT = "❯".encode()
_PASTE, _PASTED = "\x1b[200~", "\x1b[201~"


def bundled() -> Path:
    """Return the program that lies in the package ``claude-agent-sdk``."""
    found = importlib.util.find_spec("claude_agent_sdk")
    assert found is not None, "claude-agent-sdk is not installed; run scripts/setup all"
    assert found.origin is not None
    return Path(found.origin).parent / "_bundled" / "claude"


@dataclass
class Claude:
    """Claude Code in a project, whose model is at an address of the loopback.

    Attributes:
        program: The program ``claude``.
        home, project: Its home folder, and the project that it works in; they are made.
        model_url: Where its model answers.
        arguments: Given to every run, before those of the run.
        env: More of the environment.
    """

    program: Path
    home: Path
    project: Path
    model_url: str
    arguments: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        self.project.mkdir(parents=True, exist_ok=True)
        known = self.home / ".claude.json"
        known.parent.mkdir(parents=True, exist_ok=True)
        found = json.loads(known.read_text()) if known.exists() else {}
        projects = found.get("projects", {})
        trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        answers = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "customApiKeyResponses": {"approved": [_KEY[-20:]], "rejected": []},
            "projects": {**projects, str(self.project): trusted},
        }
        known.write_text(json.dumps({**found, **answers}))
        self._programs.mkdir(exist_ok=True)
        for name in _PROGRAMS:
            if not (self._programs / name).exists():
                (self._programs / name).symlink_to(shutil.which(name) or "/bin/false")

    @property
    def _programs(self) -> Path:
        return self.home / ".programs"

    @property
    def version(self) -> str:
        """The program's version, such as ``2.1.330``."""
        told = subprocess.run(
            [self.program, "--version"],
            env=self.env_of_its_own(),
            capture_output=True,
            check=True,
            timeout=60,
        )
        return told.stdout.decode().split()[0]

    def prints(self, prompt: str, *arguments: str) -> str:
        """Run ``claude -p`` with a prompt on its stdin; return what it printed."""
        ended = subprocess.run(
            self._command("-p", *arguments),
            env=self.env_of_its_own(),
            cwd=self.project,
            input=prompt.encode(),
            capture_output=True,
            timeout=120,
            check=False,
        )
        assert ended.returncode == 0, (ended.stdout + ended.stderr).decode()[-2000:]
        return ended.stdout.decode()

    @contextlib.contextmanager
    def in_terminal(self, *arguments: str) -> Iterator[Terminal]:
        """Run ``claude`` in a terminal, as a person does; it is killed when the block ends before it does."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            self._command(*arguments),
            env={
                **self.env_of_its_own(),
                "TERM": "xterm-256color",
                "COLUMNS": "120",
                "LINES": "40",
            },
            cwd=self.project,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        terminal = Terminal(process, ours)
        try:
            yield terminal
        finally:
            process.kill()
            process.wait()
            terminal.close()

    def _command(self, *arguments: str) -> list[str]:
        return [str(self.program), *self.arguments, *arguments]

    def env_of_its_own(self) -> dict[str, str]:
        """The environment that it runs in: nothing of this process's."""
        kept = {
            "PATH": str(self._programs),
            "LANG": "C.UTF-8",
            "IS_SANDBOX": "1",
            "HOME": str(self.home),
        }
        model = {"ANTHROPIC_BASE_URL": self.model_url, "ANTHROPIC_API_KEY": _KEY}
        return {**kept, **_QUIET, **model, **self.env}


class Terminal:
    """A terminal that Claude Code runs in: keys go in, and what it shows is read away."""

    def __init__(self, process: subprocess.Popen[bytes], keys: int) -> None:
        self.process = process
        self.shown = bytearray()
        self._keys = keys
        self._reader = threading.Thread(target=self._read, name="terminal")
        self._reader.start()

    def settle(self, timeout_s: float = 60.0) -> None:
        """Wait until the program has shown where one types, and shows nothing new."""
        until = time.monotonic() + timeout_s
        before = -1
        while _PROMPT not in self.shown or len(self.shown) != before:
            assert time.monotonic() < until, bytes(self.shown[-2000:])
            before = len(self.shown)
            time.sleep(0.5)

    def press(self, keys: str) -> None:
        """Press keys, a moment apart from those before, so that the program takes them one after the other."""
        time.sleep(0.3)
        os.write(self._keys, keys.encode())

    def enters(self, text: str) -> None:
        """Type one line and press Enter."""
        self.press(text)
        self.press("\r")

    def pastes(self, text: str) -> None:
        """Paste a text, as a terminal does, and press Enter."""
        self.press(f"{_PASTE}{text}{_PASTED}")
        self.press("\r")

    def close(self) -> None:
        """Stop reading."""
        self._reader.join(10)
        os.close(self._keys)

    def _read(self) -> None:
        with contextlib.suppress(
            OSError
        ):  # how a terminal without a program on the other side ends
            while piece := os.read(self._keys, 65_536):
                self.shown += piece
