"""The page's files: what is vendored is what its notice says, and no text becomes HTML."""

from __future__ import annotations

import base64
import hashlib
import re
import tomllib
from pathlib import Path

from pps.interfaces.http.page.site import HEADERS, STATIC

_VENDOR = STATIC / "vendor"
_NOTICE = (_VENDOR / "NOTICE.md").read_text(encoding="utf-8")
_OURS = [path for path in sorted(STATIC.rglob("*")) if path.is_file() and path.parent != _VENDOR]


def test_what_is_vendored_is_unchanged_and_licensed() -> None:
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in _NOTICE.splitlines()
        if line.startswith("|")
    ]
    listed = {row[0]: row[-1] for row in rows[2:]}
    there = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in _VENDOR.glob("*.js")
    }
    assert listed == there
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", row[2]) and row[4] for row in rows[2:])
    assert all(f"## {name}" in _NOTICE for name in ("MIT", "ISC", "BSD-3-Clause", "Apache-2.0"))
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert "pps/interfaces/http/page/static/vendor/NOTICE.md" in project["license-files"]


def test_no_text_becomes_html_and_nothing_is_asked_of_others() -> None:
    wrong = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|\beval\(|new Function|srcdoc|"
        r"<style\b|\son\w+=[\"']|javascript:|https?://(?!www\.w3\.org/2000/svg)"
    )
    found = {
        f"{path.name}: {hit[0]}"
        for path in _OURS
        for hit in wrong.finditer(path.read_text(encoding="utf-8"))
    }
    assert found == set()
    assert "<script>" not in (STATIC / "index.html").read_text()


def test_the_policy_lets_in_the_two_style_sheets_of_force_graph_by_their_digests() -> None:
    text = (_VENDOR / "force-graph.js").read_text(encoding="utf-8")
    sheets = re.findall(r'createTextNode\(t\)\)\}\}\("((?:[^"\\]|\\.)*)"', text)
    digests = [
        hashlib.sha256(one.encode().decode("unicode_escape").encode()).digest()
        for one in ("", *sheets)
    ]
    policy = HEADERS["Content-Security-Policy"]
    assert re.findall(r"'sha256-([^']*)'", policy) == [
        base64.b64encode(one).decode() for one in digests
    ]
    assert "unsafe" not in policy
