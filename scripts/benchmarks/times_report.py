"""The reports that are a few rows of percentiles: the hooks, a cross-encoder, the timeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks import pages
from benchmarks.pages import Report

_DRAWN = (("p50", -0.2, pages.THEIRS_COLOUR), ("p95", 0.2, pages.OURS_COLOUR))


@dataclass(frozen=True, slots=True)
class Times:
    """How a report is told.

    Attributes:
        said: What there is to say beside the times.
        rows: A key of the report → what it is called.
        goals: Milliseconds that a row's p95 should stay below, by key.
    """

    said: Callable[[Report], str]
    rows: Mapping[str, str]
    goals: Mapping[str, float] = field(default_factory=dict[str, float])

    def save(self, report: Report, folder: Path, name: str) -> list[Path]:
        """Write the report's files; as ``pages.save``."""
        return pages.save(report, folder, name, self.page, partial(_draw, self))

    def page(self, report: Report, name: str) -> str:
        """Return the report as a page."""
        figures = {label: _figures(report, key) for key, label in self.rows.items()}
        header = ["milliseconds", *next(iter(figures.values()))]
        rows = (
            [label, *(f"{value:g}" for value in one.values())] for label, one in figures.items()
        )
        return (
            "\n\n".join([*pages.head(report, name), self.said(report), pages.table(header, rows)])
            + "\n"
        )

    def text(self, report: Report) -> str:
        """Return the report for a terminal."""
        width = max(map(len, self.rows.values()))
        rows = (
            f"{label:<{width}}  "
            + "  ".join(f"{name} {value:g}" for name, value in _figures(report, key).items())
            for key, label in self.rows.items()
        )
        return "\n".join([self.said(report).replace("**", ""), *rows])


def _figures(report: Report, key: str) -> dict[str, float]:
    return {name: value for name, value in report[key].items() if name != "calls"}


def _draw(times: Times, report: Report, file: Path) -> None:
    with pages.panels(file, 1) as (axis,):
        labels = list(times.rows.values())
        for percentile, shift, colour in _DRAWN:
            values = [report[key][percentile] for key in times.rows]
            places = [at + shift for at in range(len(labels))]
            bars = axis.bar(places, values, 0.36, color=colour, label=percentile)
            axis.bar_label(bars, [f"{value:.0f}" for value in values], fontsize=8)
        for at, key in enumerate(times.rows):
            if key in times.goals:
                ends = {"color": pages.GOAL_COLOUR, "linestyle": ":", "linewidth": 1.5}
                axis.hlines(
                    times.goals[key],
                    at - 0.45,
                    at + 0.45,
                    label=None if at else "goal for p95",
                    **ends,
                )
        axis.set_xticks(range(len(labels)), labels)
        axis.set_title(f"{report['title'].partition(':')[0]}, ms", loc="left", fontsize=10)
        axis.legend(fontsize=8, frameon=False, loc="upper left")


def _hooks(report: Report) -> str:
    return (
        f"{report['facts']:,} facts, {report['prompts']} prompts, each with a process of its own."
    )


def _rerank(report: Report) -> str:
    return (
        f"{report['facts']:,} facts, {report['candidates']} candidates reordered by {report['model']}. Past "
        f"{report['limit_ms']} ms the order by ranks stands: {report['fell_back']} times."
    )


def _timeline(report: Report) -> str:
    wrong = "".join(f"\n- wrong: {one}" for one in report["wrong"])
    return (
        f"**{report['exact']:,} of {report['questions']:,} answers exact**: {report['events']:,} events of "
        f"{report['data']}, {report['pages']:,} pages, {report['facts_read']:,} facts read; writing took "
        f"{report['write_s']} s.{wrong}"
    )


HOOKS = Times(
    _hooks,
    {"start_ms": "start", "round_trip_ms": "round trip", "process_ms": "whole process"},
    {"start_ms": 60, "round_trip_ms": 80, "process_ms": 200},
)
RERANK = Times(
    _rerank,
    {
        "by_ranks_ms": "by ranks",
        "cross_encoder_ms": "with a cross-encoder",
        "of_that_the_cross_encoder_ms": "of that, the cross-encoder",
    },
)
TIMELINE = Times(_timeline, {"page_ms": "one page"})
