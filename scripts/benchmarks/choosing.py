"""Choosing k and the weights of the episodes channel by cross-validation over sets of data.

A coordinate search over a grid of round numbers: one number at a time is set to the value that scores best, until no
single change gains a tenth of a point. Each set weighs the same, however many questions it has, and is held out in
turn (of one set alone, each conversation): what was chosen without it is compared on it with the profile as it is.
Only what wins there on most of them is worth a change.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.lists import Lists, Weights
from pps.core.errors import InvalidRequest

WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
KS = (1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 60.0)
LEAST_GAIN = 0.1
"""Percentage points of the mean figure below which a number stays as it was."""
_ROUNDS = 10

FIGURES = ("R@5", "R@10", "MRR@10")


@dataclass(frozen=True, slots=True)
class HeldOut:
    """A set or a conversation, scored by what was chosen without it. Figures in percent, as ``FIGURES`` has them."""

    name: str
    questions: int
    chosen: Weights
    before: tuple[float, ...]
    after: tuple[float, ...]

    @property
    def gain(self) -> float:
        """Points that the mean of the figures gains."""
        return float(np.mean(self.after) - np.mean(self.before))


def means(lists: Lists, weights: Weights) -> tuple[float, ...]:
    """Return the mean figures over the questions, in percent, each set weighing the same."""
    _, at, sizes = np.unique(lists.sets, return_inverse=True, return_counts=True)
    return tuple(
        float(one)
        for one in 100 * np.average(lists.figures(weights), axis=0, weights=1 / sizes[at])
    )


def search(lists: Lists, start: Weights) -> Weights:
    """Return weights that score best on the mean of the figures, by coordinate search from ``start``.

    At least one weight stays above 0.
    """
    best, score = start, float(np.mean(means(lists, start)))
    for _ in range(_ROUNDS):
        improved = False
        for options in _directions(best):
            scored = [(float(np.mean(means(lists, one))), one) for one in options if any(one.of)]
            top, weights = max(scored, key=lambda pair: pair[0])
            if top >= score + LEAST_GAIN:
                best, score, improved = weights, top, True
        if not improved:
            break
    return best


def cross_validated(
    lists: Lists, start: Weights, progress: Callable[[str, int, int], None]
) -> list[HeldOut]:
    """Return each set, or each conversation of the only one, scored by what was chosen on the others."""
    names = list(dict.fromkeys(lists.parts()))
    found: list[HeldOut] = []
    for name in names if len(names) > 1 else []:
        inside = [one == name for one in lists.parts()]
        held, others = lists.of(inside), lists.of([not one for one in inside])
        chosen = search(others, start)
        found.append(
            HeldOut(name, len(held.golden), chosen, means(held, start), means(held, chosen))
        )
        progress("choosing without each part", len(found), len(names))
    return found


def better_on_most(held_out: Sequence[HeldOut]) -> bool:
    """Tell whether the choice wins on more than half of what was held out, and over all of it."""
    gains = [one.gain for one in held_out]
    return sum(gain > 0 for gain in gains) * 2 > len(gains) and sum(gains) > 0


def written(text: str, k: float, weights: Mapping[str, float]) -> str:
    """Return a profile's TOML with other numbers for its episodes channel; comments and all else stay.

    Raises:
        InvalidRequest: The file has no tables ``[channels.episodes]`` and ``[channels.episodes.perspectives]`` that
            name them.
    """
    lines: list[str] = []
    table, has_k = "", False
    for line in text.splitlines():
        name = line.partition("=")[0].strip()
        if line.strip().startswith("["):
            if table == "channels.episodes" and not has_k:
                lines.append(f"k = {k:g}")
                has_k = True
            table = line.strip().strip("[]")
        elif table == "channels.episodes" and name == "k":
            line, has_k = f"k = {k:g}", True
        elif table == "channels.episodes.perspectives" and name in weights:
            line = f"{name} = {float(weights[name])}"
        lines.append(line)
    changed = "\n".join(lines) + "\n"
    episodes = tomllib.loads(changed).get("channels", {}).get("episodes", {})
    if episodes.get("k") != k or episodes.get("perspectives", {}) != {
        **episodes.get("perspectives", {}),
        **weights,
    }:
        raise InvalidRequest(
            "write", "the file has no tables [channels.episodes] and its perspectives to change"
        )
    return changed


def _directions(weights: Weights) -> list[list[Weights]]:
    """Return, for k and for each weight, what it could be set to."""
    ks = [replace(weights, k=k) for k in KS]
    others = [
        [replace(weights, of=(*weights.of[:at], value, *weights.of[at + 1 :])) for value in WEIGHTS]
        for at in range(len(weights.of))
    ]
    return [ks, *others]
