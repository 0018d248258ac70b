"""What still mentions what is forgotten: all of it, by whole names, and taken along where that is asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest

from pps.core.errors import InvalidRequest, NotFound
from pps.core.values import FactDraft, NodeDraft
from pps.ingest.mentions import NamePattern
from tests.squads import Team, team_of_three

if TYPE_CHECKING:
    from pps.app import App
    from pps.core.reports import Forgotten
    from pps.memory import Memory


@pytest.fixture
async def ana(app: App) -> AsyncIterator[Memory]:
    await app.create("ana")
    async with app.memory("ana") as memory:
        yield memory


async def tell_of_wren(memory: Memory) -> str:
    """Tell a memory of Wren, called Birdie too, in every kind of item; return the id of the node."""
    wren = NodeDraft("Wren", kind="Person", aliases=("Birdie",))
    likes = FactDraft("Wren", "LIKES", "Rye", text="Wren likes rye.")
    await memory.remember("She likes rye.", nodes=[wren], facts=[likes], extraction="none")
    await memory.remember("I met birdie's sister.", extraction="none")
    await memory.remember("The wrench is rusty; renew it.", extraction="none")
    bob = NodeDraft("Bob", kind="Person", summary="Wren's brother.")
    met = FactDraft("Bob", "MET", "Ana", text="Bob met Ana through WREN.")
    await memory.remember("Bob came by.", nodes=[bob], facts=[met], extraction="none")
    await memory.anchor_save("Party", "Invite Bob and Wren.", slug="party")
    [node] = await memory.get(["Wren"])
    return node.uuid


def texts(of: Forgotten) -> set[str]:
    assert of.mentions is not None
    return {item.text for item in of.mentions.items}


async def test_a_dry_run_shows_everything_that_mentions_a_node_and_stays(ana: Memory) -> None:
    node = await tell_of_wren(ana)
    shown = await ana.forget([node])
    mentions = shown.mentions
    assert mentions is not None
    assert mentions.names == ("Wren", "Birdie")
    assert (mentions.turns, mentions.facts, mentions.nodes, mentions.anchors) == (2, 1, 1, 1)
    assert texts(shown) == {
        "user: She likes rye.",
        "user: I met birdie's sister.",
        "Bob met Ana through WREN.",
        "Bob (Person)",
        "Party",
    }
    assert {item.text for item in shown.items} == {"Wren (Person)", "Wren likes rye."}


async def test_what_was_done_says_what_still_answers(ana: Memory) -> None:
    node = await tell_of_wren(ana)
    done = await ana.forget([node], dry_run=False, soft=True)
    assert done.mentions is not None
    assert done.mentions.total == 5
    entry = await ana.forgetting.get(done.restorable_as)
    assert entry.mentions is not None
    found = entry.mentions  # by names alone: the links to the node went with it
    assert (found.turns, found.facts, found.nodes, found.anchors) == (1, 1, 1, 1)
    with pytest.raises(NotFound):
        await ana.forgetting.get("5b3c1a52-0000-4000-8000-000000000000")


async def test_mentions_go_along_by_kind_and_come_back_together(ana: Memory) -> None:
    node = await tell_of_wren(ana)
    done = await ana.forget([node], dry_run=False, soft=True, along=("turns", "facts"))
    assert len(done.turns) == 2
    assert texts(done) == {"Bob (Person)", "Party"}
    assert [turn.content for turn in await ana.parts.journal.scan(0, 10)] == [
        "The wrench is rusty; renew it.",
        "Bob came by.",
    ]
    assert [one.slug for one in await ana.anchor_list()] == ["party"]
    await ana.forgetting.restore(done.restorable_as)
    assert (await ana.get([node]))[0].uuid == node
    assert len(await ana.parts.journal.scan(0, 10)) == 4


async def test_nothing_mentions_it_is_said_only_where_that_is_so(ana: Memory) -> None:
    node = await tell_of_wren(ana)
    everything = ("turns", "facts", "nodes", "anchors")
    done = await ana.forget([node], dry_run=False, along=everything)
    assert done.mentions is not None
    assert done.mentions.total == 0
    found = await ana.recall("Wren Birdie", limit=50)
    answers = [hit.text for channel in found.channels.values() for hit in channel.hits]
    assert not [
        text for text in answers if "wren " in text.casefold() or "birdie" in text.casefold()
    ]


async def test_a_forgotten_fact_says_which_turn_still_says_it(ana: Memory) -> None:
    await tell_of_wren(ana)
    [fact] = [one for one in (await ana.timeline()).facts if one.text == "Wren likes rye."]
    shown = await ana.forget([fact.uuid])
    assert texts(shown) == {"user: She likes rye."}
    turn = await ana.forget(list(fact.episodes))
    assert turn.mentions is None


async def test_more_turns_than_a_request_may_name_go_along(ana: Memory) -> None:
    wren = NodeDraft("Wren", kind="Person")
    told = [(f"Wren came at {number}.", {"extraction": "none"}) for number in range(620)]
    await ana.remember("Wren.", nodes=[wren], extraction="none")
    await ana.remember_many(told)  # pyright: ignore[reportArgumentType] - a literal of options
    await ana.settled()
    [node] = await ana.get(["Wren"])
    shown = await ana.forget([node.uuid])
    assert shown.mentions is not None
    assert (shown.mentions.turns, len(shown.mentions.items)) == (621, 20)
    done = await ana.forget([node.uuid], dry_run=False, along=("turns",))
    assert len(done.turns) == 621
    with pytest.raises(InvalidRequest, match="give 1 to 500 ids"):
        await ana.forget([])


@pytest.mark.parametrize(
    ("name", "text", "is_found"),
    [
        ("Wren", "The wren sang.", True),
        ("Wren", "Wren's loaf", True),
        ("Wren", "two Wrens", True),
        ("Wren", "a wrench", False),
        ("Zoë Lind", "zoë   lind came", True),
        ("王芳", "昨天王芳来了", True),
        ("C++", "I like C++.", True),
        ("Wren", "mail from @wren_alder", True),
        ("Wren", "see notes_wren.md", True),
        ("Wren", "W\u00adr\u200ben came", True),
        ("Zoë Lind", "Zoe Lind came", True),
        ("Zoe", "Zoe\u0308 came", True),
        ("かき", "がきが来た", False),
        ("snake_case", "the snake_case names", True),
        ("I", "I like tea", False),
    ],
)
def test_names_are_found_as_whole_words_in_any_script(name: str, text: str, is_found: bool) -> None:
    assert NamePattern([name]).is_in(text) is is_found


async def test_copies_in_a_squads_pool_that_mention_a_node_are_shown_and_taken_along(
    app: App,
) -> None:
    team: Team = await team_of_three(app)
    belief = {"type": "Belief", "confidence": 0.9}
    mine = await team.store("jochi", "Wren pays late.", **belief)
    theirs = await team.store("mongke", "Wren is kind.", **belief)
    await team.ask(
        "jochi",
        "remember",
        content="Seen.",
        facts=[{"subject": "Wren", "relation": "LIKES", "object": "Rye", "text": "She likes rye."}],
    )
    node = (await team.ask("jochi", "forget", ids=["Wren"]))["asked"]
    shown = await team.ask("jochi", "forget", ids=node)
    copies = {one["id"]: one["text"] for one in shown["mentions"]["items"] if one["kind"] == "copy"}
    assert copies == {
        mine["copy"]["id"]: "jochi: Wren pays late.",
        theirs["copy"]["id"]: "mongke: Wren is kind.",
    }
    assert shown["mentions"]["copies"] == 2
    done = await team.ask("jochi", "forget", ids=node, dry_run=False, soft=True, along=["copies"])
    assert done["copies"] == [mine["copy"]["id"]]
    assert done["mentions"]["copies"] == 1
    pool = await team.pool_text()
    assert "Wren pays late." not in pool
    assert "Wren is kind." in pool
