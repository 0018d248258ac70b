"""Members who store, share, revoke and ask in any order never see another's private word, nor one that was revoked."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.features.squad import roots, sharing, squad_members
from tests.isolation.house import outcome
from tests.sampling import SEED, sized
from tests.squads import TRIO, Team, write_squad

STEPS = sized(40, 20_000)


@dataclass
class Words:
    """Whose word is private, shared or revoked: word → (member, id)."""

    private: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    shared: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    revoked: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])

    def forbidden(self, member: str) -> set[str]:
        return {
            word for word, (whose, _) in (self.private | self.revoked).items() if whose != member
        }


SIX = TRIO + "".join(
    f'\n[members.{name}]\nrole = "maker"\n' for name in ("chagatai", "temujin", "ogedei")
)


READS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("memory_reflect", {}),
    ("heartbeat", {}),
    ("squad_inbox", {"limit": 200}),
    ("squad_pool", {"limit": 200}),
    ("recall", {"query": "tea kanarie"}),
    ("graph_all", {"limit": 1_000}),
    ("squad_rank", {"algorithm": "pagerank"}),
    ("squad_rank", {"algorithm": "communities"}),
    ("record_list", {"kinds": ["Belief"], "limit": 100}),
)


async def team_of_six(app: App) -> Team:
    write_squad(app.settings.home, "trio", SIX)
    return Team(app, (await squad_members.found(app, "team", "trio", {})).squad)


async def interleaved(team: Team, steps: int) -> list[str]:
    """Return what leaked."""
    chance, words, leaks = random.Random(SEED), Words(), list[str]()  # noqa: S311 - a test's order, no secret
    for number in range(steps):
        member = chance.choice(list(team.squad.members))
        name, given = _asked(chance, words, member, number)
        answer = await outcome(team.ask(member, name, **given))
        said = str(answer)
        leaks += [
            f"{number} {member} {name}: {word}" for word in words.forbidden(member) if word in said
        ]
        _noted(words, member, name, given, answer)
    async with team.app.memory(team.squad.pool, pool=True) as pool:
        held = repr((await pool.records.graph(), await pool.recall("kanarie", limit=100)))
    return leaks + [f"pool: {word}" for word in (*words.private, *words.revoked) if word in held]


def _asked(
    chance: random.Random, words: Words, member: str, number: int
) -> tuple[str, dict[str, Any]]:
    word = f"kanarie{number:06d}x"
    every = [*words.private, *words.shared, *words.revoked] or ["nothing"]
    mine = [id_ for whose, id_ in words.shared.values() if whose == member]
    ids = [id_ for _, id_ in (words.private | words.shared).values()] or [
        "00000000-0000-5000-8000-000000000000"
    ]
    belief = {"type": "Belief", "content": f"Of {word} and tea.", "confidence": 0.9}
    own = [id_ for whose, id_ in (words.private | words.shared).values() if whose == member]
    match chance.choices(range(6), (4, 4, 2, 3, 3, 6))[0]:
        case 0:
            return "memory_store", {**belief, "private": True}
        case 1:
            return "memory_store", {
                **belief,
                "cites": chance.sample(ids, min(len(ids), chance.randint(0, 1))),
            }
        case 2 if mine:
            return "memory_revoke", {"ids": [chance.choice(mine)], "dry_run": False}
        case 3:
            return "memory_query", {"topic": f"tea {chance.choice(every)}", "limit": 50}
        case 4:
            asked = chance.choice(chance.choice((own or ids, ids)))
            return chance.choice(
                (
                    ("memory_share", {"id": asked}),
                    ("get", {"ids": [asked]}),
                    ("record_get", {"ids": [asked]}),
                )
            )
        case _:
            return chance.choice(READS)


def _noted(words: Words, member: str, name: str, given: dict[str, Any], answer: object) -> None:
    if not isinstance(answer, dict):
        return
    word = next(
        (one for one in str(given.get("content", "")).split() if one.startswith("kanarie")), ""
    )
    if name == "memory_store":
        (words.private if given.get("private") else words.shared)[word] = (
            member,
            str(cast("dict[str, Any]", answer)["id"]),
        )
    elif name == "memory_revoke":
        gone = set(given["ids"])
        for one in [one for one, (_, id_) in words.shared.items() if id_ in gone]:
            words.revoked[one] = words.shared.pop(one)


async def test_interleaved_operations_leak_nothing(settings: Settings) -> None:
    async with App.open(settings) as app:
        assert await interleaved(await team_of_six(app), STEPS) == []


async def test_the_proof_can_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(home=tmp_path / "home", embedder=EmbedderSettings(name="hash"))
    monkeypatch.setattr(sharing, "PRIVATE", "no such tag")
    monkeypatch.setattr(roots, "PRIVATE", "no such tag")
    async with App.open(settings) as app:
        assert await interleaved(await team_of_six(app), 40) != []
