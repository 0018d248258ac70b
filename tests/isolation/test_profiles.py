"""Profiles are one installation's: what one lets through is read in each memory alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from pps.app import App
from pps.core.values import FactDraft, NodeDraft, Turn
from pps.memory import Memory
from pps.proof.arena import Watch

NAMES = ("ana", "ana_2")
WHEN = datetime(2026, 3, 7, 8, 30, tzinfo=UTC)


async def tell(memory: Memory, mark: str, watch: Watch) -> None:
    """Tell a memory two things under the same tags, sessions and times as every other memory, and one of its own."""
    name = memory.entity.name
    watch.mark(name, mark, memory.entity.group)
    for number, tag in enumerate(("work", "home", mark)):
        at = WHEN + timedelta(days=number)
        receipt = await memory.remember(
            f"Ana hides the {mark} {number} in the kitchen.",
            tags=[tag],
            session=tag,
            source_ref=str(number),
            occurred_at=at,
            nodes=[NodeDraft(f"{mark} {number}", tags=(tag,))],
            facts=[FactDraft("Ana", "HIDES", f"{mark} {number}", valid_at=at)],
        )
        watch.own(name, receipt.turn_id)
    assert await memory.settled()
    facts = (await memory.timeline(limit=100)).facts
    watch.own(name, *(one for fact in facts for one in (fact.uuid, fact.subject, fact.object)))


def write_profile(app: App, name: str, filters: str) -> None:
    folder = app.settings.home / "profiles"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.toml").write_text(
        f'description = "d"\nextends = "default"\n[filters]\n{filters}\n'
    )


async def test_what_a_profile_lets_through_is_ones_own_and_what_names_another_finds_nothing(
    app: App,
) -> None:
    watch, marks = Watch(), {name: f"{name.replace('_', 'x')}stone" for name in NAMES}
    for name in NAMES:
        await app.create(name)
        async with app.memory(name) as memory:
            await tell(memory, marks[name], watch)
    write_profile(app, "work", 'tags = ["work"]')
    write_profile(app, "first-day", "since = 2026-03-07\nuntil = 2026-03-08")
    for name, mark in marks.items():
        write_profile(app, f"of-{name}", f'sessions = ["{mark}"]')

    for name, other in (NAMES, NAMES[::-1]):
        async with app.memory(name) as memory:
            for profile in ("work", "first-day", f"of-{name}", f"of-{other}"):
                found = await memory.recall(
                    f"Ana kitchen {marks[other]}", profile=profile, limit=50
                )
                turns = [
                    hit.item.content for hit in found["episodes"] if isinstance(hit.item, Turn)
                ]
                at = 2 if profile == f"of-{name}" else 0
                wanted = (
                    []
                    if profile == f"of-{other}"
                    else [f"Ana hides the {marks[name]} {at} in the kitchen."]
                )
                assert turns == wanted, (name, profile)
                assert len(found["facts"]) == len(wanted)
                assert watch.leaks(name, replace(found, query=""), frozenset()) == []
