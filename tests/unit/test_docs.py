"""The documents say what the program does: commands, tools, settings, the README's tables and links."""

from __future__ import annotations

import re
from pathlib import Path

import typer.main

from pps.surfaces.cli.main import build
from pps.verbs.all import VERBS
from tests.reference import PAGE, page

ROOT = PAGE.parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_reference_is_what_scripts_docs_would_write() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run scripts/docs"


def test_the_readme_names_every_command_and_every_tool() -> None:
    commands = getattr(typer.main.get_command(build()), "commands", {})
    for name in commands:
        assert f"pps {name}" in README, f"the README does not name `pps {name}`"
    for verb in VERBS.values():
        assert f"`{verb.name}`" in README, f"the README does not name the tool {verb.name}"


def test_every_link_and_script_in_the_documents_leads_somewhere() -> None:
    for document in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        text = document.read_text(encoding="utf-8")
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"
        for script in re.findall(r"(?<![\w/])scripts/[a-z_0-9]+(?:\.py)?", text):
            assert (ROOT / script).is_file(), f"{document.name} names {script}"


def test_no_document_or_code_names_a_path_of_somebodys_machine() -> None:
    for path in (*sorted(ROOT.glob("pps/**/*.py")), *sorted(Path(ROOT / "docs").rglob("*.md")), ROOT / "README.md"):
        assert not re.search(r"/(?:home|Users)/\w+/", path.read_text(encoding="utf-8")), path
