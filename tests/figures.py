"""The figures of the documents, out of the benchmarks' own files: no number is typed by hand.

A document says where: ``<!-- figures: quality -->`` … ``<!-- /figures -->``. `scripts/docs` writes what lies between.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.report import markdown, systems

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "benchmarks"
DOCUMENTS = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))

_MARKED = re.compile(r"(<!-- figures: ([\w-]+) -->\n).*?(<!-- /figures -->)", re.DOTALL)
_SHOWN = ("R@5", "R@10", "MRR@10", "nDCG@10")


def filled(text: str) -> str:
    """Return a document with the figures that its marks ask for."""
    return _MARKED.sub(lambda found: f"{found[1]}{block(found[2])}\n{found[3]}", text)


def block(name: str) -> str:
    """Return what a mark stands for; KeyError when no benchmark is called that."""
    return _BLOCKS[name](json.loads((RESULTS / f"{name}.json").read_text("utf-8")))


def _quality(report: Mapping[str, Any]) -> str:
    """A row for each system, best figures first; in percent."""
    rows = [
        f"| {name} | " + " | ".join(f"{found['all'][figure]:.1f}" for figure in _SHOWN) + " |"
        for name, found in systems(report).items()
    ]
    questions, turns = (
        systems(report)["pps"]["all"]["questions"],
        sum(one["turns"] for one in report["data"]),
    )
    caption = f"{questions:,} questions, {turns:,} turns, {len(report['data'])} memories, percent:"
    header = ["| | " + " | ".join(_SHOWN) + " |", "| --- |" + " ---: |" * len(_SHOWN)]
    return "\n".join([caption, "", *header, *rows])


QUALITY = ("quality", "quality-beam", "quality-musique", "quality-notes", "quality-realtalk")
"""What is measured by the same command on data of different kinds."""

_BLOCKS: dict[str, Callable[[Mapping[str, Any]], str]] = dict.fromkeys(QUALITY, _quality)


def write() -> None:
    """Bring every document up to date, the benchmarks' own pages first."""
    for file in RESULTS.glob("quality*.json"):
        file.with_suffix(".md").write_text(
            markdown(json.loads(file.read_text("utf-8")), file.stem), "utf-8"
        )
    for document in DOCUMENTS:
        text = document.read_text("utf-8")
        if filled(text) != text:
            document.write_text(filled(text), "utf-8")
