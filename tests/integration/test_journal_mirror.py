"""What filters and look-ups read: names found in any script, supports, and filters checked against a plain reading."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from pps.core.ids import new_group, stable_id
from pps.core.time import coarse, precision_of
from pps.core.values import Fact, Node, Turn
from pps.journal import JobPayload, TurnDraft
from pps.journal.filters import ItemFilter
from pps.journal.journal import Journal
from tests.graph_file import delete_items, save_facts, save_nodes
from tests.journal_place import JournalPlace

MOMENT = datetime(2026, 3, 7, 8, 30, tzinfo=UTC)
LATER = datetime(2030, 1, 1, tzinfo=UTC)
GROUP = new_group()


@pytest.fixture
async def journal(place: JournalPlace) -> AsyncIterator[Journal]:
    async with await place.open() as opened:
        yield opened


def uid(name: str) -> str:
    return stable_id(GROUP, "test", name)


def node(
    name: str, *aliases: str, kind: str = "Thing", tags: tuple[str, ...] = (), age_d: int = 0
) -> Node:
    created = MOMENT - timedelta(days=age_d)
    return Node(uid(name), name, created, kind=kind, aliases=aliases, tags=tags)


async def named(journal: Journal, text: str, known: list[Node]) -> list[str]:
    names = {one.uuid: one.name for one in known}
    return [names[uuid] for uuid in await journal.named_in(text, 50)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Who runs the CAFÉ lumen these days?", ["Café Lumen"]),
        ("who runs cafe lumen", ["Café Lumen"]),
        ("the café, Lumen's cat", ["Café Lumen"]),
        ("priya's sister and Priya Raman", ["Priya Raman", "Priya"]),
        ("Priyanka called", []),
        ("Priyas Schwester und Priya Ramans Hut", ["Priya Raman", "Priya"]),
        ("priya’s sister", ["Priya"]),
        ("ask Bo. or maybe Bob", ["Bo"]),
        ("C++ or node.js?", ["node.js", "C++"]),
        ("我昨天在咖啡馆见到了李明", ["咖啡馆", "李明"]),
        ("山田太郎さんに会いました", ["山田 太郎"]),
        ("민수가 왔다", ["민수"]),
        ("प्रिया ने चाय बनाई", ["प्रिया"]),
        ("قالت ليلى إنها قادمة", ["ليلى"]),
        ("ไปร้านกาแฟลูเมนกัน", ["ลูเมน"]),
        ("a 🐱 on the mat", ["🐱"]),
        (
            "the restaurant at the end of the universe is a book",
            ["The Restaurant at the End of the Universe"],
        ),
        ("it is what it is", []),
        ("x marks the spot; 喝茶", []),
        ("", []),
        ('"((NOT* AND) -- ; DROP TABLE', []),
    ],
)
async def test_names_are_found_in_any_script(
    journal: Journal, text: str, expected: list[str]
) -> None:
    known = [
        node(name)
        for name in (
            "Café Lumen", "Priya", "Priya Raman", "Bo", "C++", "node.js", "咖啡馆", "李明", "山田 太郎", "민수",
            "प्रिया", "ليلى", "ลูเมน", "🐱", "The Restaurant at the End of the Universe", "It", "X", "茶", "!!!",
        )
    ]  # fmt: skip
    await save_nodes(journal, known)
    assert await named(journal, text, known) == expected


async def test_a_name_that_is_a_stop_word_is_found_where_it_is_meant(journal: Journal) -> None:
    known = [node("Will"), node("US"), node("It")]
    await save_nodes(journal, known)
    assert await named(journal, "did Will move to the US?", known) == ["Will", "US"]
    assert await named(journal, "Will you tell us about it?", known) == []
    assert await named(journal, "it", known) == ["It"]


async def test_aliases_are_found_too_and_names_win_over_them(journal: Journal) -> None:
    known = [
        node("Priya", age_d=1),
        node("Priyamvada Rao", "Priya", "PR", age_d=9),
        node("Tarn", age_d=1),
    ]
    known.append(Node(uid("older Tarn"), "Tarn", MOMENT - timedelta(days=30)))
    await save_nodes(journal, known)
    found = await journal.resolve(["  PRIYA ", "pr", "tarn", "nobody", ""])
    assert found == {"priya": uid("Priya"), "pr": uid("Priyamvada Rao"), "tarn": uid("older Tarn")}
    assert await journal.named_in("priya", 10) == [uid("Priya"), uid("Priyamvada Rao")]
    assert await journal.named_in("priya", 1) == [uid("Priya")]


async def test_a_renamed_node_is_no_longer_found_by_its_old_name(journal: Journal) -> None:
    await save_nodes(
        journal, [Node(uid("n"), "Lumen", MOMENT, aliases=("Café Lumen",), tags=("coffee",))]
    )
    await save_nodes(journal, [Node(uid("n"), "Umbra", MOMENT, kind="Place")])
    assert await journal.resolve(["lumen", "café lumen", "umbra"]) == {"umbra": uid("n")}
    assert await journal.allowed("node", ItemFilter(tags=("coffee",))) == set()
    assert await journal.allowed("node", ItemFilter(kinds=("Place",))) == {uid("n")}


async def test_a_deleted_node_and_its_facts_are_gone(journal: Journal) -> None:
    await save_nodes(journal, [node("Lumen"), node("Tarn")])
    await save_facts(journal, [fact(1, subject="Lumen", episodes=("e",))])
    await delete_items(journal, "node", [uid("Lumen"), uid("never seen")])
    assert await journal.resolve(["Lumen", "Tarn"]) == {"tarn": uid("Tarn")}
    assert await journal.facts_supported_by([uid("e")]) == {}
    assert await journal.count_facts() == 0
    await delete_items(journal, "node", [uid("Tarn")])
    assert await journal.resolve(["Tarn"]) == {}


def fact(
    number: int,
    *,
    subject: str = "s",
    episodes: tuple[str, ...] = (),
    **fields: datetime | str | None,
) -> Fact:
    return Fact(
        uid(f"f{number}"),
        uid(subject),
        uid("o"),
        "KNOWS",
        "text",
        MOMENT,
        episodes=tuple(uid(episode) for episode in episodes),
        **fields,  # pyright: ignore[reportArgumentType]
    )


async def test_an_episode_gives_the_facts_it_supports_oldest_first(journal: Journal) -> None:
    await save_facts(
        journal,
        [
            fact(1, episodes=("e1", "e2"), valid_at=MOMENT),
            fact(2, episodes=("e1",), valid_at=MOMENT - timedelta(days=1), invalid_at=MOMENT),
        ],
    )
    found = await journal.facts_supported_by([uid("e2"), uid("e1"), uid("none")])
    assert found == {uid("e1"): [uid("f2"), uid("f1")], uid("e2"): [uid("f1")]}
    await save_facts(journal, [fact(1, episodes=("e3",))])
    assert await journal.facts_supported_by([uid("e1"), uid("e3")]) == {
        uid("e1"): [uid("f2")],
        uid("e3"): [uid("f1")],
    }


DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("start", "end", "expired", "held"),
    [
        (None, None, None, True),
        (MOMENT, None, None, True),
        (MOMENT + DAY, None, None, False),
        (MOMENT - DAY, MOMENT, None, False),
        (MOMENT - DAY, MOMENT + timedelta(microseconds=1), None, True),
        (None, MOMENT, None, False),
        (MOMENT - DAY, None, MOMENT, False),
        (MOMENT - DAY, None, MOMENT + DAY, True),
    ],
)
async def test_as_of_is_half_open(
    journal: Journal,
    start: datetime | None,
    end: datetime | None,
    expired: datetime | None,
    held: bool,
) -> None:
    await save_facts(journal, [fact(1, valid_at=start, invalid_at=end, expired_at=expired)])
    assert await journal.allowed("fact", ItemFilter(as_of=MOMENT)) == (
        {uid("f1")} if held else set()
    )


async def test_facts_that_the_clock_turned_are_told(journal: Journal) -> None:
    await save_facts(
        journal,
        [
            fact(1, valid_at=MOMENT),
            fact(2, valid_at=MOMENT - 9 * DAY, invalid_at=MOMENT),
            fact(3, valid_at=MOMENT - DAY, invalid_at=MOMENT + DAY),
            fact(4),
        ],
    )
    turned = await journal.facts_turning(MOMENT - timedelta(hours=1), MOMENT)
    assert turned == [uid("f2")]  # one that begins is there already
    assert await journal.facts_turning(MOMENT, MOMENT + timedelta(hours=1)) == []


async def test_no_filter_restricts_nothing(journal: Journal) -> None:
    for kind in ("node", "fact", "episode", "anchor"):
        assert await journal.allowed(kind, ItemFilter()) is None
    assert await journal.allowed("anchor", ItemFilter(tags=("x",))) == set()
    assert await journal.allowed("node", ItemFilter(kinds=("Nothing",))) == set()


async def test_a_time_without_a_zone_in_a_filter_is_of_the_entity(journal: Journal) -> None:
    midnight = datetime(2026, 1, 1, tzinfo=ZoneInfo("America/Los_Angeles"))
    await save_facts(journal, [fact(1, valid_at=midnight)])
    before, then = (ItemFilter(as_of=datetime(2026, 1, 1) - step) for step in (DAY, 0 * DAY))  # noqa: DTZ001
    assert await journal.allowed("fact", then) == set(), (
        "in UTC that is eight hours before it began"
    )
    journal.zone = ZoneInfo("America/Los_Angeles")
    assert await journal.allowed("fact", then) == {uid("f1")}
    assert await journal.allowed("fact", before) == set()


ZONES = (
    "America/Los_Angeles",
    "America/New_York",
    "Europe/Berlin",
    "Asia/Kathmandu",
    "Pacific/Kiritimati",
)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("day", [date(2026, 3, 29), date(2026, 11, 1), date(2026, 3, 8)])
async def test_a_day_holds_what_is_shown_on_it_and_no_more(
    journal: Journal, zone: str, day: date
) -> None:
    """Instants at both ends of the day, and the dates of the days around it; the clock may be set that night."""
    journal.zone = ZoneInfo(zone)
    midnight = datetime.combine(day, time(), ZoneInfo(zone))
    following = datetime.combine(day + DAY, time(), ZoneInfo(zone))
    last = following.astimezone(UTC) - timedelta(seconds=1)
    await save_facts(
        journal,
        [
            fact(1, valid_at=midnight.astimezone(UTC)),
            fact(2, valid_at=last),
            fact(3, valid_at=midnight.astimezone(UTC) - timedelta(seconds=1)),
            fact(4, valid_at=following.astimezone(UTC)),
            fact(5, valid_at=coarse(day)),
            fact(6, valid_at=coarse(day - DAY)),
            fact(7, valid_at=coarse(day + DAY)),
            fact(8, valid_at=coarse(day, "month")),
            fact(9, valid_at=coarse(day + 40 * DAY, "month")),
            fact(10, valid_at=coarse(day, "year")),
        ],
    )
    spans = (
        ItemFilter(since=midnight, until=following),
        ItemFilter(since=midnight.replace(tzinfo=None), until=following.replace(tzinfo=None)),
        ItemFilter(since=coarse(day), until=coarse(day + DAY)),
        ItemFilter(since=midnight.astimezone(UTC), until=following.astimezone(UTC)),
    )
    wanted = {uid(f"f{n}") for n in (1, 2, 5, 8, 10)}
    for span in spans:
        assert await journal.allowed("fact", replace(span, as_of=LATER)) == wanted


@pytest.mark.parametrize("zone", ZONES)
async def test_a_date_begins_and_ends_at_midnight_of_the_person(
    journal: Journal, zone: str
) -> None:
    journal.zone = ZoneInfo(zone)
    day = date(2026, 6, 2)
    midnight = datetime.combine(day, time(), ZoneInfo(zone))
    before = midnight - timedelta(seconds=1)
    await save_facts(
        journal,
        [
            fact(1, valid_at=coarse(day)),
            fact(2, valid_at=coarse(day - DAY), invalid_at=coarse(day)),
        ],
    )
    assert await journal.allowed("fact", ItemFilter(as_of=before)) == {uid("f2")}
    assert await journal.allowed("fact", ItemFilter(as_of=midnight)) == {uid("f1")}
    assert await journal.facts_turning(before, midnight) == [uid("f2")]
    assert await journal.facts_turning(midnight, midnight + DAY) == []


@pytest.mark.parametrize("zone", ZONES)
async def test_a_turn_of_a_date_alone_is_of_that_day(journal: Journal, zone: str) -> None:
    journal.zone = ZoneInfo(zone)
    appended = await journal.append(TurnDraft("Rain.", occurred_at=coarse(date(2026, 6, 2))))
    assert precision_of(appended.turn.occurred_at) == "day"
    for day, ids in ((1, set[str]()), (2, {appended.turn.uuid}), (3, set[str]())):
        since = datetime(2026, 6, day, tzinfo=ZoneInfo(zone))
        wanted = ItemFilter(since=since, until=since + DAY)
        assert await journal.allowed("episode", wanted) == ids
        assert set(await journal.within("episode", since, since + DAY, 10)) == ids


class World:
    """A random memory and a slow, plain reading of the filter's definition."""

    def __init__(self, seed: int) -> None:
        pick = random.Random(seed)  # noqa: S311 - test data
        self.pick = pick
        self.nodes = [
            node(
                f"node {n}",
                kind=pick.choice("ABC"),
                tags=tuple(pick.sample(["t1", "t2", "t3"], 1)),
                age_d=n,
            )
            for n in range(30)
        ]
        self.drafts = [
            TurnDraft(
                f"turn {n}",
                session=pick.choice(["s1", "s2"]),
                source=pick.choice(["api", "hook"]),
                role=pick.choice(["user", "assistant"]),
                kind=pick.choice(["turn", "note"]),
                tags=tuple(pick.sample(["t1", "t4"], pick.randrange(3))),
                occurred_at=MOMENT - timedelta(hours=n),
            )
            for n in range(40)
        ]
        self.turns: dict[str, Turn] = {}
        self.facts: list[Fact] = []

    async def fill(self, journal: Journal) -> None:
        appended = await journal.append_many([(draft, JobPayload()) for draft in self.drafts])
        self.turns = {one.turn.uuid: one.turn for one in appended}
        pick, uuids = self.pick, list(self.turns)
        ages = (None, 400, 10, -5)
        for number in range(120):
            start, end = pick.choice(ages), pick.choice((None, 200, 1, -9))
            self.facts.append(
                Fact(
                    uid(f"fact {number}"),
                    pick.choice(self.nodes).uuid,
                    pick.choice(self.nodes).uuid,
                    pick.choice(["KNOWS", "LIKES"]),
                    "text",
                    MOMENT - timedelta(days=number),
                    kind=pick.choice(["fact", "relation"]),
                    episodes=tuple(pick.sample(uuids, pick.randrange(3))),
                    valid_at=None if start is None else MOMENT - timedelta(days=start),
                    invalid_at=None if end is None else MOMENT - timedelta(days=end),
                    expired_at=pick.choice([None, None, MOMENT - timedelta(days=50)]),
                )
            )
        await save_nodes(journal, self.nodes)
        await save_facts(journal, self.facts)

    def filter(self) -> ItemFilter:
        pick = self.pick

        def some(values: list[str]) -> tuple[str, ...]:
            return tuple(pick.sample(values, 1)) if pick.random() < 0.3 else ()

        return ItemFilter(
            kinds=some(["A", "fact", "turn"]),
            tags=some(["t1", "T2", "t4"]),
            sources=some(["api", "hook"]),
            relations=some(["KNOWS", "LIKES"]),
            sessions=some(["s1", "s2"]),
            roles=some(["user", "assistant"]),
            since=pick.choice([None, None, MOMENT - timedelta(days=60)]),
            until=pick.choice([None, None, MOMENT - timedelta(hours=20)]),
            as_of=pick.choice([MOMENT, MOMENT - timedelta(days=100)]),
        )

    def facts_for(self, wanted: ItemFilter) -> set[str]:
        return {one.uuid for one in self.facts if self._fact_passes(one, wanted)}

    def nodes_for(self, wanted: ItemFilter) -> set[str]:
        ends = {
            end
            for one in self.facts
            if self._said(one, wanted)
            for end in (one.subject, one.object)
        }
        named = [
            one
            for one in self.facts
            if one.relation in wanted.relations and self._holds(one, wanted)
        ]
        joined = {end for one in named for end in (one.subject, one.object)}
        tags = {tag.lower() for tag in wanted.tags}
        return {
            one.uuid
            for one in self.nodes
            if (not wanted.kinds or one.kind in wanted.kinds)
            and (not tags or tags & set(one.tags))
            and within(one.created_at, wanted)
            and (not (wanted.sources or wanted.sessions or wanted.roles) or one.uuid in ends)
            and (not wanted.relations or one.uuid in joined)
        }

    def episodes_for(self, wanted: ItemFilter) -> set[str]:
        tags = {tag.lower() for tag in wanted.tags}
        supporting = {
            uuid for one in self.facts if one.relation in wanted.relations for uuid in one.episodes
        }
        return {
            uuid
            for uuid, turn in self.turns.items()
            if came_from(turn, wanted)
            and (not wanted.kinds or turn.kind in wanted.kinds)
            and (not tags or tags & set(turn.tags))
            and within(turn.occurred_at, wanted)
            and (wanted.as_of is None or turn.occurred_at <= wanted.as_of)
            and (not wanted.relations or uuid in supporting)
        }

    def _fact_passes(self, one: Fact, wanted: ItemFilter) -> bool:
        ends = [end for end in self.nodes if end.uuid in (one.subject, one.object)]
        tags = {tag for end in ends for tag in end.tags}
        tags |= {tag for episode in one.episodes for tag in self.turns[episode].tags}
        return (
            (not wanted.kinds or bool({one.kind, *(end.kind for end in ends)} & set(wanted.kinds)))
            and (not wanted.tags or bool(tags & {tag.lower() for tag in wanted.tags}))
            and (not wanted.relations or one.relation in wanted.relations)
            and within(one.valid_at or one.created_at, wanted)
            and (not (wanted.sources or wanted.sessions or wanted.roles) or self._said(one, wanted))
            and self._holds(one, wanted)
        )

    @staticmethod
    def _holds(one: Fact, wanted: ItemFilter) -> bool:
        moment = wanted.as_of or MOMENT
        return (
            (one.valid_at is None or one.valid_at <= moment)
            and (one.invalid_at is None or one.invalid_at > moment)
            and (one.expired_at is None or one.expired_at > moment)
        )

    def _said(self, one: Fact, wanted: ItemFilter) -> bool:
        return any(came_from(self.turns[episode], wanted) for episode in one.episodes)


def came_from(turn: Turn, wanted: ItemFilter) -> bool:
    return (
        (not wanted.sources or turn.source in wanted.sources)
        and (not wanted.sessions or turn.session in wanted.sessions)
        and (not wanted.roles or turn.role in wanted.roles)
    )


def within(moment: datetime, wanted: ItemFilter) -> bool:
    return (wanted.since is None or moment >= wanted.since) and (
        wanted.until is None or moment < wanted.until
    )


async def test_filters_agree_with_a_plain_reading_of_their_definition(journal: Journal) -> None:
    world = World(seed=7)
    await world.fill(journal)
    sizes: set[int] = set()
    for _ in range(300):
        wanted = world.filter()
        assert await journal.allowed("fact", wanted) == world.facts_for(wanted)
        for kind, expected in (
            ("node", world.nodes_for(wanted)),
            ("episode", world.episodes_for(wanted)),
        ):
            found = await journal.allowed(kind, wanted)  # pyright: ignore[reportArgumentType]
            every = {one.uuid for one in world.nodes} if kind == "node" else set(world.turns)
            assert (every if found is None else found) == expected
            sizes.add(len(expected))
    assert len(sizes) > 10  # the filters were neither all empty nor all full
