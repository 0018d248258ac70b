"""A relation that a pack has between two kinds one way alone is kept that way, and the receipt says so."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.config.packs import shipped_pack
from pps.core.errors import InvalidRequest
from pps.core.kinds import ANY_KIND, PLAIN_KIND, FieldSpec, Kinds, RelationSpec
from pps.core.record_values import RecordQuery
from pps.core.values import JSON, RelationDraft
from pps.entities.routing import owner as owner_router
from pps.memory import Memory
from pps.operations.calls import Caller, Calls, owner
from pps.operations.inventory import schema_of, schema_words
from pps.records.records import Join
from pps.records.saving import RecordGiven, RelationGiven

PACKS = ("constitution", "squad", "events")
VALUES: dict[str, JSON] = {
    "text": "x",
    "number": 0.5,
    "integer": 1,
    "bool": True,
    "date": "2026-03-01",
    "datetime": "2026-03-01T09:00:00Z",
    "duration": "PT1H",
    "json": {},
    "ref": "x",
}


def value_of(spec: FieldSpec) -> JSON:
    if spec.type == "enum":
        return spec.enum[0]
    if spec.type == "list":
        return [value_of(spec.of) if spec.of else "x"]
    return VALUES[spec.type]


def one_way(pack: str) -> Iterator[RelationSpec]:
    """Yield the relations of a pack that a person makes, which join two kinds one way alone."""
    found = shipped_pack(pack)
    every = {(one.name, one.source, one.target) for one in found.relations}
    for one in found.relations:
        ends = {one.source, one.target}
        if (
            one.source != one.target
            and not ends & {ANY_KIND, PLAIN_KIND, *found.reserved}
            and one.name not in found.reserved
            and (one.name, one.target, one.source) not in every
            and (one.name, ANY_KIND, ANY_KIND) not in every
        ):
            yield one


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    settings = Settings(home=tmp_path / "home", embedder=EmbedderSettings(name="hash"))
    async with App.open(settings) as opened:
        yield opened


@pytest.fixture
async def memory(app: App) -> AsyncIterator[Memory]:
    await app.create("ana", packs=["constitution"])
    async with app.memory("ana") as opened:
        yield opened


INSIGHT = RecordGiven("Insight", "Late coffee", "It costs sleep.", fields={"confidence": 0.8})
EVIDENCE = RecordGiven("Evidence", "Sleep diary", "Six bad nights.")


async def kinds_joined(memory: Memory, ids: list[str]) -> list[tuple[str, str, str]]:
    graph = await memory.records.graph()
    by_id = {one.id: one for one in graph.relations}
    return [
        (
            by_id[id_].type,
            graph.records[by_id[id_].source].kind,
            graph.records[by_id[id_].target].kind,
        )
        for id_ in ids
    ]


@pytest.mark.parametrize("pack", PACKS)
def test_every_relation_of_a_shipped_pack_is_known_the_other_way(pack: str) -> None:
    kinds = Kinds([shipped_pack(pack)])
    for one in one_way(pack):
        assert kinds.is_turned(one.name, one.target, one.source), one
        assert not kinds.is_turned(one.name, one.source, one.target), one
        with pytest.raises(InvalidRequest, match=f"other way, {one.source} → {one.target}"):
            kinds.relation(one.name, one.target, one.source)
    words = schema_words(schema_of((shipped_pack(pack),)))
    for one in shipped_pack(pack).relations:
        assert f"{one.source} → {one.target}" in words
    if any(one_way(pack)):
        assert "one given the other way round is kept this way, with a warning" in words


@pytest.mark.parametrize("pack", ["constitution", "squad"])
async def test_every_relation_given_the_other_way_is_kept_the_right_way_with_a_warning(
    app: App, pack: str
) -> None:
    await app.create("all", packs=[pack])
    relations = list(one_way(pack))
    assert len(relations) > 10
    kinds = sorted({kind for one in relations for kind in (one.source, one.target)})
    known = shipped_pack(pack).kinds
    async with app.memory("all") as memory:
        records = [
            RecordGiven(
                kind,
                f"The {kind}",
                "A summary.",
                fields={
                    name: value_of(spec)
                    for name, spec in known[kind].fields.items()
                    if spec.required
                },
            )
            for kind in kinds
        ]
        await memory.records.save(records)
        joins = [
            Join(
                f"The {one.target}",
                RelationGiven(
                    one.name,
                    f"The {one.source}",
                    {name: value_of(spec) for name, spec in one.fields.items()},
                ),
            )
            for one in relations
        ]
        made = await memory.records.join_with_warnings(joins)
        assert await kinds_joined(memory, [*made.ids]) == [
            (one.name, one.source, one.target) for one in relations
        ]
        assert list(made.warnings) == [
            f"relations[{number}]: {one.name} leads {one.source} → {one.target}: "
            "it was kept that way round, from the target to the source"
            for number, one in enumerate(relations)
        ]
        right = [
            Join(one.relation.target, replace(one.relation, target=one.source)) for one in joins
        ]
        again = await memory.records.join_with_warnings(right)
        assert (again.ids, again.created, again.warnings) == (made.ids, 0, ())


async def test_a_save_keeps_relations_the_right_way_and_says_so_in_its_receipt(app: App) -> None:
    await app.create("ana", packs=["constitution"])
    calls, caller = Calls(app), Caller.of_entity("ana")
    evidence = {
        "kind": "Evidence",
        "title": EVIDENCE.title,
        "summary": EVIDENCE.summary,
        "relations": [{"type": "SUPPORTED_BY", "target": INSIGHT.title}],
    }
    insight = {
        "kind": "Insight",
        "title": INSIGHT.title,
        "summary": INSIGHT.summary,
        "fields": {"confidence": 0.8},
    }
    answer = await calls.answer(caller, "record_save", {"records": [evidence, insight]})
    warning = (
        "relations[0]: SUPPORTED_BY leads Insight → Evidence: it was kept that way round, "
        "from the target to this record"
    )
    saved = cast("list[dict[str, Any]]", answer.data["records"])
    assert [one.get("warnings", []) for one in saved] == [[warning], []]
    assert warning in answer.text
    relate = {
        "source": EVIDENCE.title,
        "type": "SUPPORTED_BY",
        "target": INSIGHT.title,
        "properties": {"strength": 0.5},
    }
    answer = await calls.answer(caller, "record_relate", relate)
    assert answer.data["warnings"] == [
        "SUPPORTED_BY leads Insight → Evidence: it was kept that way round, "
        "from the target to the source"
    ]
    assert "leads Insight → Evidence" in answer.text
    assert answer.data["ids"] == saved[0]["relations"]
    async with app.memory("ana") as memory:
        assert await kinds_joined(memory, answer.data["ids"]) == [
            ("SUPPORTED_BY", "Insight", "Evidence")
        ]
        await memory.settled()
        [fact] = await memory.get(answer.data["ids"])
        assert fact.uuid == answer.data["ids"][0]  # the graph has it too


async def test_a_table_of_records_says_which_rows_were_turned(app: App, tmp_path: Path) -> None:
    await app.create("ana", packs=["constitution"])
    calls, caller = Calls(app), owner(owner_router())
    (tmp_path / "rows.csv").write_text(
        "kind,title,summary,confidence,SUPPORTED_BY\n"
        "Insight,Late coffee,It costs sleep.,0.8,\n"
        "Evidence,Sleep diary,Six bad nights.,,Late coffee\n"
    )
    for dry_run in (True, False):
        paths = [str(tmp_path / "rows.csv")]
        arguments = {"entity": "ana", "paths": paths, "format": "records", "dry_run": dry_run}
        answer = await calls.answer(caller, "import", arguments)
        assert "rows.csv row 3: relations[0]: SUPPORTED_BY leads Insight → Evidence" in answer.text
    async with app.memory("ana") as memory:
        [relation] = (await memory.records.graph()).relations
        assert await kinds_joined(memory, [relation.id]) == [
            ("SUPPORTED_BY", "Insight", "Evidence")
        ]


async def test_relations_of_plain_nodes_name_the_right_way_of_records(memory: Memory) -> None:
    await memory.records.save([INSIGHT, EVIDENCE])
    made = await memory.records.relate(
        [RelationDraft(EVIDENCE.title or "", INSIGHT.title or "", "SUPPORTED_BY")]
    )
    assert made.ids == ()
    [skipped] = made.skipped
    assert "SUPPORTED_BY leads Insight → Evidence" in skipped.why
    assert "record_relate" in skipped.why


async def test_turning_a_relation_lets_no_actor_write_what_it_may_not(memory: Memory) -> None:
    # “discuss” writes goals and no tasks; SERVES leads from a task to a goal.
    await memory.records.save(
        [
            RecordGiven("Goal", "Run a marathon", "Far.", fields={"deadline": "2027-05-01"}),
            RecordGiven("Task", "Buy shoes", "That fit."),
        ]
    )
    discuss = memory.by("discuss").records
    serves = RelationGiven("SERVES", "Buy shoes")
    with pytest.raises(InvalidRequest, match="'discuss' may not write Task"):
        await discuss.join_with_warnings([Join("Run a marathon", serves)])
    with pytest.raises(InvalidRequest, match="'discuss' may not write Task"):
        await discuss.save([RecordGiven("Goal", "Run a marathon", relations=(serves,))])
    assert (await memory.records.graph()).relations == ()
    page = await memory.records.list(RecordQuery(kinds=("Goal",)))
    assert [one.version for one in page.records] == [1]


async def test_relations_of_neither_way_and_of_foreign_ends_stay_errors(
    app: App, memory: Memory
) -> None:
    await memory.records.save([INSIGHT, EVIDENCE])
    with pytest.raises(InvalidRequest, match="does not join Evidence → Insight"):
        await memory.records.join(
            [Join("Sleep diary", RelationGiven("ENFORCED_BY", "Late coffee"))]
        )
    await app.create("ben", packs=["constitution"])
    async with app.memory("ben") as ben:
        theirs = (await ben.records.save([INSIGHT])).records[0].record.id
    with pytest.raises(InvalidRequest, match="no record or node of this memory has that id"):
        await memory.records.join([Join("Sleep diary", RelationGiven("SUPPORTED_BY", theirs))])
