"""What a stranger meets first: changelog, policies, templates, workflows. They agree with the project and each other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from pps import __version__

ROOT = Path(__file__).parents[2]
PAGES = ("CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md")


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def read_yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_the_changelog_keeps_its_form() -> None:
    text = read("CHANGELOG.md")
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    for heading in headings[1:]:
        assert re.fullmatch(r"\[\d+\.\d+\.\d+\](?: - \d{4}-\d{2}-\d{2})?", heading), heading
    assert f"[{__version__}]" in text
    kinds = set(re.findall(r"^### (.*)$", text, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    for heading in headings:
        name = re.match(r"\[[^]]+\]", heading)
        assert name
        assert re.search(rf"^{re.escape(name[0])}: https://", text, re.MULTILINE), name[0]
    unreleased = text.split("## [Unreleased]")[1].split("\n## ")[0]
    before_first_kind = unreleased.split("### ")[0]
    assert not before_first_kind.strip(), "every entry stands under its kind"


@pytest.mark.parametrize("page", PAGES)
def test_links_of_the_projects_pages_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", read(page)):
        assert (ROOT / target).exists(), f"{page} links to {target}"


def test_contributing_says_how_to_add_an_operation_by_files_that_are_there() -> None:
    text = read("docs/contributing.md")
    for heading in ("Where things lie", "Add an operation", "Add a feature", "Words", "Tests"):
        assert f"\n## {heading}\n" in text
    for path in re.findall(r"`((?:pps|tests|config|docs|scripts)/[\w/.-]+)`", text):
        if not any(mark in path for mark in ("COMMIT", "NAME")):
            assert (ROOT / path).exists(), path
    surfaces = read("tests/isolation/test_surfaces.py")
    verbs = read("tests/isolation/test_verbs.py")
    assert "\nTOOL_ATTACKS" in surfaces
    assert "\nCOMMAND_ATTACKS" in surfaces
    assert "\nARGUMENTS" in verbs


def test_the_workflows_call_the_projects_own_scripts_and_have_few_rights() -> None:
    workflows = {path.name: read_yaml(path) for path in (ROOT / ".github/workflows").glob("*.yml")}
    assert workflows.keys() == {"ci.yml", "release.yml"}
    commands = [
        step["run"]
        for workflow in workflows.values()
        for job in workflow["jobs"].values()
        for step in job["steps"]
        if "run" in step
    ]
    assert "bash .ci/run" in commands
    assert "scripts/package" in commands
    for command in commands:
        for script in re.findall(r"(?<![\w/])(?:scripts/\w+|\.ci/\w+)", command):
            assert (ROOT / script).exists(), script
    assert workflows["ci.yml"]["permissions"] == {"contents": "read"}
    for workflow in workflows.values():
        for job in workflow["jobs"].values():
            assert job["timeout-minutes"] <= 120
            for step in job["steps"]:
                if "uses" in step:
                    assert re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"]), step["uses"]


def test_the_forms_of_issues_ask_for_what_helps_and_send_leaks_elsewhere() -> None:
    folder = ROOT / ".github" / "ISSUE_TEMPLATE"
    bug = read_yaml(folder / "bug.yml")
    assert "SECURITY.md" in bug["body"][0]["attributes"]["value"]
    assert read_yaml(folder / "config.yml") == {"blank_issues_enabled": False}
    for form in (bug, read_yaml(folder / "idea.yml")):
        assert {"name", "description", "body"} <= form.keys()
        ids = [field["id"] for field in form["body"] if field["type"] != "markdown"]
        assert len(set(ids)) == len(ids)


def test_the_hooks_of_pre_commit_run_what_the_set_up_installed() -> None:
    [repository] = read_yaml(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    for hook in repository["hooks"]:
        assert hook["language"] == "system"
        assert (ROOT / hook["entry"].split()[0]).exists(), hook["entry"]
