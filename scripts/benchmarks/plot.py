"""The plot of a quality report: every system's recall at 10, over all questions and by category."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.plain import library

_OURS, _OTHERS = "#0b6e4f", ("#c8553d", "#8d99ae", "#b8bfc9", "#5c677d")
_INK, _FAINT = "#222222", "#dddddd"


def draw_quality(report: Mapping[str, Any], file: Path) -> None:
    """Write the plot as PNG.

    Raises:
        ConfigError: matplotlib is not installed.
    """
    from benchmarks.report import systems

    library("matplotlib").use("Agg")
    pyplot: Any = library("matplotlib.pyplot")
    found = systems(report)
    losses: list[Mapping[str, Any]] = report["ablation"]
    shares = [3, 1.15] if losses else [1]
    figure, axes = pyplot.subplots(
        1,
        len(shares),
        figsize=(12.5 if losses else 9.5, 4.6),
        width_ratios=shares,
        squeeze=False,
        layout="constrained",
    )
    _bars(axes[0][0], report["title"], found)
    if losses:
        _losses(axes[0][1], losses)
    figure.savefig(file, dpi=130, metadata={"Software": None})
    pyplot.close(figure)


def _bars(axis: Any, title: str, found: Mapping[str, Mapping[str, Any]]) -> None:
    ours = next(iter(found.values()))
    categories = list(ours["categories"])
    groups = ["all questions", *(f"category {one}" if one.isdigit() else one for one in categories)]
    width = 0.84 / len(found)
    colours = (_OURS, *_OTHERS, *("#aaaaaa",) * len(found))
    for number, (name, figures) in enumerate(found.items()):
        values = [
            figures["all"]["R@10"],
            *(figures["categories"][one]["R@10"] for one in categories),
        ]
        places = [group + (number - (len(found) - 1) / 2) * width for group in range(len(groups))]
        heights = [value or 0.0 for value in values]
        bars = axis.bar(places, heights, width * 0.92, label=name, color=colours[number], zorder=2)
        axis.bar_label(
            bars, [f"{value:.0f}" for value in heights], fontsize=7, padding=1, color=_INK
        )
    axis.set_xticks(range(len(groups)), groups)
    axis.set_ylim(0, 108)
    axis.set_ylabel("recall at 10, percent")
    axis.set_title(title, loc="left", fontsize=11)
    axis.legend(
        ncols=len(found), fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.08)
    )
    _plain(axis, "y")


def _losses(axis: Any, losses: list[Mapping[str, Any]]) -> None:
    rows = sorted(losses, key=lambda row: row["lost"]["R@10"])
    names, lost = [row["left_out"] for row in rows], [row["lost"]["R@10"] for row in rows]
    bars = axis.barh(
        names, lost, color=[_OURS if one >= 0 else _OTHERS[0] for one in lost], zorder=2
    )
    axis.bar_label(bars, [f"{one:.1f}" for one in lost], fontsize=7, padding=2, color=_INK)
    axis.set_title("points of R@10 lost without it", loc="left", fontsize=11)
    axis.margins(x=0.15)
    _plain(axis, "x")


def _plain(axis: Any, grid: str) -> None:
    axis.grid(axis=grid, color=_FAINT, zorder=0)
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(labelsize=8)
