"""What each perspective brings and costs: added to the vectors alone, added to a profile, and left out of it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks import pages
from benchmarks.ablation import write_profile
from benchmarks.causes import HALVES, NAME
from benchmarks.data import Conversation
from benchmarks.exploring import TOKENS, explored
from benchmarks.machine import machine
from benchmarks.measuring import throw_away
from benchmarks.pages import Report
from benchmarks.quality import Asking, Progress, ask, write
from benchmarks.reading import SHIPPED as SHIPPED_DATA
from benchmarks.reading import data_path, read
from benchmarks.scores import Answer, latency, mean
from benchmarks.subjects import GOALS, alerts, topics_found
from pps import __version__
from pps.app import App
from pps.config import Settings
from pps.config.spaces import spaces
from pps.recall.perspectives import PERSPECTIVES
from pps.recall.profiles import Profiles

PAYS = 0.5
"""Points of R@10 and MRR@10 together that a perspective must bring to a profile, to be said to pay on a data set."""
PAYS_ON = 2
"""Data sets on which one must pay to be recommended."""
GOAL = 8.0
"""Points of R@10 that ``multi_space`` is to find more than ``e1_only`` on the coding project."""
ALONE, SHIPPED = "e1_only", "multi_space"
OWN_KIND = {
    "E1": "meaning",
    "E5": "cause",
    "E7": "code",
    "E6": "term",
    "E9": "term",
    "E11": "named",
    "E10": "intent",
    "E8": "connection",
}
"""The kind of question that each enhancer is for."""
Row: TypeAlias = "dict[str, Any]"


@dataclass(frozen=True, slots=True)
class PerspectivesWanted:
    """What a run is asked for.

    Attributes:
        data: Folders, files, or the names of shipped data.
        profile: The one that each is added to or left out of.
        conversations, questions: Of data that are not shipped at most so many, the same each time; 0 is all.
        sessions: That go on with their subject, a quarter as many that change it; 0 measures neither them nor topics.
    """

    data: tuple[str, ...]
    profile: str
    conversations: int = 0
    questions: int = 0
    sessions: int = 0
    out: Path | None = None

    def command(self) -> str:
        """Return the command that asks for the same, without this machine's paths."""
        words = ["scripts/bench perspectives"]
        words += [f"--data {'DATA' if Path(one).exists() else one}" for one in self.data]
        words.append(f"--profile {self.profile}")
        words += [f"--conversations {self.conversations}"] if self.conversations else []
        words += [f"--questions {self.questions}"] if self.questions else []
        words += [f"--sessions {self.sessions}"] if self.sessions else []
        return " ".join([*words, "--out docs/benchmarks"])


@dataclass(frozen=True, slots=True)
class Variant:
    """A profile with one perspective more or less: ``way`` is how it differs, of ``perspective``."""

    way: str
    perspective: str
    profile: str


async def perspectives(
    wanted: PerspectivesWanted, env: Mapping[str, str], progress: Progress
) -> dict[str, Any]:
    """Ask every data set with each variant, and return the report as plain JSON.

    Raises:
        ConfigError: No data are named, or no profile is called that.
        InvalidRequest: Data are not what a benchmark reads.
    """
    paths = [data_path(one, env) for one in wanted.data or ("",)]
    sets = {path.stem: await asyncio.to_thread(read, path) for path in paths}
    sets = {
        name: found if name in SHIPPED_DATA else _sampled(found, wanted)
        for name, found in sets.items()
    }
    found: dict[str, Row] = {}
    async with throw_away(env, None) as settings:
        variants, whole = _variants(settings, wanted.profile)
        async with App.open(settings) as app:
            for number, (name, conversations) in enumerate(sets.items()):
                asked = await _asked(
                    app, conversations, (variants, whole), f"bench_{number}", progress
                )
                found[name] = _figures(conversations, asked, variants)
            subjects: Row = {}
            if wanted.sessions:
                subjects["topics"] = await topics_found(app, progress)
                subjects["explored"] = await explored(app, "bench_topics", progress)
                subjects["alerts"] = await alerts(
                    app, wanted.sessions, -(-wanted.sessions // 4), progress
                )
    report: dict[str, Any] = {
        "benchmark": "perspectives",
        "title": "Perspectives: what each brings and costs",
        "command": wanted.command(),
        "version": __version__,
        "machine": machine(),
        "store": settings.store,
        "embedder": settings.embedder.name,
        "profile": wanted.profile,
        "whole": list(whole),
        "not_built": [
            f"{id_} {one.perspective}"
            for id_, one in spaces().items()
            if one.perspective not in PERSPECTIVES
        ],
        "data": found,
        **subjects,
    }
    if wanted.out:
        await asyncio.to_thread(pages.save, report, wanted.out, "perspectives", page, _draw)
    return report


def _sampled(
    conversations: Sequence[Conversation], wanted: PerspectivesWanted
) -> list[Conversation]:
    """Return the first conversations, with so many of their questions that there are no more than are wanted."""
    kept = list(conversations[: wanted.conversations or None])
    each = -(-wanted.questions // max(1, len(kept)))
    for one in kept:
        scored = one.scored()
        if wanted.questions and each < len(scored):
            one.questions = random.Random(each).sample(scored, each)  # noqa: S311 - the same each time
    return kept


def _variants(settings: Settings, profile: str) -> tuple[list[Variant], tuple[str, ...]]:
    """Write a profile for each perspective more or less; return them, and the whole profiles to compare with."""
    known = Profiles.load(settings)
    episodes = known.get(profile).channels["episodes"].model_dump(exclude_defaults=True)
    filters = known.get(profile).filters
    weights: dict[str, float] = {
        name: weight for name, weight in episodes["perspectives"].items() if weight > 0
    }
    names = [one.perspective for one in spaces().values() if one.perspective in PERSPECTIVES]
    variants: list[Variant] = []

    def variant(way: str, name: str, own: Mapping[str, Any]) -> None:
        variants.append(Variant(way, name, f"{way.replace(' ', '-')}-{name}".replace("_", "-")))
        write_profile(settings, variants[-1].profile, own, filters=filters)

    for name in names:
        if name != "dense":
            variant("alone with", name, {"perspectives": {"dense": 1.0, name: 1.0}})
        if name in weights:
            variant(
                "without",
                name,
                {
                    **episodes,
                    "perspectives": {one: by for one, by in weights.items() if one != name},
                },
            )
        else:
            variant("with", name, {**episodes, "perspectives": {**weights, name: 1.0}})
    whole = dict.fromkeys((ALONE, *((SHIPPED,) if SHIPPED in known else ()), profile))
    return variants, tuple(whole)


async def _asked(
    app: App,
    conversations: Sequence[Conversation],
    asking: tuple[Sequence[Variant], Sequence[str]],
    entity: str,
    progress: Progress,
) -> dict[str, list[Answer]]:
    variants, whole = asking
    asked: dict[str, list[Answer]] = {}
    for number, one in enumerate(conversations):
        written = await write(app, one, f"{entity}_{number}", progress)
        async with app.memory(written.entity) as memory:
            await ask(
                memory, one, written, Asking(whole[0], long=False), progress
            )  # so that none pays for a cold start
            for profile in (*whole, *(one.profile for one in variants)):
                found = await ask(memory, one, written, Asking(profile, long=False), progress)
                asked.setdefault(profile, []).extend(found)
    return asked


def _figures(
    conversations: Sequence[Conversation],
    asked: Mapping[str, Sequence[Answer]],
    variants: Sequence[Variant],
) -> Row:
    named = {one.profile: one for one in variants}
    return {
        "conversations": len(conversations),
        "turns": sum(len(one.turns) for one in conversations),
        "questions": sum(len(one.scored()) for one in conversations),
        "profiles": {name: row(found) for name, found in asked.items() if name not in named},
        "variants": [
            {"way": named[name].way, "perspective": named[name].perspective, **row(found)}
            for name, found in asked.items()
            if name in named
        ],
    }


def row(answers: Sequence[Answer]) -> Row:
    """Return figures of answers: over all, by kind of question and by half."""
    kinds = sorted({one.category for one in answers})
    halves = [half for half in HALVES if any(one.question.startswith(half) for one in answers)]
    return {
        **_two(answers),
        "p50_ms": latency([one.took_ms for one in answers if one.took_ms is not None])["p50"],
        "failed": sum(bool(one.error) for one in answers),
        "kinds": {kind: _two([one for one in answers if one.category == kind]) for kind in kinds},
        "halves": {
            half: _two([one for one in answers if one.question.startswith(half)]) for half in halves
        },
    }


def _two(answers: Sequence[Answer]) -> Row:
    found = mean(answers)
    return {name: found[name] for name in ("questions", "R@10", "MRR@10")}


def gains(report: Report, data: str, perspective: str) -> Row | None:
    """Return points of R@10 and MRR@10 and milliseconds that a perspective brings to the profile; None if untried."""
    found = report["data"][data]
    whole = found["profiles"][report["profile"]]
    for one in found["variants"]:
        if one["perspective"] == perspective and one["way"] in ("with", "without"):
            sign = 1 if one["way"] == "with" else -1
            return {
                "way": one["way"],
                **{key: round(sign * (one[key] - whole[key]), 2) for key in _KEYS},
            }
    return None


_KEYS = ("R@10", "MRR@10", "p50_ms")


def pays(report: Report, perspective: str) -> list[str]:
    """Return the data sets on which a perspective brings the profile ``PAYS`` points or more."""
    found = {name: gains(report, name, perspective) for name in report["data"]}
    return [name for name, one in found.items() if one and one["R@10"] + one["MRR@10"] >= PAYS]


def page(report: Report, name: str) -> str:
    """Return the report as Markdown."""
    data: Mapping[str, Row] = report["data"]
    sizes = [
        [one, *(f"{found[key]:,}" for key in ("conversations", "turns", "questions"))]
        for one, found in data.items()
    ]
    parts = [
        *pages.head(report, name),
        "Written by the command above. The ten best turns of the episodes channel. Where fewer questions stand here "
        "than the data have, they are a sample. Milliseconds are medians on this machine; small samples tell no points "
        "below about two from chance.",
        pages.table(["data", "memories", "turns", "questions"], sizes),
        _unbuilt(report),
        "## Whole profiles",
        pages.table(_header("profile", data), _rows(report["whole"], data)),
        *_goal(report),
        f"## What each brings `{report['profile']}`",
        "Points that are there with it and not without it; where it is no part of the profile, it was added at weight "
        f"1. One pays on a data set when R@10 and MRR@10 together rise by {PAYS} points; one that does not pay on "
        f"{PAYS_ON} of them stays off by default.",
        pages.table([*_header("perspective", data), "pays on"], _brought(report)),
        "## What each brings the vectors alone",
        pages.table(_header("dense and", data), _added(data)),
        *_kinds(report),
        *_subjects(report),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _unbuilt(report: Report) -> str:
    missing = ", ".join(report["not_built"])
    return f"No perspective of their own, so not in the tables below: {missing}." if missing else ""


def _header(first: str, data: Iterable[str]) -> list[str]:
    return [first, *(f"{one}: {key}" for one in data for key in ("R@10", "MRR", "ms"))]


def _rows(profiles: Iterable[str], data: Mapping[str, Row]) -> Iterable[list[str]]:
    for one in profiles:
        yield [
            one,
            *(_number(found["profiles"][one][key]) for found in data.values() for key in _KEYS),
        ]


def _goal(report: Report) -> list[str]:
    if NAME not in report["data"] or SHIPPED not in report["whole"]:
        return []
    found = report["data"][NAME]["profiles"]
    more = found[SHIPPED]["R@10"] - found[ALONE]["R@10"]
    halves = ", ".join(
        f"{half} {one['R@10'] - found[ALONE]['halves'][half]['R@10']:+.1f}"
        for half, one in found[SHIPPED]["halves"].items()
    )
    met = "met" if more >= GOAL else "not met"
    return [
        f"On `{NAME}`, `{SHIPPED}` finds {more:+.1f} points of R@10 beside `{ALONE}` ({halves}); goal {GOAL:g}: {met}."
    ]


def _brought(report: Report) -> Iterable[list[str]]:
    for name in dict.fromkeys(
        one["perspective"] for found in report["data"].values() for one in found["variants"]
    ):
        each = [gains(report, one, name) for one in report["data"]]
        way = "left out" if any(one and one["way"] == "without" for one in each) else "added"
        cells = [_signed(one[key] if one else None) for one in each for key in _KEYS]
        on = pays(report, name)
        yield [f"{name} ({way})", *cells, f"{len(on)}: {', '.join(on)}" if on else "none"]


def _added(data: Mapping[str, Row]) -> Iterable[list[str]]:
    for name in dict.fromkeys(
        one["perspective"] for found in data.values() for one in found["variants"]
    ):
        cells: list[str] = []
        for found in data.values():
            alone = found["profiles"][ALONE]
            tried = _tried(found, name)
            cells += [_signed(tried[key] - alone[key] if tried else None) for key in _KEYS]
        if name != "dense":
            yield [name, *cells]


def _tried(found: Row, name: str) -> Row | None:
    return next(
        (
            one
            for one in found["variants"]
            if (one["way"], one["perspective"]) == ("alone with", name)
        ),
        None,
    )


def _kinds(report: Report) -> list[str]:
    """Return R@10 and MRR@10 by kind of question on the coding project, and what each kind's own enhancer brings it."""
    if NAME not in report["data"]:
        return []
    found = report["data"][NAME]
    kinds = found["profiles"][ALONE]["kinds"]
    header = ["", *(f"{kind} ({one['questions']})" for kind, one in kinds.items())]
    rows = [
        [one, *(_pair(found["profiles"][one]["kinds"][kind]) for kind in kinds)]
        for one in report["whole"]
    ]
    own: list[list[str]] = []
    for id_, kind in OWN_KIND.items():
        name, alone = spaces()[id_].perspective, kinds[kind]
        if tried := _tried(found, name):
            more = [tried["kinds"][kind][key] - alone[key] for key in ("R@10", "MRR@10")]
            own.append(
                [f"{id_} {name}: {kind}", *map(_signed, more), "yes" if sum(more) >= PAYS else "no"]
            )
    return [
        f"## By kind of question, on `{NAME}`",
        "R@10 / MRR@10. Questions of half the topics are held out: nothing was tuned on them.",
        pages.table(header, rows),
        "What a kind's own enhancer brings it, beside the vectors alone:",
        pages.table(["", "R@10", "MRR@10", "pays"], own),
    ]


def _subjects(report: Report) -> list[str]:
    found: list[str] = []
    if one := report.get("topics"):
        header = [name.replace("_", " ") for name in one]
        what = (
            f"What `detect_topics` finds on `{NAME}`, whose true topics are twelve; V-measure and silhouette of what "
            "was grouped, adjusted Rand between before and after a day's additions "
            f"(goal {GOALS['adjusted_rand']}), seconds of the whole job (goal {GOALS['job_s']:g})."
        )
        found += [
            "## Topics",
            what,
            pages.table(header, [["–" if value is None else str(value) for value in one.values()]]),
        ]
    if one := report.get("explored"):
        found.append(
            "With `explore`, at most 15 % of a pack goes to topics that nobody asked for, by Thompson sampling: "
            f"{one['explored']} of {one['questions']} packs of {TOKENS} tokens held such a memory, and the packs "
            f"showed {one['with']} % of what answers the questions, without it {one['without']} %."
        )
    if one := report.get("alerts"):
        found += [
            "## Divergence",
            f"Sessions of neighbouring lines of `{NAME}`. {one['going_on']} go on with their topic: "
            f"{one['false_alarms']:.1%} raise an alert (goal at most {GOALS['false_alarms']:.0%}). {one['changing']} "
            f"end with a line of another topic: {one['found']:.1%} are found (goal at least {GOALS['found']:.0%}). "
            f"{one['ms']['p50']} ms at the median, {one['ms']['p95']} at p95.",
        ]
    elif "topics" in report:
        found.append("Divergence could not be measured: the program has no such operation yet.")
    return found


def _pair(one: Row) -> str:
    return f"{one['R@10']:.1f} / {one['MRR@10']:.1f}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.1f}"


def text(report: Report) -> str:
    """Return what each perspective brings, for a terminal."""
    rows = [
        [*_header("profile", report["data"])],
        *_rows(report["whole"], report["data"]),
        *_brought(report),
    ]
    return "\n".join(["  ".join(row) for row in rows] + _goal(report))


def _draw(report: Report, file: Path) -> None:
    data: Mapping[str, Row] = report["data"]
    with pages.panels(file, len(data)) as axes:
        for axis, (name, found) in zip(axes, data.items(), strict=True):
            names = list(dict.fromkeys(one["perspective"] for one in found["variants"]))
            points = [
                one["R@10"] + one["MRR@10"] if (one := gains(report, name, each)) else 0
                for each in names
            ]
            colours = [
                pages.OURS_COLOUR if point >= PAYS else pages.THEIRS_COLOUR for point in points
            ]
            axis.barh(names[::-1], points[::-1], color=colours[::-1])
            axis.set_title(f"{name}: points of R@10 + MRR@10", fontsize=9)
