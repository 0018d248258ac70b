"""The report of a scale run as files: JSON for programs, Markdown for people, and a plot beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import pages
from benchmarks.beside import OURS
from benchmarks.latency import CLIENTS
from benchmarks.pages import GOAL_COLOUR, OURS_COLOUR, THEIRS_COLOUR, Report, table

_AMBIENT_GOAL_MS = 40


def save(report: Report, folder: Path, name: str) -> list[Path]:
    """Write the report's files; as ``pages.save``."""
    return pages.save(report, folder, name, markdown, _draw)


def markdown(report: Report, name: str) -> str:
    """Return the report as a page; ``name`` is that of its plot."""
    parts = [
        *pages.head(report, name),
        f"It took {report['took_s']:.0f} s. Compare ratios: both sides were measured in this one run. Absolute times "
        "are of this machine.",
        *(
            part
            for section, write in _SECTIONS.items()
            if section in report
            for part in write(report[section])
        ),
    ]
    return "\n\n".join(parts) + "\n"


def text(report: Report) -> str:
    """Return the report for a terminal: the page without its plot."""
    return "\n\n".join(
        part for part in markdown(report, "").split("\n\n") if not part.startswith("![")
    ).strip()


def _recall(found: Report) -> Iterable[str]:
    yield "## Recall as a memory grows"
    yield table(
        [
            "facts",
            "nodes",
            "turns",
            "open, first / again s",
            "first recall of a process, ms",
            "memory MiB",
            "KiB on disk a fact",
            "facts/s written",
        ],
        [
            [
                f"{one['facts']:,}",
                f"{one['nodes']:,}",
                f"{one['turns']:,}",
                f"{one['open_first_s']:.2f} / {one['open_warm_s']:.2f}",
                _three(one["first_recall_ms"]),
                f"{one['memory_mib']['in_use']:.0f}",
                f"{one['disk_kib_a_fact']:.1f}",
                f"{one['written_facts_per_s_so_far']:.0f}",
            ]
            for one in found.values()
        ],
    )
    yield "Milliseconds, p50 / p95 / p99, the query's embedding included; every query is new."
    yield table(
        [
            "facts",
            "ambient, 1 client",
            "4 clients",
            "8 clients",
            "recall (default)",
            "remember, done",
            "remember, on disk",
        ],
        [_latencies(one) for one in found.values()],
    )
    yield "Parts of an ambient recall, p50 / p95 / p99; of channels side by side the slowest counts."
    parts = list(next(iter(found.values()))["latency"]["parts_of_ambient"])
    yield table(
        ["facts", *parts],
        [
            [
                f"{one['facts']:,}",
                *(_three(one["latency"]["parts_of_ambient"][part]) for part in parts),
            ]
            for one in found.values()
        ],
    )
    yield from _beside(found)


def _beside(found: Report) -> Iterable[str]:
    yield "## Beside other ways to search the same facts"
    yield (
        "The ten best facts. `facts` is our channel; `dense-alone` and `bm25-alone` are one perspective of it over the "
        "same indexes; `stock_search` is Graphiti's own `search_` over the same store, without time, floor and "
        "provenance. `first` is the first question of a "
        "fresh process, the median of three; of stock, the first after opening."
    )
    yield table(
        [
            "facts",
            "way",
            "first, ms",
            *(f"{clients} client{'s' * (clients > 1)}" for clients in CLIENTS),
        ],
        [
            [
                f"{size['facts']:,}",
                way,
                f"{one['cold_ms']['p50']:.1f}",
                *(_three(figures) for figures in one["by_clients"].values()),
            ]
            for size in found.values()
            for way, one in size["beside"].items()
        ],
    )
    for size in found.values():
        ours, stock = (
            size["beside"][way]["by_clients"]["1"]["p50"] for way in (OURS, "stock_search")
        )
        yield f"At {size['facts']:,} facts ours takes **{ours / stock:.2g} times as long** as stock, p50, one client."


def _latencies(one: Report) -> list[str]:
    latency = one["latency"]
    ambient = [_three(figures) for figures in latency["ambient_recall_by_clients"].values()]
    others = [
        _three(latency[name]) for name in ("recall_default", "remember_done", "remember_journal")
    ]
    return [f"{one['facts']:,}", *ambient, *others]


def _filters(found: Report) -> Iterable[str]:
    yield f"## Filters, facts channel at {found['facts']:,} facts"
    yield table(
        [
            "keeps",
            "p50 / p95 / p99 ms",
            "p95 against no filter",
            "the filter's first use, ms",
            "fewest results of 10",
        ],
        [
            [
                _kept(name),
                _three(one),
                f"{one['p95_times_unfiltered']:.2f}",
                _three(one["first_use"]) if "first_use" in one else "",
                str(one["fewest_results"]),
            ]
            for name, one in found["by_tag"].items()
        ],
    )


def _kept(name: str) -> str:
    return (
        "all (no filter)" if name == "none" else name.removeprefix("share").replace("_", ".") + " %"
    )


def _edges(found: Report) -> Iterable[str]:
    stock = found["stock_graphiti"]
    is_half = _is_half(stock)
    yield f"## Edge channel at {found['facts']:,} facts, against stock Graphiti on the same graph"
    yield table(
        ["", "p50 / p95 / p99 ms"],
        [
            ["ours, facts channel", _three(found["facts_channel"])],
            [
                "Graphiti's EDGE_HYBRID_SEARCH_RRF on our indexes",
                _three(found["same_recipe_on_our_indexes"]),
            ],
            [f"stock Graphiti's search_{', vectors alone' if is_half else ''}", _three(stock)],
        ],
    )
    times = f"{found['times_faster_p50']:.0f} times faster** at p50, {found['times_faster_p95']:.0f} times at p95."
    asked = f" Each was asked for {found['asked_before_s']:.0f} s before its clock started."
    why = " Stock has no full text on the embedded store: only its vector half was asked."
    yield f"Ours is **{times}{why if is_half else ''}{asked}"


def _is_half(stock: Mapping[str, Any]) -> bool:
    """Tell whether a report is of the time when stock Graphiti had LadybugDB below it, and no full text."""
    return stock.get("full_text") is False


def _structured(found: Report) -> Iterable[str]:
    yield f"## Structured facts, {found['facts_a_call']} a call"
    yield table(
        ["", "facts/s"],
        [
            [
                "ours, without vectors: journal, graph, text index",
                f"{found['facts_per_s_without_vectors']:,.0f}",
            ],
            [
                "ours, vectors given: and vector index",
                f"{found['facts_per_s_with_given_vectors']:,.0f}",
            ],
            [
                "stock Graphiti's bulk write, vectors given",
                f"{found['stock_bulk_facts_per_s_with_given_vectors']:,.0f}",
            ],
        ],
    )
    yield f"With vectors, ours is **{found['times_stock']:.1f} times** stock's."


def _import(found: Report) -> Iterable[str]:
    yield "## Import with the embedder"
    yield table(
        ["", "turns/s", "texts embedded", "seconds", "embedder alone, s", "share of its speed"],
        [
            [
                name.replace("_", " "),
                f"{one['turns_per_s']:.1f}",
                f"{one['texts']:,}",
                f"{one['seconds']:.1f}",
                f"{one['embedder_alone_s']:.1f}",
                f"{one['share_of_the_embedders_own_speed']:.0%}",
            ]
            for name, one in found.items()
        ],
    )
    yield "Each twice, in turn, and the model alone after each; summed."


def _http(found: Report) -> Iterable[str]:
    yield "## A turn acknowledged over HTTP"
    full = found["as_fast_as_answered"]
    yield (
        f"{found['clients']} clients, {found['turns_per_s_and_client']} turns a second each: "
        f"p50 / p95 / p99 **{_three(found)}** ms. As fast as they are answered ({full['turns_per_s']} turns a "
        f"second in all): {_three(full)} ms."
    )


def _nearest(found: Report) -> Iterable[str]:
    yield f"## The vector index against an exact search, {found['vectors']:,} facts embedded by the model"
    yield "Of the ten nearest facts that an exact search finds, the index finds, on average:"
    kinds = {
        "naming": "questions that name things",
        "vague": "questions of random words, far from every fact",
        "near_a_fact": "vectors near a fact's",
    }
    yield table(
        ["probe", "scanned in memory, as is usual", "in Chroma's graph of neighbours"],
        [
            *(
                [said, f"{found['scan'][kind]:.1%}", f"{found['graph'][kind]:.1%}"]
                for kind, said in kinds.items()
            ),
            [
                "50 nearest of a question, p50 ms",
                *(f"{found[how]['query_ms']:.1f}" for how in ("scan", "graph")),
            ],
        ],
    )
    yield "The graph holds what is more than `vectors.in_memory`; here it held everything."


_SECTIONS = {
    "recall": _recall,
    "filters": _filters,
    "edges": _edges,
    "nearest": _nearest,
    "structured": _structured,
    "import": _import,
    "http": _http,
}


def _three(figures: Mapping[str, float]) -> str:
    return " / ".join(f"{figures[name]:.1f}" for name in ("p50", "p95", "p99"))


def _draw(report: Report, file: Path) -> None:
    drawn = [draw for section, draw in _DRAWN if section in report]
    with pages.panels(file, max(1, len(drawn))) as axes:
        for axis, draw in zip(axes, drawn, strict=False):
            draw(axis, report)


def _draw_recall(axis: Any, report: Report) -> None:
    stages = list(report["recall"].values())
    sizes = [one["facts"] for one in stages]
    for percentile, style in (("p95", "-"), ("p50", "--")):
        values = [one["latency"]["ambient_recall_by_clients"]["1"][percentile] for one in stages]
        axis.plot(
            sizes,
            values,
            style,
            color=OURS_COLOUR,
            marker="o",
            label=f"ambient recall {percentile}",
        )
    axis.axhline(
        _AMBIENT_GOAL_MS, color=GOAL_COLOUR, linewidth=1, linestyle=":", label="goal for p95"
    )
    axis.set_xscale("log")
    axis.set_ylim(bottom=0)
    axis.set_xlabel("facts")
    axis.set_title("ambient recall, ms", loc="left", fontsize=10)
    axis.legend(fontsize=8, frameon=False)


def _draw_beside(axis: Any, report: Report) -> None:
    stages = list(report["recall"].values())
    sizes = [one["facts"] for one in stages]
    for way, style, colour in (
        (OURS, "-", OURS_COLOUR),
        ("dense-alone", ":", OURS_COLOUR),
        ("bm25-alone", "--", OURS_COLOUR),
        ("stock_search", "-", THEIRS_COLOUR),
    ):
        values = [one["beside"][way]["by_clients"]["1"]["p50"] for one in stages]
        axis.plot(sizes, values, style, color=colour, marker="o", label=way)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("facts")
    axis.set_title("ten best facts, p50 ms", loc="left", fontsize=10)
    axis.legend(fontsize=8, frameon=False)


def _draw_edges(axis: Any, report: Report) -> None:
    found = report["edges"]
    _bars(axis, ["ours", "stock"], [found["facts_channel"]["p50"], found["stock_graphiti"]["p50"]])
    axis.set_yscale("log")
    axis.set_title(f"edge channel at {found['facts']:,} facts, p50 ms", loc="left", fontsize=10)


def _draw_structured(axis: Any, report: Report) -> None:
    found = report["structured"]
    names = [
        "facts_per_s_without_vectors",
        "facts_per_s_with_given_vectors",
        "stock_bulk_facts_per_s_with_given_vectors",
    ]
    _bars(axis, ["ours, no vectors", "ours", "stock"], [found[name] for name in names])
    axis.set_title("structured facts, a second", loc="left", fontsize=10)


def _bars(axis: Any, names: Sequence[str], values: Sequence[float]) -> None:
    colours = [THEIRS_COLOUR if name == "stock" else OURS_COLOUR for name in names]
    axis.bar_label(
        axis.bar(names, values, color=colours), [f"{value:,.0f}" for value in values], fontsize=8
    )


_DRAWN = (
    ("recall", _draw_recall),
    ("recall", _draw_beside),
    ("edges", _draw_edges),
    ("structured", _draw_structured),
)
