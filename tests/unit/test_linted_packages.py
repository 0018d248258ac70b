"""Published linters find nothing in what is given out: container and compose files, plugins, skill and MCP manifest."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import packages

ROOT = Path(__file__).parents[2]
PLUGINS = ("plugin.json", "mcp.json", "skills", ".claude-plugin", "config/claude")
"""What agents and clients read of a checkout, beside ``server.json``."""


def run(program: str, *arguments: str, folder: Path = ROOT) -> str:
    """Run a linter of the requirement set ``dev``, which must end well, and return what it printed."""
    ended = subprocess.run(
        [str(Path(sys.executable).with_name(program)), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_hadolint_finds_nothing_in_the_container_file() -> None:
    assert run("hadolint", "--failure-threshold", "style", "Dockerfile") == ""


def test_compose_lint_finds_nothing_of_weight_in_the_compose_files() -> None:
    # CL-0007: Neo4j writes into its own folders; PPS runs on a read-only file system.
    for file, allowed in (("compose.yaml", set[str]()), ("config/compose.yaml", {"CL-0007"})):
        report = json.loads(run("compose-lint", "check", "--format", "json", "--no-env", file))
        assert {finding["rule_id"] for finding in report["findings"]} <= allowed, report


def test_skillsaw_finds_nothing_in_plugins_skill_and_the_manifest_of_a_release(
    tmp_path: Path,
) -> None:
    given_out = tmp_path / "pps"
    given_out.mkdir()
    for name in PLUGINS:
        source, target = ROOT / name, given_out / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)
    bundle = packages.build_bundle(tmp_path / "dist")
    packages.write_release_manifest(given_out, bundle)  # the checkout's server.json has no hash yet
    report = run("skillsaw", "lint", "--strict", "--no-progress", ".", folder=given_out)
    assert "mcp-registry" in report
    assert "All checks passed" in report
