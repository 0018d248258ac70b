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
    if name in _COMBINED:
        return _COMBINED[name]()
    return _BLOCKS[name](_report(name))


def _report(name: str) -> dict[str, Any]:
    return json.loads((RESULTS / f"{name}.json").read_text("utf-8"))


def _why() -> str:
    """Four reasons, each with a figure and a link to how it was measured; for the README."""
    quality, scale, timeline, isolation = map(
        _report, ("quality", "scale", "timeline", "isolation")
    )
    found = {name: one["all"]["R@10"] for name, one in systems(quality).items()}
    facts, large = max(scale["recall"].items(), key=lambda one: int(one[0]))
    recall_ms = large["latency"]["ambient_recall_by_clients"]["1"]["p50"]
    cores = scale["machine"]["cores"]
    tried = sum(isolation["operations"].values())
    return "\n".join(
        [
            f"- **It finds what answers**: {found['pps']:.0f} % of the turns that answer a question are among its ten best, "
            f"stock Graphiti's on the same graph {found['graphiti']:.0f} % ([LoCoMo](docs/benchmarks/quality.md)).",
            f"- **It answers at once**: what fits a prompt is found among {int(facts):,} facts in {recall_ms:.0f} ms "
            f"on {cores} cores, at the median ([speed](docs/benchmarks/scale.md)).",
            f"- **It knows what held when**: {timeline['exact']:,} of {timeline['questions']:,} questions about a time answered "
            f"exactly, over {timeline['events']:,} dated events ([timeline](docs/benchmarks/timeline.md)).",
            f"- **Nothing crosses**: {tried:,} hostile operations between entities, {len(isolation['leaks'])} leaks; "
            "`pps verify-isolation` attacks yours ([how](docs/isolation.md)).",
        ]
    )


def _quality_table(report: Mapping[str, Any]) -> str:
    """A row for each system, best figures first; in percent."""
    rows = [
        f"| {name} | " + " | ".join(f"{found['all'][figure]:.1f}" for figure in _SHOWN) + " |"
        for name, found in systems(report).items()
    ]
    header = ["| | " + " | ".join(_SHOWN) + " |", "| --- |" + " ---: |" * len(_SHOWN)]
    return "\n".join([*header, *rows])


def _quality(report: Mapping[str, Any]) -> str:
    """The table below what was asked of how much."""
    questions, turns = (
        systems(report)["pps"]["all"]["questions"],
        sum(one["turns"] for one in report["data"]),
    )
    caption = f"{questions:,} questions, {turns:,} turns, {len(report['data'])} memories, percent:"
    return f"{caption}\n\n{_quality_table(report)}"


def _timeline() -> str:
    report = _report("timeline")
    return (
        f"{report['exact']:,} of {report['questions']:,} questions about a point or a span of time were answered exactly, over "
        f"{report['events']:,} dated events."
    )


QUALITY = ("quality", "quality-beam", "quality-musique", "quality-notes", "quality-realtalk")
"""What is measured by the same command on data of different kinds."""

_BLOCKS: dict[str, Callable[[Mapping[str, Any]], str]] = dict.fromkeys(QUALITY, _quality)

_COMBINED: dict[str, Callable[[], str]] = {
    "why": _why,
    "timeline": _timeline,
    "quality-table": lambda: _quality_table(_report("quality")),
}
"""What is made of several files, or otherwise of one."""


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
