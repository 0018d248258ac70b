"""A person's preferences and standing instructions are in packs of their own memory alone, forgotten or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pps.app import App

if TYPE_CHECKING:
    from pps.config import Settings

PROMPT = "Suggest classic Italian desserts."
ALLERGY = "I have a severe {mark} allergy."
RULE = "Always mention {mark} first."


async def test_statements_of_one_are_never_in_packs_of_another(settings: Settings) -> None:
    """Side by side, after a restart, and when one of them has forgotten hers."""
    marks = {"ana": "hazelnut", "ana_2": "sesame", "bea": "lupin"}
    async with App.open(settings) as app:
        for name, mark in marks.items():
            await app.create(name)
            async with app.memory(name) as memory:
                for text in (ALLERGY, RULE):
                    await memory.remember(text.format(mark=mark), session="the same")
                assert await memory.settled()
        await _check(app, marks)
    async with App.open(settings) as app:
        await _check(app, marks)
        async with app.memory("ana") as memory:
            turns = await memory.parts.journal.recent(10)
            await memory.forget([turn.uuid for turn in turns], dry_run=False)
            assert await memory.settled()
        await _check(app, {**marks, "ana": ""})


async def _check(app: App, marks: dict[str, str]) -> None:
    for name, own in marks.items():
        async with app.memory(name) as memory:
            texts = [
                (await memory.sessions.pack(PROMPT, "one session")).text,
                (await memory.sessions.pack("", "one session", mode="startup")).text,
                (await memory.ambient_recall(PROMPT)).text,
            ]
        for text in texts[1:]:
            assert not own or own in text
        for text in texts:
            assert not [
                mark for other, mark in marks.items() if other != name and mark and mark in text
            ]


async def test_a_name_is_spelled_as_in_its_own_memory_alone(settings: Settings) -> None:
    async with App.open(settings) as app:
        for name, spelling in (("ana", "Mohammed"), ("bea", "Mohamed"), ("cid", "Zoltan")):
            await app.create(name)
            async with app.memory(name) as memory:
                await memory.remember(f"{spelling} teaches chemistry.", session="s")
                assert await memory.settled()
        for name, others in (("ana", "Mohamed "), ("bea", "Mohammed"), ("cid", "Moham")):
            async with app.memory(name) as memory:
                recalled = await memory.recall("What does Muhammad teach?", limit=5)
                pack = await memory.ambient_recall("What does Muhammad teach?")
                assert others not in pack.text
                for channel in recalled.channels.values():
                    assert not [hit for hit in channel.hits if others in hit.text]
