"""``scripts/bench tune`` judges the formula that is shipped: what it calls "now" is what recall itself scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.choosing import FIGURES
from benchmarks.commands import Wanted, quality
from benchmarks.tune import TuneWanted, tune
from pps.config import shipped

PLACES = (
    *("hall", "attic", "cellar", "porch", "landing", "pantry"),
    *("stable", "tower", "study", "garden", "chapel", "loft"),
)
THINGS = (
    *("lamp", "kettle", "mirror", "ladder", "clock", "basket"),
    *("candle", "drum", "saddle", "globe", "bell", "rug"),
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two conversations in which an assistant states as much as a person does."""
    folder = tmp_path / "data"
    folder.mkdir()
    turns: list[dict[str, Any]] = []
    queries: list[dict[str, Any]] = []
    for group in ("one", "two"):
        for day, place in enumerate(PLACES):
            mine, yours = THINGS[day], THINGS[(day * 5 + len(group)) % len(THINGS)]
            said = [
                f"Assistant: The old brass {mine} stands by the green door of the {place} since June, under a cloth.",
                "Ben: And what else do you keep?",
                f"Ana: An old brass {yours} lies by the green door of the {place} since June, in a box.",
            ]
            for at, content in enumerate(said):
                when = f"2024-01-{day + 1:02}T08:00:{at:02}+00:00"
                turns.append(
                    {
                        "uuid": f"{group} {day} {at}",
                        "group_id": group,
                        "session": day,
                        "content": content,
                    }
                    | {"valid_at": when}
                )
            query = f"Which old brass {mine} or {yours} was by the green door, in the {place}?"
            gold = [f"{group} {one} 2" for one in range(len(PLACES))]
            queries.append(
                {"qid": f"{group}{day}", "group_id": group, "query": query, "gold_episodes": gold}
            )
    # The lines of a file need not be in the order of what was said.
    (folder / "episodes.jsonl").write_text(
        "".join(json.dumps(one) + "\n" for one in reversed(turns))
    )
    (folder / "queries.jsonl").write_text("".join(json.dumps(one) + "\n" for one in queries))
    return folder


async def test_now_is_what_quality_scores_on_the_same_data(data: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    env = {"PPS_HOME": str(home), "PPS_EMBEDDER__NAME": "hash", "PPS_STORE": "embedded"}
    default = (shipped("config/profiles") / "default.toml").read_text("utf-8")
    (home / "profiles").mkdir(parents=True)
    (home / "profiles" / "unlifted.toml").write_text(
        default.replace("assistant = 0.5", "assistant = 1.0")
    )

    scored = await quality(Wanted(data=str(data)), env, lambda *_: None)
    tuned = await tune(TuneWanted(data=(str(data),)), env, lambda *_: None)
    unlifted = await tune(TuneWanted(data=(str(data),), profile="unlifted"), env, lambda *_: None)

    figures = scored["profiles"]["default"]["all"]
    assert {name: tuned["now"][name] for name in FIGURES} == {
        name: figures[name] for name in FIGURES
    }
    assert tuned["check"]["joined_again"] == tuned["check"]["asked"]
    assert unlifted["check"]["joined_again"] == unlifted["check"]["asked"]
    assert (tuned["origins"], unlifted["origins"]) == (
        {"default": "shipped"},
        {"unlifted": "yours"},
    )
    # The data tell the two apart, so that a factor that is left out is seen.
    assert unlifted["now"]["R@10"] < tuned["now"]["R@10"] < 100
