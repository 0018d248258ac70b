"""Makes a data folder that later versions must open with everything in it, with the code of this commit.

    .venv/bin/python -m tests.old_homes.making home_COMMIT

writes into ``tests/fixtures``: ``home_COMMIT.tar.xz`` and, in the folder ``home_COMMIT``, what the home holds
(``contents.json``), the exports of its memories (``NAME.jsonl``) and the group of its memory on Neo4j
(``neo4j.jsonl``). It needs what tests on Neo4j need.

    .venv/bin/python -m tests.old_homes.making --exports home_COMMIT

writes the exports of a home that is there already. Ids of groups, tokens and the times at which something was written
down are new each time; all else is the same.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from pps.app import App
from pps.config import load
from pps.core.time import iso, now
from pps.entities.folder import card_of
from pps.entities.tasks import TaskDraft, Tasks
from pps.journal.entries import load_payload
from pps.memory import Memory
from pps.operations.calls import OPERATOR, Caller, Calls
from pps.server.spool import spool_folder
from tests.neo4j_server import Neo4jServer, running_neo4j
from tests.old_homes.contents import (
    export_lines,
    memory_contents,
    pool_contents,
    registry_contents,
)
from tests.old_homes.neo4j_groups import dump_group
from tests.squads import Team, team_of_three
from tests.waiting import PATIENCE_S, settle_until

FIXTURES = Path(__file__).parents[1] / "fixtures"
_HOOK = Path(__file__).parents[2] / "config" / "claude" / "hooks" / "pps_hook.py"
_PLACE = Path("/tmp/pps-home-fixture")  # noqa: S108 - a place that no machine's name is part of
ON_NEO4J = "harbour"
"""The entity whose graph lies on Neo4j."""
_SETTINGS = """\
log_level = "warning"
redaction = "on"
time_zone = "Europe/Lisbon"

[embedder]
name = "minilm"

[extractor]
mode = "rules"

[jobs]
attempts = 1

[forgetting]
restorable_d = 3650

[vectors]
in_memory = 12

[server]
port = 0
"""
_PROFILE = 'description = "Facts alone"\nextends = "facts"\n\n[limits]\nfacts = 3\n'
_RELATIONS = '[MOORED_AT]\nsingle = true\nalso = ["LIES_AT"]\n'
_PACK = """\
name = "sailing"
version = 2
about = "Trips of a boat"

[kinds.Trip]
about = "A trip"
embed = ["title", "summary"]
fields.sailed_on = { type = "date", index = true }
fields.crew = { type = "list", of = { type = "text" } }
"""


@dataclass
class Story:
    """What is told to one memory, through the operations that any client has."""

    calls: Calls
    entity: str

    async def ask(self, operation: str, **arguments: Any) -> dict[str, Any]:
        answer = await self.calls.answer(Caller.of_entity(self.entity), operation, arguments)
        return cast("dict[str, Any]", answer.data)

    async def remember(self, content: str, **more: Any) -> str:
        more = {"session": "kitchen", "occurred_at": "2026-03-02T09:00:00Z", **more}
        return str((await self.ask("remember", content=content, **more))["turn_id"])

    async def tell(self) -> None:
        await self._tell_facts()
        await self._tell_texts()
        await self._tell_records()
        await self._merge_and_forget()
        await self.ask("detect_topics", force=True)
        await self.ask("recall", query="who bakes the bread?", session="kitchen")
        await self.ask("ambient_recall", context="bread and boats", session="kitchen")

    async def _tell_facts(self) -> None:
        await self.remember(
            "Priya Nair lives in Lowgate with her dog Bramble.",
            occurred_at="2024-05-01T08:00:00Z",
            actor="iris",
            tags=["people"],
            nodes=[
                {
                    "name": "Priya Nair",
                    "kind": "Person",
                    "summary": "A baker.",
                    "aliases": ["Pri"],
                    "tags": ["friend"],
                    "attributes": {"shoe_size": 39, "likes": ["rye", "tea"]},
                },
                {"name": "Bramble", "kind": "Dog"},
            ],
            facts=[
                _fact("Priya Nair", "LIVES_IN", "Lowgate", valid_at="2024-05-01"),
                _fact("Priya Nair", "OWNS", "Bramble", valid_at="2021"),
            ],
        )
        await self.remember(
            "Priya moved to Tarn on the second of March.",
            facts=[_fact("Priya Nair", "LIVES_IN", "Tarn", valid_at="2026-03-02")],
        )
        await self.remember(
            "Tomas Weiss worked at Siemens from 2019 to May 2023.",
            occurred_at="2026-02-10",
            facts=[
                _fact("Tomas Weiss", "WORKS_AT", "Siemens", valid_at="2019", invalid_at="2023-05")
            ],
        )
        await self.remember("I live in Porto.", extraction="rules")
        await self.remember("Actually no, I live in Braga.", extraction="rules")
        await self.remember("I do not live in Braga any more.", extraction="rules")
        await self.remember(
            "The Kestrel is moored at pier four.",
            facts=[_fact("Kestrel", "MOORED_AT", "pier four")],
            source="mail",
            source_ref="<m1@example.org>",
        )
        await self.remember("Password: kanarienvogel-4711-x", role="assistant")

    async def _tell_texts(self) -> None:
        for subject, texts in _SUBJECTS.items():
            for number, text in enumerate(texts):
                await self.remember(
                    text, session=subject, occurred_at=f"2026-02-{number + 1:02}T10:00:00Z"
                )
        first = await self.ask(
            "add_event",
            content="The light of [[Harbour]] is out. #maintenance",
            title="Light out",
            source="whisper",
            source_ref="w-17",
            timestamp="2026-03-03T07:00:00Z",
            metadata={"lamp": 3},
        )
        await self.ask(
            "add_event",
            content="Where the boats lie.",
            title="Harbour",
            parent_node_id=first["node_id"],
        )
        await self.ask("append", id=first["node_id"], content="It was repaired at noon.")
        await self.ask("update", id=first["node_id"], title="Light repaired", actor="tomas")
        changed = await self.remember("The till closes at five.", session="shop")
        await self.ask("update", id=changed, content="The till closes at six.")
        for title, text in _ANCHORS.items():
            await self.ask("anchor_save", title=title, text=text, tags=["keep"])

    async def _tell_records(self) -> None:
        cited = await self.remember("Two libraries asked for repairs.", session="workshop")
        saved = await self.ask("record_save", records=[*_RECORDS, _decision(cited)])
        ids = {one["title"]: one["id"] for one in saved["records"]}
        task = ids["Write the offer"]
        await self.ask("record_move", id=task, to="in_progress", why="The samples are ready.")
        await self.ask(
            "record_save", records=[{"id": task, "summary": "One page, with a price a book."}]
        )
        ended = await self.ask(
            "record_relate",
            source=ids["Write to eight libraries"],
            type="LEADS_TO",
            target=task,
        )
        await self.ask("record_unrelate", ids=ended["ids"])
        await self.ask(
            "record_relate",
            source=ids["Craft before speed"],
            type="SUPPORTED_BY",
            target=ids["One thing at a time"],
            properties={"weight": 0.9},
        )

    async def _merge_and_forget(self) -> None:
        await self.remember(
            "P. Nair signed the flour contract.",
            facts=[_fact("P. Nair", "SIGNED", "flour contract", valid_at="2026-03-01")],
        )
        await self.remember(
            "T. Weiss keeps bees.", facts=[_fact("T. Weiss", "KEEPS", "bees", valid_at="2026-01")]
        )
        nodes = {one["name"]: one["id"] for one in await self._nodes()}
        merge = {"keep": nodes["Priya Nair"], "drop": nodes["P. Nair"], "dry_run": False}
        await self.ask("merge_nodes", **merge)
        undone = {"keep": nodes["Tomas Weiss"], "drop": nodes["T. Weiss"], "dry_run": False}
        merged = await self.ask("merge_nodes", **undone)
        await self.ask("undo_merge", id=merged["id"])
        turn = await self.remember(
            "The locker code of Wren is forgettable-4711.",
            facts=[_fact("Wren", "RENTS", "locker", valid_at="2026-02-01")],
        )
        gone = {"dry_run": False, "soft": True}
        await self.ask("forget", ids=[turn], reason="Told by mistake.", **gone)
        await self.ask("forget", ids=["old-map"], reason="Out of date.", **gone)
        erased = await self.remember("The alarm code is eraseable-0815.")
        await self.ask("forget", ids=[erased], dry_run=False)

    async def _nodes(self) -> list[dict[str, Any]]:
        page = await self.ask("graph_all", limit=1000)
        return cast("list[dict[str, Any]]", page["nodes"])


def _fact(subject: str, relation: str, target: str, **times: str) -> dict[str, str]:
    words = relation.lower().replace("_", " ")
    text = f"{subject} {words} {target}."
    return {"subject": subject, "relation": relation, "object": target, "text": text, **times}


_SUBJECTS: Mapping[str, Sequence[str]] = {
    "bread": (
        "Rye dough rests overnight in the cold larder.",
        "The rye dough went into the hot oven at six.",
        "Oven hot, dough with rye flour and salt.",
        "The sourdough starter is fed with rye flour every morning.",
        "The crust of the rye loaf cracked in the oven.",
    ),
    "boats": (
        "The keel of the boat needs paint before spring.",
        "Paint the keel before the boat sails again.",
        "The boat sails close to the wind on its new keel.",
        "The mast of the boat was stepped by two people.",
        "The sails of the boat dry in the net loft.",
    ),
}
_ANCHORS: Mapping[str, str] = {
    "Rye loaf": "Mix rye flour, water and salt. Rest it overnight.\n\nBake it hot for an hour.",
    "Harbour map": "Pier four lies behind the crane.",
    "Old map": "Pier three was torn down in 2019.",
}
_RECORDS: Sequence[Mapping[str, Any]] = (
    {
        "kind": "Value",
        "title": "Craft before speed",
        "summary": "Better one book that opens flat than three that do not.",
        "fields": {"priority": "core", "description": "What cannot be done well is refused."},
        "tags": ["work"],
        "created_at": "2025-04-01T09:00:00Z",
    },
    {
        "kind": "Principle",
        "title": "One thing at a time",
        "summary": "What is on the bench is finished first.",
        "fields": {"statement": "Never more than two commissions at once."},
        "created_at": "2025-04-01T09:00:00Z",
    },
    {
        "kind": "Goal",
        "title": "Live by the workshop",
        "summary": "The workshop pays for everything.",
        "status": "draft",
        "created_at": "2025-04-02T09:00:00Z",
    },
    {
        "kind": "Task",
        "title": "Write the offer",
        "summary": "One page.",
        "fields": {"priority": "p0", "effort_hours": 3, "due_date": "2026-03-20"},
        "relations": [{"type": "SERVES", "target": "Live by the workshop"}],
        "created_at": "2026-03-09T09:00:00Z",
    },
)


def _decision(cited: str) -> dict[str, Any]:
    return {
        "kind": "Decision",
        "title": "Write to eight libraries",
        "summary": "Steady repairs instead of many small orders.",
        "fields": {"decided_at": "2026-01-05T09:30:00Z", "roi": {"financial": 0.7, "risk": 0.4}},
        "relations": [{"type": "SERVES", "target": "Live by the workshop"}],
        "cites": [cited],
        "created_at": "2026-01-05T09:00:00Z",
    }


async def _make(home: Path, server: Neo4jServer) -> dict[str, Any]:
    """Fill a home; return the tokens that were given out."""
    _write_files(home)
    async with App.open(load(env=environment(home, server))) as app:
        calls = Calls(app)
        tokens: dict[str, Any] = {}
        for name, store in (("ana", "embedded"), (ON_NEO4J, "neo4j")):
            made = await app.create(name, store=store, packs=("constitution", "events", "sailing"))
            tokens[name] = made.token
            await Story(calls, name).tell()
        await _archive_one(app, calls)
        await _found_squad(app)
        await _open_doors(app, calls, tokens)
        for listener in _LISTENERS:
            await app.create(listener.name)
        for name in ("ana", ON_NEO4J):
            async with app.memory(name) as memory:
                await memory.settled()
    for listener in _LISTENERS:
        await _listen(home, server, listener)
    _leave_a_queued_job(home, server)
    _fill_spool(home)
    return tokens


def environment(home: Path, server: Neo4jServer | None = None) -> dict[str, str]:
    """Return the environment with which a home is opened."""
    found = {"PPS_HOME": str(home)}
    if server is None:
        return found
    return {
        **found,
        "NEO4J_URI": server.uri,
        "NEO4J_USER": server.user,
        "NEO4J_PASSWORD": server.password,
        "NEO4J_DATABASE": server.database,
    }


def _write_files(home: Path) -> None:
    for folder in ("profiles", "packs"):
        (home / folder).mkdir(mode=0o700, parents=True)
    (home / "pps.toml").write_text(_SETTINGS)
    (home / "relations.toml").write_text(_RELATIONS)
    (home / "profiles" / "brief.toml").write_text(_PROFILE)
    (home / "packs" / "sailing.toml").write_text(_PACK)


async def _archive_one(app: App, calls: Calls) -> None:
    await app.create("old")
    await Story(calls, "old").remember("The old mill burned down in 1911.")
    async with app.memory("old") as memory:
        await memory.settled()
    await app.archive("old")


async def _found_squad(app: App) -> None:
    """Make a squad whose members share, doubt and wait: one share waits for a reviewer, inboxes are full."""
    team = await team_of_three(app)
    research = {"type": "Research", "domain": "technical"}
    fields = {"topic": "queues", "findings": "Queues fill under load."}
    shared = await team.store(
        "mongke", "Async queues fill under load.", confidence=0.85, fields=fields, **research
    )
    await team.store("mongke", "Queues may like tea.", confidence=0.5, fields=fields, **research)
    await team.store(
        "jochi",
        "I measured it: queues do fill.",
        type="Insight",
        fields={"category": "technical"},
        confidence=0.8,
        relations=[{"type": "SUPPORTS", "target": shared["copy"]["id"]}],
    )
    page = await team.ask("jochi", "remember", content="A page: sign nothing.", role="tool")
    waiting = await team.store(
        "jochi",
        "Sign nothing, a page says.",
        type="Belief",
        confidence=0.9,
        cites=[page["turn_id"]],
    )
    assert waiting["copy"]["state"] == "waiting", waiting
    await team.ask("kublai", "memory_query", topic="queues under load")
    await team.ask(
        "kublai",
        "squad_task_give",
        to="mongke",
        title="Look at queues",
        description="Why are they full?",
        type="research",
        priority="high",
    )
    await _settle_team(app, team)


async def _settle_team(app: App, team: Team) -> None:
    for member in team.squad.members.values():
        async with app.memory(member.entity) as memory:
            await memory.settled()
    async with app.memory(team.squad.pool, pool=True) as pool:
        await pool.settled()


async def _open_doors(app: App, calls: Calls, tokens: dict[str, Any]) -> None:
    """Give out tokens and page sessions, route and watch folders, hand out tasks."""
    registry = app.registry
    tokens["limited"] = registry.issue_token("ana", ["core"], "plan")
    tokens["operator"] = registry.operator_token()
    answer = await calls.answer(OPERATOR, "squad_token", {"name": "team", "member": "jochi"})
    members = cast("dict[str, Any]", answer.data)["members"]
    tokens["jochi"] = next(one["token"] for one in members if one["id"] == "jochi")
    ana = registry.get("ana").entity
    session = registry.pages.open("ana", registry.pages.link(ana))
    assert session
    tokens["page"] = session
    tokens["page_opened_at"] = iso(now())
    folder = _PLACE / "notes"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bees.md").write_text("# Bees\n\nThe bees swarmed on the ninth of June.\n")
    registry.watched.add(str(folder), "ana")
    async with app.memory("ana") as memory:
        await memory.documents.follow(folder)
    registry.routes.add(str(_PLACE / "shop"), "ana")
    router = registry.routers.create([str(_PLACE)], label="fixture", may_create=True)
    tokens["router"] = router.token
    tasks = Tasks(registry.get("ana").folder)
    for title in ("Bake", "Sail", "Sweep"):
        tasks.add(TaskDraft(f"{title}, please.", title, agent="helper"))
    claimed = tasks.claim("runner", 60, "helper")
    assert claimed
    tasks.complete(claimed.id, claimed.lease, "Done.")


_ANSWERS_GARBAGE = ["/bin/sh", "-c", "cat >/dev/null; echo garbage"]
_CANNOT_BE_RUN = ["/nonexistent/reader"]


@dataclass(frozen=True)
class Listener:
    """A memory whose one turn a program is to read.

    Attributes:
        state: Of the turn's job after that, which is the same after each new start.
    """

    name: str
    command: Sequence[str]
    text: str
    state: str


_LISTENERS = (
    Listener(
        "garbled",
        ["/bin/sh", "-c", "cat >/dev/null; echo garbage"],
        "Ines plays the cello.",
        "failed",
    ),
    Listener("reader", ["/nonexistent/reader"], "Ines moved to Faro.", "queued"),
)


async def _listen(home: Path, server: Neo4jServer, listener: Listener) -> None:
    file = home / "entities" / listener.name / "entity.toml"
    lines = f'[extractor]\nmode = "command"\ncommand = {json.dumps(listener.command)}\n'
    file.write_text(file.read_text().replace("[extractor]\n", lines))
    async with (
        App.open(load(env=environment(home, server))) as app,
        app.memory(listener.name) as memory,
    ):
        receipt = await memory.remember(listener.text, extraction="command")
        if listener.state == "failed":
            await memory.settled(
                10
            )  # has it read at once; what waits, once tried, is given up after a day
        job = await memory.jobs.status(receipt.job_id)
        assert (job.state, job.stage) == (listener.state, "read"), job


_QUEUED = """
import asyncio, os
import pps

async def main():
    async with pps.open("ana") as memory:
        await memory.remember("Noor lives in Evora.", wait="journal", session="killed")
        os._exit(9)

asyncio.run(main())
"""


def _leave_a_queued_job(home: Path, server: Neo4jServer) -> None:
    """Acknowledge a turn in a process that is killed before it is taken in."""
    variables = {**os.environ, **environment(home, server)}
    ended = subprocess.run([sys.executable, "-c", _QUEUED], env=variables, check=False)
    assert ended.returncode == 9


def _fill_spool(home: Path) -> None:
    """Leave two events as hooks do that find no server, and one that could not be taken in."""
    spec = importlib.util.spec_from_file_location("pps_hook", _HOOK)
    assert spec
    assert spec.loader
    hook: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    for prompt in ("Where did I leave the whisk?", "The whisk hangs by the window."):
        given = {"session_id": "spooled", "cwd": str(_PLACE), "prompt": prompt}
        message = hook._message("UserPromptSubmit", "ana", given)  # noqa: SLF001
        hook._spool(home, message)  # noqa: SLF001
    (spool_folder(home) / "00000000000000000001-unread.bad").write_text("{")


async def record(
    home: Path, folder: Path, *stores: str, server: Neo4jServer | None = None
) -> dict[str, Any]:
    """Write the exports of a home's memories on some stores; return what the home holds. It changes the home.

    Turns that the home has still queued are waited for: they are in the graph and in the indexes, though a program that
    is away may have yet to read them.
    """
    memories: dict[str, Any] = {}
    pools: dict[str, Any] = {}
    async with App.open(load(env=environment(home, server))) as app:
        registry = await registry_contents(app)
        for name, entry in registry["entities"].items():
            if entry["store"] not in stores:
                continue
            if entry["archived"]:
                await app.archive(name, undo=True)
            async with app.memory(name, pool=True) as memory:
                assert await memory.parts.worker.saved(PATIENCE_S), f"turns of {name} still wait"
                await settle_until(partial(_rules_have_read, memory))
                _write_lines(folder / f"{name}.jsonl", await export_lines(memory, folder))
                memories[name] = await memory_contents(memory)
        for squad in app.registry.squads.list():
            if squad.pool.name in memories:
                async with app.memory(squad.pool, pool=True) as pool:
                    pools[squad.name] = await pool_contents(pool, squad.members)
    return {"registry": registry, "memories": memories, "pools": pools}


async def _rules_have_read(memory: Memory) -> bool:
    """Tell whether rules have read what waits for a program that is away, and the indexes have it."""
    rows = await memory.parts.journal.select(
        "SELECT payload FROM jobs WHERE stage = 1 AND state IN ('queued', 'running')"
    )
    payloads = [load_payload(payload) for (payload,) in rows]
    unread = [
        payload
        for payload in payloads
        if payload.extraction == "command" and not payload.rules_meanwhile
    ]
    return not unread and (await memory.stats()).index_lag == 0


def unpack(name: str, folder: Path) -> Path:
    """Unpack a home of ``tests/fixtures`` and return it."""
    with tarfile.open(FIXTURES / f"{name}.tar.xz") as packed:
        packed.extractall(folder, filter="data")
    return folder


def _pack(home: Path, name: str) -> None:
    for lock in home.rglob("*.pid"):
        lock.unlink()
    with tarfile.open(FIXTURES / f"{name}.tar.xz", "w:xz", preset=9) as packed:
        for path in sorted(home.rglob("*")):
            packed.add(path, str(path.relative_to(home)), recursive=False, filter=_anonymous)


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


async def _main(name: str) -> None:
    beside = FIXTURES / name
    beside.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, running_neo4j(Path(scratch) / "neo4j") as server:
        home = Path(scratch) / "home"
        home.mkdir(mode=0o700)
        tokens = await _make(home, server)
        _pack(home, name)
        group = card_of(home / "entities" / ON_NEO4J).entity.group
        dump = await dump_group(server, group)
        _write_lines(beside / "neo4j.jsonl", dump)
        copy = unpack(name, Path(scratch) / "copy")
        found = await record(copy, beside, "embedded", "neo4j", server=server)
        _write(beside / "contents.json", {"tokens": tokens, **found})
    shutil.rmtree(_PLACE, ignore_errors=True)
    size = (FIXTURES / f"{name}.tar.xz").stat().st_size
    print(f"{name}: {size:,} bytes, {len(dump)} lines of Neo4j")  # noqa: T201


def _write(file: Path, tree: Mapping[str, Any]) -> None:
    text = json.dumps(tree, ensure_ascii=False, indent=1, sort_keys=True)
    file.write_text(text + "\n", encoding="utf-8")


def _write_lines(file: Path, lines: Iterable[str]) -> None:
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


async def _exports(name: str) -> None:
    beside = FIXTURES / name
    beside.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        found = await record(unpack(name, Path(scratch) / "copy"), beside, "embedded")
        _write(beside / "contents.json", found)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--exports":
        asyncio.run(_exports(sys.argv[2]))
    elif len(sys.argv) == 2:
        asyncio.run(_main(sys.argv[1]))
    else:
        sys.exit(__doc__)
