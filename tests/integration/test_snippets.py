"""What the pages for readers show is run: shell, Python and JSON of the quickstart, the tutorials and the clients' pages.

The blocks of a page run in order, in a folder, a home and a data folder of their own. A block of text behind one that
ran is what it must print: each of its lines. Programs of clients are played by a script that notes how it is called and
tries what it is to start: `python -m tests.clients` has the real ones.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.interfaces.serving import clean_env

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    [
        ROOT / "README.md",
        DOCS / "quickstart.md",
        *(DOCS / name for name in ("true-now.md", "recall.md", "forgetting.md")),
        *(DOCS / name for name in ("installing.md", "records.md", "hooks.md")),
        *(DOCS / "tutorials").glob("*.md"),
        *(DOCS / "clients").glob("*.md"),
    ]
)
MADE_BEFORE = ("README.md", "clients", "true-now.md", "recall.md", "forgetting.md")
"""Pages, or folders of pages, that begin with the entity `ana`."""
CLIENTS = ("claude", "codex", "gemini", "openclaw")
INSTALLERS = ("uvx", "uv", "pipx", "docker")
_BLOCK = re.compile(r"^(?:<!-- file: (\S+) -->\n)?```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
"""A block, and the file that it is, where the page has the reader write one: ``packs/`` is in the data folder."""
_LEFT_OUT = re.compile(r"^(?:scripts/|source ).*(?:&& source \S+)?.*$", re.MULTILINE)
"""Setting up, which has been done here."""
_PLAYED = """#!/bin/sh
echo "$(basename "$0") $*" >> "$HOME/called"
while [ $# -gt 0 ]; do
    if [ "$1" = pps ] && [ "$2" != pps ]; then break; fi  # docker's service is called pps too
    shift
done
[ $# -eq 0 ] || exec "$@" --help
"""


@dataclass(frozen=True)
class Reader:
    """Somebody who types what a page shows.

    Attributes:
        folder: Where they stand; also their home.
    """

    folder: Path
    env: dict[str, str]

    def run(self, *command: str) -> str:
        ended = subprocess.run(
            command,
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert ended.returncode == 0, f"{command[-1]}\n{ended.stdout}\n{ended.stderr}"
        return ended.stdout + ended.stderr


def reader(tmp_path: Path) -> Reader:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in (*CLIENTS, *INSTALLERS):
        (programs / name).write_text(_PLAYED)
        (programs / name).chmod(0o755)
    (programs / "pps").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pps "$@"\n')
    (programs / "pps").chmod(0o755)
    (programs / "python3").symlink_to(sys.executable)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    folder = tmp_path / "person"
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / ".venv" / "bin" / "pps").symlink_to(programs / "pps")
    quiet = {"PATH": path, "HOME": str(folder), "DISPLAY": "", "WAYLAND_DISPLAY": ""}
    return Reader(folder, clean_env(tmp_path / "home", **quiet))


def is_made_before(page: Path) -> bool:
    return page.name in MADE_BEFORE or page.parent.name in MADE_BEFORE


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_shows_can_be_typed_and_prints_what_it_says(page: Path, tmp_path: Path) -> None:
    person = reader(tmp_path)
    if is_made_before(page):
        person.run("pps", "init", "--yes")
        person.run("pps", "entity", "create", "ana")
    printed = ""
    blocks = _BLOCK.findall(page.read_text(encoding="utf-8"))
    assert blocks, "a page without anything to type"
    try:
        for number, (file, language, text) in enumerate(blocks):
            if file:
                written = Path(
                    person.env["PPS_HOME"] if file.startswith("packs/") else person.folder, file
                )
                written.parent.mkdir(exist_ok=True)
                written.write_text(text, encoding="utf-8")
            elif language == "bash":
                printed = person.run("bash", "-euc", _LEFT_OUT.sub("", text))
            elif language == "python":
                printed = person.run(sys.executable, "-c", text)
            elif language == "json":
                checked_json(person, text)
            elif language == "text" and blocks[number - 1][1] in ("bash", "python"):
                for line in text.strip().splitlines():
                    assert line in printed, f"{line!r} is not in what was printed:\n{printed}"
    finally:
        person.run("pps", "stop")


def checked_json(person: Reader, text: str) -> None:
    """Compare what a client is to start with what there is: the command is tried with ``--help``."""
    config = json.loads(text)
    [servers] = config.values()
    for server in servers.values():
        if "url" in server:
            assert server["url"].startswith("http://127.0.0.1:8377/mcp")
            continue
        command = server["command"]
        words = command if isinstance(command, list) else [command, *server["args"]]
        assert words[0] == "pps"
        assert "Serve the tools of an entity" in person.run(*words, "--help")


def test_each_client_has_a_page_and_each_page_a_place_in_the_table() -> None:
    table = (DOCS / "clients.md").read_text(encoding="utf-8")
    for page in (DOCS / "clients").glob("*.md"):
        assert f"(clients/{page.name})" in table
