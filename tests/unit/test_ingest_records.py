"""Records, relations and mentions as plans: planned again they change nothing, whatever the script of their titles."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from pps.core.ids import EntityId, stable_id
from pps.core.text import fold
from pps.core.values import Fact, Node, NodeDraft, RecordDraft, RelationDraft, Turn
from pps.ingest.batch import Batch, TurnOutcome
from pps.ingest.linking import CHILD_OF, REFERENCES, plan_mentions, plan_record, plan_relation
from pps.ingest.statements import plan_given

ENTITY = EntityId("ana", "ent_" + "a" * 26)
OTHER = EntityId("bob", "ent_" + "b" * 26)
START = datetime(2026, 3, 1, 9, tzinfo=UTC)

_SCRIPTS = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12),
    st.sampled_from(
        ["咖啡", "Café", "CAFE\u0301", "кофе", "قهوة", "coffee", "COFFEE", "ß", "SS", "İ", "👩‍🍳"]
    ),
)
titles = _SCRIPTS.map(lambda text: " ".join(text.split())).filter(lambda text: bool(fold(text)))


@dataclass(frozen=True)
class Told:
    """A record that is told: its title, the titles it links to, and that of its parent."""

    title: str
    links: tuple[str, ...]
    parent: str


stories = st.lists(
    st.builds(Told, titles, st.lists(titles, max_size=4).map(tuple), titles | st.just("")),
    min_size=1,
    max_size=5,
)


def batch(entity: EntityId = ENTITY, names: list[str] | None = None) -> Batch:
    """Return a batch that knows plain nodes of these names."""
    made = Batch(entity, START + timedelta(days=90))
    plan_given(made, turn(0), [NodeDraft(name) for name in names or []], [])
    return made


def turn(number: int, entity: EntityId = ENTITY) -> Turn:
    uuid = stable_id(entity.group, "turn", str(number))
    return Turn(uuid, number, "user", f"turn {number}", "s", START, START)


def tell(made: Batch, story: list[Told]) -> list[TurnOutcome]:
    """Plan each record of a story in order; return what each brought."""
    outcomes: list[TurnOutcome] = []
    for number, one in enumerate(story, 1):
        outcome = TurnOutcome()
        draft = RecordDraft(one.title, "Note", one.parent, {"at": one.title})
        plan_record(made, turn(number, made.entity), draft, one.links, outcome)
        outcomes.append(outcome)
    return outcomes


State = tuple[
    dict[str, Node], dict[str, Fact], dict[tuple[str, str], None], dict[str, str], set[str]
]


def state(made: Batch) -> State:
    return (
        dict(made.known),
        dict(made.facts),
        dict(made.mentions),
        dict(made.records),
        set(made.record_nodes),
    )


@given(stories, st.lists(titles, max_size=4))
def test_records_planned_again_change_nothing_once_every_title_is_there(
    story: list[Told], names: list[str]
) -> None:
    made = batch(names=names)
    tell(made, story)
    tell(made, story)  # a link to a later title is made when it is there
    before, nodes = state(made), dict(made.names)
    outcomes = tell(made, story)
    assert state(made) == before
    assert made.names == nodes
    assert [(one.nodes, one.edges) for one in outcomes] == [(0, 0)] * len(story)


@given(stories, st.lists(titles, max_size=4))
def test_a_record_keeps_its_title_its_fields_and_one_node_in_any_script(
    story: list[Told], names: list[str]
) -> None:
    made = batch(names=names)
    outcomes = tell(made, story)
    assert len(set(made.records.values())) == len(story), "two records are never one node"
    for number, (one, outcome) in enumerate(zip(story, outcomes, strict=True), 1):
        node = made.known[made.records[turn(number).uuid]]
        assert (node.uuid, node.name, outcome.title) == (outcome.record, one.title, one.title)
        assert (node.kind, node.attributes["at"]) == ("Note", one.title)
        assert (turn(number).uuid, node.uuid) in made.mentions


@given(stories, st.lists(titles, max_size=4))
def test_each_link_is_a_relation_to_the_node_of_its_title_or_is_said_to_wait(
    story: list[Told], names: list[str]
) -> None:
    made = batch(names=names)
    tell(made, story[:-1])
    known = dict(made.names)
    outcome = tell_last(made, story)
    last = story[-1]
    relations = {
        (fact.subject, fact.object) for fact in made.facts.values() if fact.relation == REFERENCES
    }
    own = fold(last.title)
    for link in last.links:
        target = known.get(fold(link)) or (outcome.record if fold(link) == own else None)
        assert target is None or target == outcome.record or (outcome.record, target) in relations
    waiting = [link for link in last.links if fold(link) not in known and fold(link) != own]
    assert len([one for one in outcome.skipped if "[[" in one.what]) == len(waiting)
    assert all(fact.subject != fact.object for fact in made.facts.values())
    assert {fact.relation for fact in made.facts.values()} <= {REFERENCES, CHILD_OF}


def tell_last(made: Batch, story: list[Told]) -> TurnOutcome:
    """Plan the last record of a story, the others being there; return what it brought."""
    outcome, one = TurnOutcome(), story[-1]
    plan_record(
        made, turn(len(story)), RecordDraft(one.title, "Note", one.parent, {}), one.links, outcome
    )
    return outcome


@given(titles, titles, titles, st.floats(0, 1))
def test_a_relation_planned_again_is_the_same_one_and_not_new(
    source: str, target: str, relation_type: str, weight: float
) -> None:
    made = batch(names=[source, target])
    ends = [made.names[fold(source)], made.names[fold(target)]]
    relation, text = RelationDraft(*ends, relation_type, weight), turn(1)
    uuid, new = plan_relation(made, relation, text)
    fact = made.facts[uuid]
    assert (new, fact.kind, fact.relation) == (True, "relation", relation_type)
    assert (fact.attributes, fact.episodes) == (
        {"weight": weight, "created_by": "ingestion"},
        (text.uuid,),
    )
    assert fact.text.startswith(made.known[ends[0]].name)
    assert fact.text.endswith(made.known[ends[1]].name)
    before = state(made)
    assert plan_relation(made, relation, text) == (uuid, False)
    assert state(made) == before
    changed, new = plan_relation(made, RelationDraft(*ends, relation_type, weight / 2), text)
    assert (changed, new, len(made.facts)) == (uuid, False, 1)
    assert made.facts[uuid].attributes == {"weight": weight / 2, "created_by": "ingestion"}


@given(st.lists(titles, max_size=5), st.lists(titles, max_size=5))
def test_mentions_planned_again_are_no_more_and_each_link_is_a_mention_or_waits(
    names: list[str], links: list[str]
) -> None:
    made, first, second = batch(names=names), TurnOutcome(), TurnOutcome()
    known = {fold(name) for name in names}
    plan_mentions(made, turn(1), links, first)
    before = state(made)
    plan_mentions(made, turn(1), links, second)
    assert state(made) == before
    assert first == second
    assert len(first.skipped) == sum(fold(link) not in known for link in links)
    mentioned = {node for episode, node in made.mentions if episode == turn(1).uuid}
    assert mentioned == {made.names[fold(link)] for link in links if fold(link) in known}


@given(stories)
def test_two_entities_never_have_a_record_or_a_relation_in_common(story: list[Told]) -> None:
    mine, theirs = batch(), batch(OTHER)
    tell(mine, story)
    tell(theirs, story)
    assert not set(mine.known) & set(theirs.known)
    assert not set(mine.facts) & set(theirs.facts)
