"""The documents as a site: built strictly, so that each link and each heading that one leads to is there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert built.returncode == 0, built.stderr[-3000:]
    return folder


def test_the_site_has_every_document_and_loads_nothing_from_elsewhere(site: Path) -> None:
    for document in (ROOT / "docs").rglob("*.md"):
        name = document.relative_to(ROOT / "docs").with_suffix(".html")
        page = site / (name.with_name("index.html") if name.stem == "README" else name)
        assert page.exists(), page
        loaded = re.findall(
            r'<(?:script|img|link)[^>]+(?:src|href)="(https?://[^"]+)"', page.read_text()
        )
        assert not [url for url in loaded if "canonical" not in url], page


def test_a_link_that_leaves_the_documents_leads_to_the_repository(site: Path) -> None:
    page = (site / "mcp.html").read_text()
    assert "/blob/main/skills/pps-memory/SKILL.md" in page


def test_a_link_to_nowhere_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Start\n\n[nowhere](nowhere.md)\n")
    config = "site_name: x\nstrict: true\nvalidation: {links: {not_found: warn}}\n"
    (tmp_path / "mkdocs.yml").write_text(config)
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict"],
        cwd=tmp_path,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        timeout=280,
        check=False,
    )
    assert built.returncode != 0
