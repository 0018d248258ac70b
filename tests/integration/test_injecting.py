"""What is injected: sections in order, each within its maximum, with trust; exploring is drawn and off unless asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pps.app import App
from pps.context.pack import SECTIONS
from pps.core.errors import InvalidRequest
from pps.core.values import FactDraft, NodeDraft, Turn
from tests.integration.test_topics import BOATS, BREAD, spaces_by_words, tell

if TYPE_CHECKING:
    from pps.config import Settings

__all__ = ["spaces_by_words"]
ASKED = "What about the rye dough in the oven?"
DIESEL = NodeDraft("Diesel", "ORM", "maps structs to tables")
ODILE = NodeDraft("Odile", "Person")
REPO = NodeDraft("BookingRepo", "Module", "reads and writes bookings")


async def test_an_injected_pack_has_its_sections_in_order_within_their_maxima_and_trust_on_each_line(
    app: App,
) -> None:
    await app.create("ana")
    async with app.memory("ana") as memory:
        await tell(memory, *BREAD, *BOATS)
        await memory.remember(
            "The oven log: rye dough at 230 degrees.", role="tool", session="s", extraction="none"
        )
        await memory.remember(
            "We baked rye on Friday.", role="assistant", kind="summary", session="t"
        )
        await memory.topics.detect()
        pack = await memory.sessions.inject(ASKED, 1_200, "s")
    told = [name for name in SECTIONS if name in pack.sections]
    assert told[0] == "topics"
    assert {"topics", "summaries", "badges"} <= {*told}
    found = pack.text.split("## Said before")[1].split("##")[0] if "episodes" in told else pack.text
    lines = [line for line in found.splitlines() if line.startswith("- ")]
    assert lines
    assert all(line.endswith(("person]", "outside]", "agent]")) for line in lines)
    assert "7 turns since" in pack.text
    assert "explored" not in told


async def test_exploring_is_drawn_the_same_under_a_seed_and_never_shows_what_was_shown(
    app: App,
) -> None:
    await app.create("ana")
    async with app.memory("ana") as memory:
        await tell(memory, *BREAD, *BOATS)
        await memory.topics.detect()
        packs: list[str] = []
        for _ in range(2):
            memory.topics.injecting.chance.seed(7)
            pack = await memory.sessions.inject(ASKED, 1_200, explore=True)
            assert pack.sections["explored"] == 1
            packs.append(pack.text.split("## From other topics\n")[1].splitlines()[0])
        assert packs[0] == packs[1]
        assert any(one[:20] in packs[0] for one in BOATS)
        first = await memory.sessions.inject(ASKED, 1_200, "new", explore=True)
        assert await memory.settled()
        again = await memory.sessions.inject(ASKED, 1_200, "new", explore=True)
        assert len(first.shown) == len({*first.shown})
        assert not {*first.shown} & {*again.shown}
        assert "explored" not in (await memory.sessions.pack(ASKED, "hook")).sections


async def test_packs_of_hooks_have_topics_where_that_is_set_and_no_alerts_by_themselves(
    settings: Settings,
) -> None:
    hooks = settings.hooks.model_copy(update={"topics": True})
    async with App.open(settings.model_copy(update={"hooks": hooks})) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            await tell(memory, *BREAD, *BOATS)
            await memory.topics.detect()
            assert memory.topics.in_hooks == ("topics",)
            assert (await memory.sessions.pack(ASKED, "other")).sections["topics"] == 1


async def test_importance_that_is_given_and_being_shown_decide_what_comes_first(app: App) -> None:
    await app.create("ana")
    async with app.memory("ana") as memory:
        low = (await memory.remember("The shed is green.", importance=0.1)).turn_id
        high = (await memory.remember("The vault code changes on Mondays.", importance=0.9)).turn_id
        plain = (await memory.remember("Rye bread is sour.")).turn_id
        await memory.ambient_recall("Is rye bread sour?", session="x")
        await memory.parts.journal.given.record("y", "turn", 1, [plain])
        uses = {one.turn: one for one in await memory.parts.journal.topics.uses()}
        assert (uses[low].importance, uses[high].importance, uses[plain].importance) == (
            0.1,
            0.9,
            0.5,
        )
        assert uses[plain].shown >= 1
        assert uses[high].shown == 0
        with pytest.raises(InvalidRequest, match="must be 0 to 1"):
            await memory.remember("No.", importance=1.5)


async def test_a_thing_is_found_by_what_it_is_and_what_is_tied_to_it_two_steps_away(
    app: App,
) -> None:
    await app.create("ana")
    async with app.memory("ana") as memory:
        chosen = "Compile-time checks were what won the argument."
        last = "She reviews each change there."
        depends = FactDraft("BookingRepo", "DEPENDS_ON", "Diesel", "BookingRepo depends on Diesel.")
        keeps = FactDraft("Odile", "MAINTAINS", "BookingRepo", "Odile maintains BookingRepo.")
        await memory.remember(chosen, nodes=[DIESEL], extraction="given")
        await memory.remember(
            "Nothing else may import it.", nodes=[REPO, DIESEL], facts=[depends], extraction="given"
        )
        await memory.remember(last, nodes=[REPO, ODILE], facts=[keeps], extraction="given")
        await tell(memory, *BREAD, *BOATS)
        found = await memory.recall(
            "which ORM do we use", profile="multi_space", channels=["episodes", "nodes"]
        )
        assert chosen in [
            hit.item.content for hit in found["episodes"][:2] if isinstance(hit.item, Turn)
        ]
        assert found["nodes"][0].text.startswith("Diesel")
        asked = "who would know about the thing that depends on Diesel"
        found = await memory.recall(
            asked, profile="multi_space", channels=["episodes"], breakdown=True
        )
        [hit] = [
            one
            for one in found["episodes"]
            if isinstance(one.item, Turn) and one.item.content == last
        ]
        assert hit.ranks["near"] > 1
        assert 0 < hit.signals["near"] < 1
