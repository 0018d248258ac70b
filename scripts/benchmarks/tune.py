"""``scripts/bench tune``: what cross-validation would change in a profile, and the change itself where asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks import pages
from benchmarks.choosing import (
    FIGURES,
    HeldOut,
    better_on_most,
    cross_validated,
    means,
    search,
    written,
)
from benchmarks.data import Conversation
from benchmarks.lists import Asked, Lists, Weights, ask_lists, gathered, single_profiles, tunable
from benchmarks.machine import machine
from benchmarks.measuring import origins, throw_away
from benchmarks.quality import Asking, Progress, ask, write
from benchmarks.reading import data_path, read
from benchmarks.scores import Answer, mean
from pps import __version__
from pps.app import App
from pps.config import Settings
from pps.core.errors import ConfigError, InvalidRequest
from pps.models.factory import make_colbert
from pps.recall.channel_profile import ChannelProfile
from pps.recall.profiles import Profiles
from pps.recall.request import DEFAULT_PROFILE


@dataclass(frozen=True, slots=True)
class TuneWanted:
    """What a tuning run is asked for.

    Attributes:
        data: Folders or files to choose on, each weighing the same; none for the environment's.
        profile: Whose episodes channel is tuned.
        write: The profile's TOML file, changed when the choice is recommended.
        out: Folder where the result is kept as ``tune.json``, ``tune.md`` and ``tune.png``.
    """

    data: tuple[str, ...] = ()
    profile: str = DEFAULT_PROFILE
    write: Path | None = None
    out: Path | None = None

    def command(self) -> str:
        """Return the command that asks for the same, without this machine's paths."""
        data = " --data DATA" * max(1, len(self.data))
        profile = f" --profile {self.profile}" if self.profile != DEFAULT_PROFILE else ""
        return f"scripts/bench tune{data}{profile}{' --out docs/benchmarks' if self.out else ''}"


async def tune(wanted: TuneWanted, env: Mapping[str, str], progress: Progress) -> dict[str, Any]:
    """Ask once, choose by cross-validation, and return what would change as plain JSON.

    Raises:
        ConfigError: Data are missing, or the profile's episodes channel is not joined by ranks.
        InvalidRequest: The data or an option are not what they should be.
    """
    paths = [data_path(one, env) for one in wanted.data or ("",)]
    sets = {path.stem: await asyncio.to_thread(read, path) for path in paths}
    if wanted.write and not wanted.write.is_file():
        raise InvalidRequest("write", f"{wanted.write} is not a profile's file")
    async with throw_away(env) as settings:
        channel = _channel(settings, wanted.profile)
        whose = origins(settings, [wanted.profile])
        lists, answers = await _asked(settings, sets, wanted.profile, progress)
    if not len(lists.golden):
        raise InvalidRequest(
            "data", "no question names a turn that answers it, so there is nothing to choose by"
        )
    start = Weights(channel.k, tuple(channel.perspectives[name] for name in tunable(channel)))
    found = await asyncio.to_thread(_chosen, lists, start, progress)
    told = await asyncio.to_thread(_told, wanted, channel, found, (lists, answers))
    told = {**told, "origins": whose}
    if wanted.out:
        await asyncio.to_thread(pages.save, told, wanted.out, "tune", markdown, _draw)
    return told


@dataclass(frozen=True, slots=True)
class _Choice:
    start: Weights
    chosen: Weights
    held_out: list[HeldOut]


def _chosen(lists: Lists, start: Weights, progress: Progress) -> _Choice:
    return _Choice(start, search(lists, start), cross_validated(lists, start, progress))


def _channel(settings: Settings, profile: str) -> ChannelProfile:
    channel = Profiles.load(settings).get(profile).channels.get("episodes")
    if channel is None or channel.fusion != "rrf":
        raise ConfigError(
            f"profile {profile!r} joins no episodes by ranks, so there are no weights to choose"
        )
    if make_colbert(settings.colbert, settings.embedder) is None:
        return channel.without_colbert()
    return channel


async def _asked(
    settings: Settings, sets: Mapping[str, Sequence[Conversation]], profile: str, progress: Progress
) -> tuple[Lists, dict[str, list[Answer]]]:
    """Return every question's lists, and the profile's own answers to compare their joining with."""
    channel = _channel(settings, profile)
    single_profiles(settings, tunable(channel), Profiles.load(settings).get(profile).filters)
    asked: list[Asked] = []
    answers: dict[str, list[Answer]] = {name: [] for name in sets}
    async with App.open(settings) as app:
        for data, one in [
            (name, one) for name, conversations in sets.items() for one in conversations
        ]:
            kept = await write(app, one, f"tune_{len(app.registry.list())}", progress)
            async with app.memory(kept.entity) as memory:
                asked += await ask_lists(memory, data, kept, one.scored(), channel)
                answers[data] += await ask(memory, one, kept, Asking(profile, long=False), progress)
    return gathered(asked), answers


def _told(
    wanted: TuneWanted,
    channel: ChannelProfile,
    choice: _Choice,
    asked: tuple[Lists, Mapping[str, Sequence[Answer]]],
) -> dict[str, Any]:
    lists, answers = asked
    names = tunable(channel)
    recommended = choice.chosen != choice.start and better_on_most(choice.held_out)
    weights = dict(zip(names, choice.chosen.of, strict=True))
    if wanted.write and recommended:
        wanted.write.write_text(
            written(wanted.write.read_text("utf-8"), choice.chosen.k, weights), "utf-8"
        )
    engine = [mean(found) for found in answers.values() if found]
    return {
        "benchmark": "tune",
        "title": f"k and weights of the profile {wanted.profile}",
        "version": __version__,
        "command": wanted.command(),
        "profile": wanted.profile,
        "machine": machine(),
        "questions": len(lists.golden),
        "check": {
            "joined_again": _figures(means(lists, choice.start)),
            "asked": {
                name: round(fmean(one[name] or 0.0 for one in engine), 2) for name in FIGURES
            },
        },
        "now": {**_as_json(names, choice.start), **_figures(means(lists, choice.start))},
        "chosen": {**_as_json(names, choice.chosen), **_figures(means(lists, choice.chosen))},
        "held_out": [
            {
                "name": one.name,
                "questions": one.questions,
                "chosen_without_it": _as_json(names, one.chosen),
                "now": _figures(one.before),
                "chosen": _figures(one.after),
                "gain": round(one.gain, 2),
            }
            for one in choice.held_out
        ],
        "recommended": recommended,
        "written": str(wanted.write) if wanted.write and recommended else None,
    }


def markdown(found: Mapping[str, Any], name: str) -> str:
    """Return the result as a page."""
    parts = [
        *pages.head(found, name),
        "Chosen by cross-validation: each set of data (of a single one, each conversation) was held out in turn, and "
        "what was chosen on the others is compared on it with the profile as it was. Each set weighs the same. Figures "
        "in percent.",
        f"```text\n{text(found)}\n```",
    ]
    return "\n\n".join(parts) + "\n"


def _draw(found: Mapping[str, Any], file: Path) -> None:
    rows = [(f"{one['name']}\nheld out", one) for one in found["held_out"]]
    with pages.panels(file, len(FIGURES)) as axes:
        for axis, figure in zip(axes, FIGURES, strict=True):
            for shift, when, colour in (
                (-0.2, "now", pages.THEIRS_COLOUR),
                (0.2, "chosen", pages.OURS_COLOUR),
            ):
                values = [one[when][figure] for _, one in rows]
                bars = axis.barh(
                    [at + shift for at in range(len(rows))], values, 0.36, color=colour, label=when
                )
                axis.bar_label(bars, [f"{value:.1f}" for value in values], fontsize=7, padding=2)
            axis.set_yticks(range(len(rows)), [name for name, _ in rows])
            axis.invert_yaxis()
            axis.margins(x=0.12)
            axis.set_title(f"{figure}, percent", loc="left", fontsize=10)
        axes[0].legend(fontsize=8, frameon=False, loc="lower right")


def text(found: Mapping[str, Any]) -> str:
    """Return what was found, for a terminal."""
    lines = [
        f"now:    {_line(found['now'])}",
        f"chosen: {_line(found['chosen'])}",
        "held out, chosen on the others:",
    ]
    lines += [
        f"  {one['name']} ({one['questions']}): {_figures_line(one['now'])} → {_figures_line(one['chosen'])} "
        f"({one['gain']:+.2f})"
        for one in found["held_out"]
    ]
    if found["written"]:
        lines.append(f"written to {found['written']}")
    elif found["recommended"]:
        lines.append("better on most of what it had not seen: --write FILE changes the profile")
    else:
        lines.append("not better on most of what it had not seen: nothing to change")
    return "\n".join(lines)


def _as_json(names: Sequence[str], weights: Weights) -> dict[str, Any]:
    return {"k": weights.k, "weights": dict(zip(names, weights.of, strict=True))}


def _figures(values: Sequence[float]) -> dict[str, float]:
    return {name: round(value, 2) for name, value in zip(FIGURES, values, strict=True)}


def _line(found: Mapping[str, Any]) -> str:
    weights = ", ".join(f"{name} {weight:g}" for name, weight in found["weights"].items())
    return f"k {found['k']:g}, {weights}: {_figures_line(found)}"


def _figures_line(found: Mapping[str, float]) -> str:
    return " ".join(f"{name} {found[name]:.1f}" for name in FIGURES)
