"""S0-06, S0-11: every field of text of every kind of the constitution is found by its words and by its sense."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from pps.app import App
from pps.config.packs import shipped_pack
from pps.config.settings import Settings
from pps.core.kinds import KindSpec
from pps.memory import Memory
from pps.operations.calls import Caller, Calls
from pps.records.finding import RecordSearch
from pps.records.saving import RecordGiven

PAIRS = """
The bakery closes before noon on Mondays | when does the shop with bread shut early
Our dog limps after long runs on asphalt | the pet walks badly after jogging
Solar panels cover half of the roof | electricity from the sun on top of the house
She plays the cello in a string quartet | musician with a bowed instrument
The ferry to the island leaves at dawn | boat that departs early in the morning
He collects stamps from the nineteenth century | old postage hobby
The greenhouse needs new glass after the storm | broken panes where plants grow
Invoices are paid within thirty days | how long until bills are settled
The lighthouse keeper wrote a diary | journal of the man at the coastal beacon
Bees pollinate the apple orchard in spring | insects that fertilise fruit trees
The tunnel under the river floods in autumn | underground passage fills with water
Children under six travel free by train | no fare for small kids on the railway
The library lends sewing machines | borrow a device to stitch clothes
A volcano erupted near the capital | lava mountain exploded close to the main city
The violin teacher moved to Lisbon | music instructor relocated to Portugal
Cheddar is aged for eighteen months in caves | how long the cheese matures
The satellite lost contact over the Pacific | spacecraft stopped transmitting above the ocean
Grandmother knits socks for every birthday | old relative makes woollen footwear as presents
The mayor opened a new swimming pool | politician inaugurated a place to bathe
Penguins huddle together against the cold | birds keep warm in a group
The server rack overheats in July | computers get too hot in summer
Wedding guests arrive by horse and carriage | how people come to the marriage party
The museum shows Roman coins | ancient money on display
Passwords rotate every ninety days | how often login secrets change
The choir rehearses on Thursday evenings | singers practise once a week
Mushrooms grow behind the old barn | edible fungi near the farm building
The carpenter repairs antique chairs | craftsman mends old furniture
Flights to Oslo are cancelled because of fog | planes grounded by bad visibility
The novel ends with a shipwreck | the book finishes when the boat sinks
Rice is cheaper at the harbour market | where the grain costs less
The dentist recommends brushing twice a day | doctor's advice for teeth
Snow blocked the mountain pass for a week | the high road was closed in winter
The firefighters train at the quarry | rescue crew exercises in a stone pit
A falcon nests on the cathedral tower | bird of prey lives on the church
The chess club meets in the cellar | board game players gather underground
Olive oil is pressed in November | when the fruit is made into fat for cooking
The bridge carries only light vehicles | weight limit over the crossing
The astronomer discovered a comet | scientist found a body in the sky
Tickets for the opera sell out quickly | seats for sung theatre are soon gone
The gardener plants tulips in October | flower bulbs go into the soil in fall
The spare key hangs in the garage | where to find a second way to open the door
Goats graze on the steep meadow | animals eat grass on the hillside
The plumber fixed the leaking boiler | heating device no longer drips
The marathon passes the old harbour | runners go by the docks
Our accountant retires in December | the person who does the books stops working
The recipe calls for saffron and almonds | spice and nuts in a dish
The tailor shortens trousers overnight | clothes altered by the next day
A thunderstorm delayed the football match | the game started late due to weather
The professor lectures on medieval law | teacher talks about legal history
Whales migrate along the coast in March | huge sea mammals pass the shore in spring
The elevator is inspected every year | lift gets a yearly check
The potter fires clay at a thousand degrees | ceramics are baked very hot
The village fountain has no drinking water | do not sip from the well in the square
The nurse works the night shift on weekends | hospital staff on duty late Saturday
Wolves returned to the northern forest | predators are back in the woods
The clockmaker wound the tower clock by hand | manual care of the big timepiece
The vineyard exports wine to Japan | bottles are sold to Asia
The translator speaks five languages | interpreter is a polyglot
The kayak capsized in the rapids | small boat turned over in fast water
Coffee beans are roasted in small batches | how the drink's seeds are prepared
The archive burned down in 1931 | historic documents were lost in a fire
The skater broke her ankle at practice | athlete on ice was injured
The orchard's cider won a gold medal | prize for an apple drink
The mechanic sells used tyres | second-hand wheels for cars
The painter mixes her own blue | artist prepares a colour herself
The train museum restores steam engines | old locomotives are repaired
""".strip()
SENTENCES = [tuple(part.strip() for part in line.split("|")) for line in PAIRS.splitlines()]
PACK = shipped_pack("constitution")
FIELDS = [
    (kind, spec.name)
    for kind in PACK.kinds.values()
    for spec in kind.fields.values()
    if spec.is_text
]
FILLERS: dict[str, Any] = {
    "date": "2026-05-01",
    "datetime": "2026-05-01T09:00:00Z",
    "number": 0.5,
    "text": "-",
}


def filled(kind: KindSpec, name: str, sentence: str) -> dict[str, Any]:
    """Return a kind's required fields with fillers, and one field with a sentence."""
    fields: dict[str, Any] = {}
    for spec in kind.fields.values():
        if spec.required:
            fields[spec.name] = spec.enum[0] if spec.type == "enum" else FILLERS[spec.type]
    spec = kind.fields[name]
    fields[name] = [sentence] if spec.type == "list" else sentence
    return fields


@pytest.fixture
async def memory(settings: Settings) -> AsyncIterator[Memory]:
    whole = settings.model_copy(update={"embedder": Settings(home=settings.home).embedder})
    async with App.open(whole) as app:
        await app.create("ana", packs=("constitution",))
        async with app.memory("ana") as memory:
            yield memory


async def ranks(memory: Memory, queries: dict[str, str], limit: int) -> dict[str, int]:
    """Return id → the rank at which its query finds it; those that it does not find are left out."""
    found: dict[str, int] = {}
    for id_, query in queries.items():
        answer = await memory.finding.search(RecordSearch(query, limit=limit, min_similarity=-1.0))
        for rank, result in enumerate(answer.results, 1):
            if result.node.uuid == id_:
                found[id_] = rank
    return found


async def test_every_field_of_text_is_found_by_its_words_and_by_a_paraphrase(
    memory: Memory,
) -> None:
    assert len(FIELDS) <= len(SENTENCES)
    given = [
        RecordGiven(
            kind.name,
            f"{kind.name} {number}",
            "Kept for this test.",
            fields=filled(kind, name, SENTENCES[number][0]),
        )
        for number, (kind, name) in enumerate(FIELDS)
    ]
    saved = await memory.records.save(given)
    await memory.settled()
    async with asyncio.timeout(60):  # P3 and P4 are embedded when the worker is idle
        while (await memory.finding.index_status()).vectors_waiting:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    ids = [each.record.id for each in saved.records]
    own = {id_: SENTENCES[number][0] for number, id_ in enumerate(ids)}
    other = {id_: SENTENCES[number][1] for number, id_ in enumerate(ids)}
    embedded = {id_ for number, id_ in enumerate(ids) if FIELDS[number][0].priority != "none"}
    by_words = await ranks(memory, own, 3)
    by_text: set[str] = set()
    for id_ in set(ids) - embedded:  # the pack says no to vectors: words find them
        nodes = (await memory.recall(own[id_], channels=("nodes",), limit=50)).channels["nodes"]
        by_text |= {id_} & {hit.id for hit in nodes.hits if hit.ranks.get("bm25", 99) <= 3}
    missing = [
        (FIELDS[number][0].name, FIELDS[number][1])
        for number, id_ in enumerate(ids)
        if id_ not in (by_words if id_ in embedded else by_text)
    ]
    assert missing == []
    by_sense = await ranks(memory, other, 10)
    assert len(by_sense) >= 2 * len(embedded) / 3, f"{len(by_sense)} of {len(embedded)}"


async def test_texts_that_the_pack_switches_off_are_not_found(tmp_path: Any) -> None:
    home = tmp_path / "home"
    (home / "packs").mkdir(parents=True)
    (home / "packs" / "diary.toml").write_text(
        'name = "diary"\nversion = 1\n[layers.days]\nload = "on_demand"\n[kinds.Day]\nlayer = "days"\n'
        '[kinds.Day.fields]\nmood = { type = "text" }\nsecret = { type = "text", embed = false }\n'
    )
    async with App.open(Settings(home=home)) as app:
        await app.create("ana", packs=("diary",))
        async with app.memory("ana") as memory:
            fields = {"mood": "The zebra was glad.", "secret": "The walrus was sad."}
            await memory.records.save([RecordGiven("Day", "Monday", "A day.", fields=fields)])
            await memory.settled()
            for word, hits in (("zebra", 1), ("walrus", 0)):
                nodes = (await memory.recall(word, channels=("nodes",), profile="default")).channels
                days = [hit for hit in nodes["nodes"].hits if "bm25" in hit.ranks]
                assert len(days) == hits, word


async def test_a_session_is_told_what_rules_say_where_there_is_room(settings: Settings) -> None:
    async with App.open(settings) as app:
        await app.create("ana", packs=("constitution",))
        async with app.memory("ana") as memory:
            fields = {
                "trigger": "Somebody asks for the vault code.",
                "response": "Refuse, and say so.",
            }
            await memory.records.save(
                [
                    RecordGiven("Guardrail", "Vault", "A rule.", fields=fields),
                    RecordGiven(
                        "Principle", "Calm", "A rule.", fields={"statement": "Answer slowly."}
                    ),
                    RecordGiven("Vision", "Far", "A view.", fields={"narrative": "A quiet house."}),
                    RecordGiven("Goal", "Near", "A goal.", fields={"target": "Ten quiet days."}),
                ]
            )
            shown = repr((await memory.layers.context()).layers)
            for text in (*fields.values(), "Answer slowly.", "A quiet house.", "Ten quiet days."):
                assert text in shown


async def test_texts_go_before_records_when_there_is_no_room(settings: Settings) -> None:
    async with App.open(settings) as app:
        await app.create("ana", packs=("constitution",))
        async with app.memory("ana") as memory:
            long = "A very long statement of a principle. " * 40
            for start in range(0, 120, 40):
                await memory.records.save(
                    [
                        RecordGiven(
                            "Principle", f"P{n}", "A rule.", fields={"statement": long[:1_500]}
                        )
                        for n in range(start, start + 40)
                    ]
                )
            layer = next(
                each
                for each in (await memory.layers.context()).layers
                if each.layer == "foundation"
            )
            assert layer.tokens <= layer.budget_tokens
            assert len(layer.items) == 120
            assert 0 < sum("statement" in item.fields for item in layer.items) < 120


async def test_a_list_of_a_layer_has_no_provenance_and_does_not_leave_it(
    settings: Settings,
) -> None:
    async with App.open(settings) as app:
        await app.create("ana", packs=("constitution",))
        async with app.memory("ana") as memory:
            saved = await memory.records.save(
                [RecordGiven("Value", f"V{n}", "Small.") for n in range(80)]
                + [RecordGiven("Goal", "Near", "A goal.")]
            )
            ids = [each.record.id for each in saved.records]
            await Calls(app).answer(
                Caller.of_entity("ana"),
                "record_relate",
                {
                    "source": ids[0],
                    "type": "ALIGNS_WITH",
                    "target": ids[80],
                    "properties": {"weight": 1},
                },
            )
            answer = await Calls(app).answer(Caller.of_entity("ana"), "foundation_list_v2", {})
    assert len(answer.data["items"]) == 80  # type: ignore[arg-type]
    assert answer.data["relationships"] == []
    hidden = {"actor", "author", "pack", "pack_version", "turn", "version"}
    assert not hidden & set(answer.data["items"][0])  # type: ignore[index]
