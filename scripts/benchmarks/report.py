"""A benchmark's report as files: JSON for programs, Markdown for people, and a plot beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import pages
from benchmarks.pages import Report, table
from benchmarks.scores import FIGURES

OURS = "pps"

_CATEGORIES = "by category"
_CONVERSATIONS = "by conversation"


def systems(report: Report) -> dict[str, Mapping[str, Any]]:
    """Return every system's figures by its name, ours (the first profile) first."""
    profiles = report["profiles"]
    names = {
        name: OURS if number == 0 else f"{OURS}: {name}" for number, name in enumerate(profiles)
    }
    return {**{names[name]: found for name, found in profiles.items()}, **report["against"]}


def markdown(report: Report, name: str) -> str:
    """Return the report as a page; ``name`` is that of its plot."""
    machine = report["machine"]
    found = systems(report)
    parts = [
        f"# {report['title']}",
        "Written by the command below; a test compares the documents' figures with it.",
        f"```bash\n{report['command']}\n```",
        f"PPS {report['version']}, store {report['store']}, embedder {report['embedder']}, "
        f"{'no' if report['reranker'] == 'none' else report['reranker']} reranker; {machine['cores']} cores "
        f"({machine['processor']}), Python {machine['python']}.",
        _data(report),
        _whose(report),
        f"![{report['title']}]({name}.png)",
        "## All questions, percent",
        table(
            ["", *FIGURES, "returned"],
            ([one, *_row(figures["all"])] for one, figures in found.items()),
        ),
        "\n".join(f"- **{one}**: {what}." for one, what in report["scored"].items()),
        *_ratios(report),
        f"## R@10 {_CATEGORIES}",
        _groups(found, "categories"),
        f"## R@10 {_CONVERSATIONS}",
        _groups(found, "conversations"),
        *_packs(report),
        *_times(report),
        *_ablation(report),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def save(report: Report, folder: Path, name: str) -> list[Path]:
    """Write the report's files; as ``pages.save``."""
    from benchmarks.plot import draw_quality

    return pages.save(report, folder, name, markdown, draw_quality)


def text(report: Report) -> str:
    """Return the main table for a terminal."""
    rows = [
        ["", *FIGURES],
        *([one, *_row(figures["all"])[:-1]] for one, figures in systems(report).items()),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
    losses = [f"without {one['left_out']}: {_loss(one['lost'])}" for one in report["ablation"]]
    times = [
        f"{name}, questions about a time alone: P@10 {found['all']['P@10']:.1f}"
        for name, found in report.get("times", {}).items()
    ]
    parts = (*lines, *times, _pack_line(report), *losses, _whose(report))
    return "\n".join(part for part in parts if part)


def _whose(report: Report) -> str:
    """Return which profiles were files of the user's own in place of, or beside, the shipped ones; empty where none."""
    own = [name for name, origin in report.get("origins", {}).items() if origin == "yours"]
    return f"Measured with profiles of the user's own: {', '.join(own)}." if own else ""


def _data(report: Report) -> str:
    data: Sequence[Mapping[str, Any]] = report["data"]
    total = {
        key: sum(one[key] for one in data)
        for key in ("turns", "facts", "questions", "questions_without_answer")
    }
    return (
        f"{len(data)} conversation{'s' if len(data) != 1 else ''}, each in an entity of its own: "
        f"{total['turns']:,} turns, {total['facts']:,} facts on turns, {total['questions']:,} questions, of which "
        f"{total['questions_without_answer']:,} name no turn and are not scored."
    )


def _row(figures: Mapping[str, Any]) -> list[str]:
    return [_number(figures[name]) for name in (*FIGURES, "returned")]


def _ratios(report: Report) -> list[str]:
    if not report["ratios"]:
        return []
    rows = (
        [f"{OURS} / {one}", *(_number(found[name], 2) for name in FIGURES)]
        for one, found in report["ratios"].items()
    )
    return ["## Ours over theirs", table(["", *FIGURES], rows)]


def _groups(found: Mapping[str, Mapping[str, Any]], key: str) -> str:
    groups = list(next(iter(found.values()))[key])
    questions = next(iter(found.values()))[key]
    header = ["", *(f"{group} ({questions[group]['questions']})" for group in groups)]
    rows = (
        [one, *(_number(figures[key][group]["R@10"]) for group in groups)]
        for one, figures in found.items()
    )
    return table(header, rows)


def _times(report: Report) -> list[str]:
    """Return the share of shown turns that lie in the time that a question names alone, by kind of question."""
    times: Mapping[str, Any] = report.get("times", {})
    if not times:
        return []
    categories = next(iter(times.values()))["categories"]
    header = ["", "all", *(f"{name} ({one['questions']})" for name, one in categories.items())]
    rows = (
        [
            name,
            _number(found["all"]["P@10"]),
            *(_number(found["categories"][one]["P@10"]) for one in categories),
        ]
        for name, found in times.items()
    )
    return ["## P@10 of questions about a time alone, percent", table(header, rows)]


def _ablation(report: Report) -> list[str]:
    if not report["ablation"]:
        return []
    names = list(report["ablation"][0]["lost"])
    rows = (
        [one["left_out"], *(_number(one["lost"][name], 2) for name in names)]
        for one in report["ablation"]
    )
    return ["## What each part brings: points lost without it", table(["left out", *names], rows)]


def _packs(report: Report) -> list[str]:
    found = report.get("packs")
    if not found:
        return []
    header = [
        "prompts",
        "right turn in it",
        "empty",
        "tokens",
        "tokens, not empty",
        "silent for others",
    ]
    figures = ("right", "empty", "tokens", "tokens_given", "others_silent")
    row = [str(found["packs"]), *(_number(found[name]) for name in figures)]
    return ["## Packs of prompts, percent", table(header, [row])]


def _pack_line(report: Report) -> str:
    found = report.get("packs")
    if not found:
        return ""
    return (
        f"packs: {_number(found['right'])} % hold a right turn, {_number(found['empty'])} % are empty, "
        f"{_number(found['tokens'])} tokens; {_number(found['others_silent'])} % silent for others' questions"
    )


def _loss(lost: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {-value:+.2f}" for name, value in lost.items())


def _number(value: float | None, digits: int = 1) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
