"""S3-01: squads are made from files, again and again the same; who is a member is looked up at each call."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import pps
from pps.app import App
from pps.core.errors import InvalidRequest, NotFound
from pps.features.squad import squad_members
from pps.features.squad.agent import AgentMemory
from pps.features.squad.desk import desk_of
from pps.features.squad.knowing import Knowledge
from pps.features.squad.openclaw_files import take_in
from pps.features.squad.squad_work import needs_attention
from tests.squads import TRIO, write_squad


async def test_a_squad_is_made_once_and_binds_what_is_there(app: App) -> None:
    write_squad(app.settings.home, "trio")
    await app.create("ana")
    made = await squad_members.found(app, "team", "trio", {"main": "ana"})
    assert {one.id: one.entity.name for one in made.squad.members.values()} == {
        "kublai": "ana",
        "mongke": "team_mongke",
        "jochi": "team_jochi",
    }
    assert set(made.tokens) == {"mongke", "jochi"}
    again = await squad_members.found(app, "team", "trio", {"kublai": "ana"})
    assert (again.squad, again.tokens) == (made.squad, {})
    for name in ("ana", "team_jochi"):
        async with app.memory(name) as memory:
            assert "Belief" in memory.kinds
    squads = app.registry.squads
    assert squads.is_member("ana")
    found = squads.of_member("team_mongke")
    assert found is not None
    assert found[1].role == "researcher"
    squads.remove("team", "kublai")
    assert not squads.is_member("ana")
    assert squads.of_member("ana") is None
    with pytest.raises(NotFound):
        squads.remove("team", "kublai")


async def test_the_rules_of_a_squad_follow_its_file(app: App) -> None:
    write_squad(app.settings.home, "trio")
    await squad_members.found(app, "team", "trio", {})
    write_squad(app.settings.home, "trio", TRIO + '\n[members.ogedei]\nrole = "ops"\n')
    again = await squad_members.found(app, "team", "trio", {})
    assert list(again.squad.members) == ["kublai", "mongke", "jochi", "ogedei"]
    assert set(again.tokens) == {"ogedei"}


async def test_an_entity_is_of_one_squad_and_an_entity_that_was_used_never_becomes_a_pool(
    app: App,
) -> None:
    write_squad(app.settings.home, "trio")
    await app.create("ana")
    await app.create("other_pool")
    squad = (await squad_members.found(app, "team", "trio", {"kublai": "ana"})).squad
    with pytest.raises(InvalidRequest, match="there is an entity 'other_pool'"):
        await squad_members.found(app, "other", "trio", {})
    for taken in ("ana", "team_pool"):
        with pytest.raises(InvalidRequest, match="is of a squad already"):
            await squad_members.found(app, "third", "trio", {"kublai": taken})
    with pytest.raises(InvalidRequest, match="is no member"):
        await squad_members.join(app, squad, "nobody")


async def test_a_squad_that_is_erased_leaves_its_members(app: App) -> None:
    write_squad(app.settings.home, "trio")
    squad = (await squad_members.found(app, "team", "trio", {})).squad
    await squad_members.disband(app, squad)
    assert app.registry.squads.list() == []
    assert [one.entity.name for one in app.registry.list()] == [
        "team_jochi",
        "team_kublai",
        "team_mongke",
    ]
    assert not app.registry.squads.is_member("team_jochi")


async def test_a_program_opens_a_member_by_squad_and_alias(app: App) -> None:
    write_squad(app.settings.home, "trio")
    squad = (await squad_members.found(app, "team", "trio", {})).squad
    async with (
        desk_of(app, squad.members["kublai"].entity) as desk,
        desk_of(app, squad.members["jochi"].entity) as two,
    ):
        one, other = AgentMemory(desk), AgentMemory(two)
        await one.add_experience("User requested competitor analysis", type="task_request")
        await one.store(
            Knowledge("Rivals are cheap.", "Belief", confidence=0.6, domain="competitive")
        )
        await other.store(
            Knowledge("Rivals are slow.", "Belief", confidence=0.9, domain="competitive")
        )
        found = await one.get_beliefs(domain="competitive")
        assert [belief.summary for belief in found] == ["Rivals are cheap.", "Rivals are slow."]
        assert [b.summary for b in await one.get_beliefs("competitive", min_confidence=0.7)] == [
            "Rivals are slow."
        ]
        assert [b.summary for b in await other.get_beliefs("competitive")] == ["Rivals are slow."]
        sheet = await one.reflect()
        assert [e.summary for e in sheet.experiences] == ["User requested competitor analysis"]
        assert [b.summary for b in sheet.beliefs] == ["Rivals are cheap."]


async def test_open_member_finds_it_in_a_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PPS_EMBEDDER__NAME", "hash")
    write_squad(tmp_path, "trio")
    settings = pps.load().model_copy(update={"home": tmp_path})
    async with App.open(settings) as app:
        await squad_members.found(app, "team", "trio", {})
    async with pps.open_member("team", "main", home=tmp_path) as kublai:
        assert kublai.desk.me.id == "kublai"
        assert await kublai.get_beliefs() == []
    with pytest.raises(InvalidRequest, match="is no member"):
        async with pps.open_member("team", "nobody", home=tmp_path):
            pass


async def test_what_a_program_forgets_of_a_member_is_out_of_the_pool_when_it_closes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PPS_EMBEDDER__NAME", "hash")
    settings = pps.load().model_copy(update={"home": tmp_path})
    write_squad(tmp_path, "trio")
    async with pps.App.open(settings) as app:
        squad = (await squad_members.found(app, "team", "trio", {})).squad
        async with desk_of(app, squad.members["mongke"].entity) as desk:
            kept = await AgentMemory(desk).store(
                Knowledge("Tea is green.", "Belief", confidence=0.9)
            )
            assert kept.copy is not None
    async with pps.open("team_mongke", home=tmp_path) as memory:
        await memory.forget([kept.record.id], dry_run=False)
    async with pps.open_member("team", "jochi", home=tmp_path) as other:
        assert await other.get_beliefs() == []


async def test_openclaws_files_are_taken_in_once_and_stay_ones_own(
    app: App, tmp_path: Path
) -> None:
    write_squad(app.settings.home, "trio")
    squad = (await squad_members.found(app, "team", "trio", {})).squad
    folder = tmp_path / "openclaw"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text(
        "# Memory\n\n## People\n- Ana drinks tea.\n- Ben is her\n  brother.\n\nAll is well.\n"
    )
    (folder / "memory" / "2026-02-03.md").write_text(
        "- Sent the report.\n- [x] Called Ben.\n- Sent the report.\n"
    )
    (folder / "HEARTBEAT.md").write_text("- [ ] Look at the inbox\n")
    (folder / "SOUL.md").write_text("# Soul\n\nI am kind.\n")
    (folder / "IDENTITY.md").write_text("I am Kublai, patient and exact.\n")
    async with desk_of(app, squad.members["kublai"].entity) as desk:
        first, again = await take_in(desk, folder), await take_in(desk, folder)
        records = [*(await desk.memory.records.graph()).records.values()]
        start = (await desk.memory.ambient_recall("", mode="startup")).text
        assert [one.slug for one in await desk.memory.anchor_list()] == ["soul"]
        async with desk.pool() as pool:
            assert await pool.records.pool.shared() == {}
    assert "I am kind." in start
    assert first.records == {"AgentState": 1, "Belief": 3, "Documentation": 1, "Experience": 2}
    assert (first.new, again.new, first.anchors) == (7, 0, ("SOUL.md",))
    [state] = [one for one in records if one.kind == "AgentState"]
    assert (state.summary, state.fields["activity"]) == ("I am Kublai, patient and exact.", "idle")
    beliefs = {one.summary: one.fields["domain"] for one in records if one.kind == "Belief"}
    assert beliefs == {
        "Ana drinks tea.": "People",
        "Ben is her brother.": "People",
        "All is well.": "People",
    }
    assert {one.created_at.date().isoformat() for one in records if one.kind == "Experience"} == {
        "2026-02-03"
    }
    with pytest.raises(InvalidRequest, match=r"no MEMORY\.md"):
        async with desk_of(app, squad.members["jochi"].entity) as desk:
            await take_in(desk, tmp_path)


async def test_openclaws_headings_times_tables_projects_and_checks_are_kept(
    app: App, tmp_path: Path
) -> None:
    write_squad(app.settings.home, "trio")
    squad = (await squad_members.found(app, "team", "trio", {})).squad
    folder = tmp_path / "openclaw"
    (folder / "memory" / "projects").mkdir(parents=True)
    (folder / "MEMORY.md").write_text(
        "# Memory\n_Last updated: 2026-02-01_\n\n## Hosts\n\n| Host | Role |\n| --- | --- |\n"
        "| web1 | front |\n| db1 | PostgreSQL |\n\n## Deploy\n- Deploy by script.\n\n```sh\nmake deploy\n```\n"
    )
    (folder / "memory" / "2026-02-03-release.md").write_text(
        "## 09:15 Release\n- Tagged v2.\n- 14:30 rolled back.\n\n## Notes\nAll quiet.\n"
    )
    (folder / "memory" / "projects" / "atlas.md").write_text("# Atlas\n- Uses Rust.\n")
    (folder / "HEARTBEAT.md").write_text("- [ ] Look at the inbox\n- [x] Water the plants\n")
    async with desk_of(app, squad.members["kublai"].entity) as desk:
        taken, again = await take_in(desk, folder), await take_in(desk, folder)
        records = {
            record.summary: record
            for record in (await desk.memory.records.graph()).records.values()
        }
        items, _ = await needs_attention(desk)
    assert again.new == 0
    assert taken.new == 9
    assert {text for text, record in records.items() if record.kind == "Belief"} == {
        "Host: web1; Role: front",
        "Host: db1; Role: PostgreSQL",
        "Deploy by script.",
    }
    deploy = records["Deploy by script."]
    assert deploy.fields["domain"] == "Deploy"
    assert deploy.fields["metadata"] == {"headings": "Memory > Deploy"}
    assert "make deploy" in str(deploy.fields["description"])
    times = {text: record.created_at.isoformat() for text, record in records.items()}
    assert times["Tagged v2."] == "2026-02-03T09:15:00+00:00"
    assert times["14:30 rolled back."] == "2026-02-03T14:30:00+00:00"
    assert times["All quiet."] == "2026-02-03T00:00:00+00:00"
    assert records["Tagged v2."].fields["domain"] == "Release"
    assert (records["Uses Rust."].kind, records["Uses Rust."].fields["domain"]) == (
        "Documentation",
        "atlas",
    )
    assert [item.text for item in items if item.what == "checklist"] == ["Look at the inbox"]


async def test_each_of_openclaws_files_that_is_no_plain_file_is_named(
    app: App, tmp_path: Path
) -> None:
    write_squad(app.settings.home, "trio")
    squad = (await squad_members.found(app, "team", "trio", {})).squad
    folder = tmp_path / "openclaw"
    (folder / "memory").mkdir(parents=True)
    os.mkfifo(folder / "MEMORY.md")
    os.mkfifo(folder / "memory" / "2026-02-03.md")
    (folder / "HEARTBEAT.md").symlink_to("/dev/zero")
    (folder / "SOUL.md").symlink_to("/dev/zero")
    (folder / "USER.md").symlink_to(folder / "absent")
    (folder / "IDENTITY.md").mkdir()
    async with desk_of(app, squad.members["kublai"].entity) as desk:
        taken = await take_in(desk, folder)
    assert set(taken.skipped) == {
        "MEMORY.md",
        "2026-02-03.md",
        "HEARTBEAT.md",
        "SOUL.md",
        "USER.md",
        "IDENTITY.md",
    }
    assert (taken.records, taken.anchors) == ({}, ())
