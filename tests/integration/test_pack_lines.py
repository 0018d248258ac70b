"""The right lines in a prompt's pack: answers, the person's own statements, silence; and no old questions."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pps.app import App
from pps.config import Settings
from pps.core.errors import ConfigError
from pps.core.recalled import NOTHING_NEAR
from pps.core.values import FactDraft, Node, NodeDraft, Turn
from pps.memory import Memory
from pps.operations.recall_tools import recall_text, recall_view

LIFE = Path(__file__).parents[1] / "life"
NEEDLESS = [line.replace("\\n", "\n") for line in (LIFE / "needless.txt").read_text().splitlines()]
SCENES = {scene["name"]: scene for scene in json.loads((LIFE / "scenes.json").read_text())}
START = datetime(2026, 3, 1, 9, tzinfo=UTC)
ALLERGY = "I have a severe tree nut allergy."

NOTES = (
    ("The spare key is under the flower pot.", "Where is the spare key?", "How do I get in without my own key?"),
    ("The drill is with the neighbours in number nine.", "Where is the drill?", "Who has our drilling machine?"),
    ("Recycling is collected every second Wednesday.", "When is recycling collected?", "Which day do they take the paper and glass?"),
    ("The wifi password is on a note inside the fuse box.", "Where is the wifi password?", "What do guests type in to use the wifi?"),
    ("The plumber who fixed the boiler is called Ruud.", "Who fixed the boiler?", "What is the name of the plumber?"),
    ("Dad's birthday is on the ninth of November.", "When is dad's birthday?", "On which date was my father born?"),
    ("The passports are in the blue drawer.", "Where are the passports?", "Where do we keep our travel documents?"),
    ("The hallway is painted in sage green.", "In which colour is the hallway painted?", "What shade do the walls of the corridor have?"),
)  # fmt: skip
"""Eight notes, each with a question in its own words and one in others."""


SMALL_MEMORY = (
    "My gym is Fitlab.",
    "My dentist is Dr. Okafor.",
    "I live in York.",
    "My sister Elena moved to Lisbon in March.",
    "I am allergic to peanuts.",
    "We decided to use Postgres for the billing service.",
    "I drink oat milk in my coffee.",
    "My car is a blue Volvo.",
    "The wifi password of the cabin is on the fridge.",
    "The code review of the parser is due on Friday.",
)
SMALL_QUESTIONS = {
    "Where do I work out?": "Fitlab",
    "who looks after my teeth?": "Okafor",
    "where does my sister live?": "Lisbon",
    "which database do we use for billing?": "Postgres",
    "what do I put in my coffee?": "oat milk",
    "what car do I drive?": "Volvo",
    "what should I avoid eating?": "peanuts",
    "what is the wifi password at the cabin?": "fridge",
    "what do I have to finish by Friday?": "parser",
}


async def tell(memory: Memory, texts: Sequence[str], *, day: int = 0, session: str = "") -> None:
    await memory.remember_many(
        [
            (
                text,
                {
                    "source_ref": f"{day} {session} {at}",
                    "session": session or f"day {day + at // 4}",
                    "occurred_at": START + timedelta(days=day + at // 4, minutes=at),
                },
            )
            for at, text in enumerate(texts)
        ]
    )
    assert await memory.settled()


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    async with App.open(Settings(home=tmp_path)) as opened:
        yield opened


@pytest.fixture
async def ops(app: App) -> AsyncIterator[Memory]:
    await app.create("ops")
    async with app.memory("ops") as memory:
        await tell(memory, SCENES["ops"]["turns"])
        yield memory


@pytest.mark.parametrize("name", sorted(SCENES))
async def test_questions_find_their_answer_and_prompts_that_need_nothing_get_nothing(
    app: App, name: str
) -> None:
    await app.create(name)
    async with app.memory(name) as memory:
        await tell(memory, SCENES[name]["turns"])
        missing: list[str] = []
        for at, asked in enumerate(SCENES[name]["questions"]):
            pack = await memory.sessions.pack(asked["question"], f"q{at}")
            if not pack.sections or asked["answer"] not in pack.text:
                missing.append(asked["question"])
        spoken = [
            text
            for at, text in enumerate(NEEDLESS)
            if (await memory.sessions.pack(text, f"n{at}")).sections
        ]
    assert missing == []
    assert len(spoken) <= 0.05 * len(NEEDLESS), spoken


async def test_a_question_that_retrievers_agree_on_is_answered_below_the_floor(ops: Memory) -> None:
    pack = await ops.sessions.pack("Which region does production run in now?", "s")
    assert "eu-west-1" in pack.text
    assert 1 <= sum(pack.sections.values()) <= 10


async def test_a_small_memory_answers_without_most_of_what_is_unrelated(app: App) -> None:
    await app.create("ana")
    async with app.memory("ana") as memory:
        await tell(memory, SMALL_MEMORY)
        missing: list[str] = []
        unrelated: dict[str, list[str]] = {}
        for question, answer in SMALL_QUESTIONS.items():
            pack = await memory.sessions.pack(question, question)
            lines = [line for line in pack.text.splitlines() if line.startswith("- ")]
            unrelated[question] = [line for line in lines if answer not in line]
            if len(unrelated[question]) == len(lines):
                missing.append(question)
    assert missing == []
    assert all(len(lines) <= 2 for lines in unrelated.values()), unrelated
    assert sum(map(len, unrelated.values())) <= len(SMALL_QUESTIONS), unrelated


async def test_a_weekday_is_no_name_of_somebody_whom_the_memory_does_not_know(app: App) -> None:
    await app.create("ana")
    async with app.memory("ana") as memory:
        await tell(
            memory, ["The code review of the parser is due on Friday.", "I never eat mushrooms."]
        )
        due = await memory.sessions.pack("what do I have to finish by Friday?", "due")
        other = await memory.sessions.pack("what do I have to finish by Sunday?", "other")
    assert "parser" in due.text
    assert "mushrooms" not in due.text + other.text


async def test_a_question_of_one_word_about_the_speaker_is_answered_by_what_has_that_word(
    app: App,
) -> None:
    turns = json.loads((LIFE / "turns.json").read_text())
    read = json.loads((LIFE / "facts.json").read_text())
    await app.create("jonas")
    async with app.memory("jonas") as memory:
        await tell(memory, [turn["text"] for turn in turns])
        drafts = [
            FactDraft(
                "User" if row["subject"] == "Jonas" else row["subject"],
                row["relation"],
                row["object"],
                row["text"],
            )
            for row in read
        ]
        await memory.remember("What is known of Jonas.", facts=drafts)
        assert await memory.settled()
        answered = await memory.sessions.pack("Where do I live?", "first")
        unknown = await memory.sessions.pack("Where do I ski?", "second")
        to_the_agent = await memory.sessions.pack("Where did you live?", "third")
    assert "Gdansk" in answered.text
    assert unknown.sections == to_the_agent.sections == {}


async def test_advice_gets_at_most_three_preferences_and_an_idle_prompt_none(ops: Memory) -> None:
    more = [
        f"I really dislike {thing}."
        for thing in ("olives", "raisins", "anise", "tofu", "coriander")
    ]
    await tell(ops, more, day=20)
    pack = await ops.sessions.pack("suggest classic Italian desserts", "s")
    assert 1 <= pack.sections["preferences"] <= 3
    for idle in ("thanks!", "ok, go on", "good morning!"):
        assert (await ops.sessions.pack(idle, f"i {idle}")).sections == {}


async def test_a_preference_is_in_the_pack_of_the_advice_that_it_is_for(ops: Memory) -> None:
    pack = await ops.sessions.pack("suggest classic Italian desserts", "s")
    assert ALLERGY in pack.text


async def test_a_start_has_the_standing_instructions_and_a_prompt_those_that_fit(app: App) -> None:
    await app.create("bo")
    async with app.memory("bo") as memory:
        rules = [
            f"Always write the {thing} in capitals."
            for thing in ("name", "town", "street", "label", "title", "heading")
        ]
        await tell(
            memory,
            [*rules, "Never suggest meetings before ten in the morning.", "The sky was grey."],
        )
        start = await memory.sessions.pack("", "s", mode="startup")
        assert start.sections["instructions"] == 5
        assert "Never suggest meetings before ten" in start.text
        plain = await memory.sessions.pack("When could we hold the meeting with Ana tomorrow?", "t")
        assert "Never suggest meetings before ten" in plain.text
        assert plain.sections["instructions"] == 1
        again = await memory.sessions.pack("When could we hold the meeting with Ana tomorrow?", "s")
        assert "Never suggest meetings" not in again.text  # the start showed it


@pytest.mark.parametrize("soft", [True, False])
async def test_a_preference_that_was_forgotten_is_in_no_pack(ops: Memory, *, soft: bool) -> None:
    found = await ops.recall("severe tree nut allergy", channels=["episodes"], limit=1)
    [hit] = found["episodes"]
    assert ALLERGY in hit.text
    forgotten = await ops.forget([hit.id], dry_run=False, soft=soft)
    for at in range(2):
        pack = await ops.sessions.pack("suggest classic Italian desserts", f"s{at}")
        assert "allergy" not in pack.text
        assert "allergy" not in (await ops.sessions.pack("", f"t{at}", mode="startup")).text
        assert await ops.settled()
    if soft:
        assert forgotten.restorable_as
        await ops.forgetting.restore(forgotten.restorable_as)
        assert await ops.settled()
        assert ALLERGY in (await ops.sessions.pack("suggest classic Italian desserts", "r")).text


async def place_of(memory: Memory, note: str, question: str) -> int:
    found = await memory.recall(question, channels=["episodes"])
    texts = [hit.item.content for hit in found["episodes"] if isinstance(hit.item, Turn)]
    return texts.index(note) + 1


@pytest.mark.parametrize("way", [1, 2], ids=["same words", "other words"])
async def test_a_question_asked_before_takes_no_place_from_the_note_and_is_in_no_pack(
    app: App, way: int
) -> None:
    await app.create("home")
    async with app.memory("home") as memory:
        await tell(memory, [note[0] for note in NOTES])
        before = {note[0]: await place_of(memory, note[0], note[way]) for note in NOTES}
        assert sum(place == 1 for place in before.values()) >= len(NOTES) - (way - 1)
        for month in (1, 2):
            await tell(memory, [note[way] for note in NOTES], day=30 * month)
        for note in NOTES:
            assert await place_of(memory, note[0], note[way]) <= before[note[0]], note[way]
            pack = await memory.sessions.pack(note[way], f"s {note[way]}")
            assert note[0] in pack.text or before[note[0]] > 1, note[way]
            assert note[1] not in pack.text
            assert note[2] not in pack.text
        asked = f"Did I ask you this before: {NOTES[0][way]}"
        assert await place_of(memory, NOTES[0][way], asked) <= 2


async def test_a_name_lifts_only_what_also_matches_the_rest_of_the_question(app: App) -> None:
    await app.create("lab")
    async with app.memory("lab") as memory:
        nexus = NodeDraft("Nexus", "Project")
        stated = {
            "Nexus reads papers on graph databases.": "READS",
            "Nexus meets every Monday in the library.": "MEETS",
            "Nexus bought a new kettle for the kitchen.": "BOUGHT",
        }
        for text, relation in stated.items():
            fact = FactDraft("Nexus", relation, text.split()[-1], text)
            await memory.remember(text, nodes=[nexus], facts=[fact], extraction="given")
        await tell(
            memory, ["The kitchen tap drips since Sunday.", "We paint the hallway in sage green."]
        )
        pack = await memory.sessions.pack("What did Nexus buy for the kitchen?", "s")
        assert "kettle" in pack.text
        assert "graph databases" not in pack.text
        kitchen = await memory.sessions.pack("what is wrong in the kitchen?", "t")
        assert "tap drips" in kitchen.text
        assert "graph databases" not in kitchen.text


async def test_whats_my_name_gives_what_the_person_said_and_never_the_entitys_own_node(
    app: App,
) -> None:
    await app.create("ana")
    async with app.memory("ana") as memory:
        await tell(memory, ["My name is Sam and I live in Rome.", "The tap drips."])
        for question in ("what's my name?", "who am I?"):
            pack = await memory.sessions.pack(question, question)
            assert "My name is Sam and I live in Rome" in pack.text
            assert "(Self)" not in pack.text


async def test_a_prompts_pack_of_hooks_has_facts_without_nodes_unless_that_is_set(
    tmp_path: Path,
) -> None:
    priya = NodeDraft("Priya", "Person", "A colleague who likes tea.")
    fact = FactDraft("Priya", "WORKS_AT", "Acme", "Priya works at Acme.")
    for nodes in (False, True):
        settings = Settings(home=tmp_path / str(nodes))
        hooks = settings.hooks.model_copy(update={"nodes": nodes})
        async with App.open(settings.model_copy(update={"hooks": hooks})) as app:
            await app.create("ana")
            async with app.memory("ana") as memory:
                await memory.remember(
                    "Priya has a job at Acme now.", nodes=[priya], facts=[fact], extraction="given"
                )
                pack = await memory.sessions.pack("Where does Priya work?", "s")
                assert "Priya works at Acme." in pack.text
                assert ("nodes" in pack.sections) is nodes
                start = await memory.sessions.pack("", "t", mode="startup")
                assert "Priya works at Acme." in start.text
                assert await memory.settled()  # what was shown is noted behind the answer
                again = await memory.sessions.pack("Where does Priya work?", "t")
                assert "Priya works at Acme." not in again.text
                assert "- Priya (Person) [" not in again.text
                asked = await memory.ambient_recall("Where does Priya work?")
                assert "nodes" in asked.sections


async def test_a_resumed_session_is_not_given_what_it_has_before_it(app: App) -> None:
    await app.create("ana")
    async with app.memory("ana") as memory:
        await tell(memory, ["The spare key is under the flower pot."], session="before")
        first = await memory.sessions.pack("", "s", mode="startup")
        assert "flower pot" in first.text
        assert await memory.settled()
        await tell(memory, ["The drill is with the neighbours."], session="s")
        resumed = await memory.sessions.pack("", "s", mode="startup", resumed=True)
        assert resumed.sections == {}
        await tell(memory, ["Dad comes on Friday."], day=1, session="another")
        news = await memory.sessions.pack("", "s", mode="startup", resumed=True)
        assert "Dad comes on Friday." in news.text
        assert "flower pot" not in news.text
        assert "drill" not in news.text
        cleared = await memory.sessions.pack("", "s", mode="startup")
        assert "flower pot" in cleared.text


async def test_one_bad_profile_is_reported_and_keeps_nothing_else_from_working(
    tmp_path: Path,
) -> None:
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "mine.toml").write_text("[channels.facts]\nk = -1\n")
    async with App.open(Settings(home=tmp_path)) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            await tell(memory, ["The spare key is under the flower pot."])
            assert (await memory.recall("Where is the spare key?"))["episodes"]
            with pytest.raises(ConfigError, match=r"mine\.toml: channels\.facts\.k: "):
                await memory.recall("Where is the spare key?", profile="mine")
            health = await memory.health()
            assert not health.ok
            assert any("mine.toml" in problem for problem in health.problems)


async def test_recall_in_words_says_first_that_nothing_is_near_and_then_shows_little(
    ops: Memory,
) -> None:
    far = recall_text(
        recall_view(await ops.recall("Why does my regular expression match too much?"))
    )
    near = recall_text(recall_view(await ops.recall("Who owns billing?")))
    assert far.splitlines()[0] == f"note: {NOTHING_NEAR}"
    assert len([line for line in far.splitlines() if line.startswith("  2. ")]) <= 4
    assert not [line for line in far.splitlines() if line.startswith("  3. ")]
    assert "more, farther away" in far
    assert NOTHING_NEAR not in near
    assert [line for line in near.splitlines() if line.startswith("  3. ")]


async def test_recalls_nodes_say_something_and_never_are_the_entitys_own(app: App) -> None:
    await app.create("ana")
    async with app.memory("ana") as memory:
        nodes = [NodeDraft("Priya", "Person"), NodeDraft("Omar", "Person", "A colleague.")]
        nodes += [NodeDraft("Lena", "Person"), NodeDraft("Acme", "Company")]
        fact = FactDraft("Lena", "WORKS_AT", "Acme", "Lena works at Acme.")
        text = "Priya, Omar and Lena had lunch."
        await memory.remember(text, nodes=nodes, facts=[fact], extraction="given")
        for query in ("Priya, Omar and Lena", "Ana", "what's my name?"):
            found = await memory.recall(query, channels=["nodes"])
            names = {hit.item.name for hit in found["nodes"] if isinstance(hit.item, Node)}
            assert names <= {"Omar", "Lena", "Acme"}, query
        assert {"Omar", "Lena"} <= {
            hit.item.name
            for hit in (await memory.recall("Priya, Omar and Lena", channels=["nodes"]))["nodes"]
            if isinstance(hit.item, Node)
        }
