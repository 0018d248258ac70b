"""What all reports are made of: their three files, the head of a page, tables, and the frame of a plot."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.plain import library

Report: TypeAlias = "Mapping[str, Any]"

OURS_COLOUR, THEIRS_COLOUR, GOAL_COLOUR = "#0b6e4f", "#8d99ae", "#c8553d"
_PANEL_INCHES = (4.4, 4.0)


def save(
    report: Report,
    folder: Path,
    name: str,
    page: Callable[[Report, str], str],
    draw: Callable[[Report, Path], None],
) -> list[Path]:
    """Write ``name.json``, ``name.md`` and ``name.png`` into a folder; return the files.

    Args:
        report: Plain JSON.
        folder: Made when it is not there.
        name: Stem of the files.
        page: Makes the page from the report and the stem.
        draw: Writes the plot.

    Raises:
        ConfigError: matplotlib is not installed; nothing is written.
    """
    files = [folder / f"{name}.{ending}" for ending in ("json", "md", "png")]
    folder.mkdir(parents=True, exist_ok=True)
    draw(report, files[2])
    files[0].write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", "utf-8")
    files[1].write_text(page(report, name), "utf-8")
    return files


def head(report: Report, name: str) -> list[str]:
    """Return the title, the command, what it ran on, and the plot."""
    machine = report["machine"]
    where = ", ".join(f"{word} {report[word]}" for word in ("store", "embedder") if word in report)
    load = f"; load {machine['load_1_min']} at the start" if "load_1_min" in machine else ""
    end = (
        f", {report['load_1_min_at_the_end']} at the end"
        if "load_1_min_at_the_end" in report
        else ""
    )
    return [
        f"# {report['title']}",
        f"```bash\n{report['command']}\n```",
        f"PPS {report['version']}{where and ', '}{where}; {machine['cores']} cores ({machine['processor']}), "
        f"{machine['memory_gib']} GiB, Python {machine['python']}{load}{end}.",
        f"![{report['title']}]({name}.png)",
    ]


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; the first column is text, the others are numbers."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


@contextlib.contextmanager
def panels(file: Path, count: int) -> Generator[Sequence[Any]]:
    """Lend so many panels side by side; what was drawn is written as PNG.

    Raises:
        ConfigError: matplotlib is not installed.
    """
    library("matplotlib").use("Agg")
    pyplot: Any = library("matplotlib.pyplot")
    wide, high = _PANEL_INCHES
    figure, axes = pyplot.subplots(
        1, count, figsize=(wide * count, high), squeeze=False, layout="constrained"
    )
    for axis in axes[0]:
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8)
    yield axes[0]
    figure.savefig(file, dpi=130, metadata={"Software": None})
    pyplot.close(figure)
