"""``pps doctor`` proves the ledger: what one store alone lost fails the command, by the server and offline."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.core.values import FactDraft
from pps.index.indexes import IndexDoc
from pps.memory import Memory
from pps.server import stop
from tests.integration.interfaces.serving import clean_env, pps

OFFLINE = pytest.mark.parametrize("options", [(), ("--offline",)], ids=["server", "offline"])
FACTS = "ana, facts and text index"
EPISODES = "ana, turns done and episodes of the graph"


def _settings(home: Path) -> Settings:
    return Settings(home=home, embedder=EmbedderSettings(name="hash"))


async def _told(home: Path) -> tuple[str, str]:
    async with App.open(_settings(home)) as app:
        await app.create("ana")
        await app.create("ben")
        for name in ("ben", "ana"):
            async with app.memory(name) as memory:
                for at in range(2):
                    facts = [FactDraft("Ana", "WENT_TO", f"Place{at}")]
                    receipt = await memory.remember(f"Turn {at}.", source_ref=str(at), facts=facts)
                    assert receipt.state == "done"
        async with app.memory("ana") as memory:
            return receipt.turn_id, (await memory.timeline()).facts[-1].uuid


async def _changed(home: Path, change: Callable[[Memory], Awaitable[object]]) -> None:
    async with App.open(_settings(home)) as app, app.memory("ana") as memory:
        await change(memory)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A data folder with two memories that are well, and ana's last turn and fact."""
    home = tmp_path_factory.mktemp("sound") / "home"
    return home, *asyncio.run(_told(home))


@pytest.fixture
def env(sound: tuple[Path, str, str], tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a copy of that folder; a server that was started on it is ended."""
    home = tmp_path / "home"
    shutil.copytree(sound[0], home)
    yield clean_env(home, PPS_SERVER__IDLE_STOP_S="60")
    stop(home)


def looked(env: dict[str, str], *options: str, code: int) -> dict[str, tuple[bool, str]]:
    """Run the command as text and as JSON; both say the same. Return check → whether it is well, and why not."""
    said = pps(env, "doctor", *options)
    assert (said.returncode, said.stderr) == (code, ""), said.stdout
    ended = pps(env, "doctor", *options, "--json")
    assert (ended.returncode, ended.stderr) == (code, ""), ended.stdout
    findings = json.loads(ended.stdout)
    begin = [f"{'ok  ' if one['ok'] else 'BAD '} {one['check']}" for one in findings]
    assert [line.split(": ")[0] for line in said.stdout.splitlines()] == begin
    assert all(one["ok"] or one["detail"] in said.stdout for one in findings)
    return {one["check"].removeprefix("entity "): (one["ok"], one["detail"]) for one in findings}


async def swap_entry(memory: Memory, fact: str) -> None:
    """Let the indexes have an entry of nobody for that of a fact: an opening that counts finds nothing wrong."""
    vectors = await memory.parts.indexes.parts("facts", [fact])
    stranger = IndexDoc(
        "fact", str(uuid4()), "facts", "nobody", passages=("nobody",), vectors=vectors[fact]
    )
    await memory.parts.indexes.apply([stranger], [("facts", fact)])


@OFFLINE
def test_a_ledger_that_agrees_is_said_to_and_ends_well(
    env: dict[str, str], options: tuple[str, ...]
) -> None:
    found = looked(env, *options, code=0)
    assert all(ok for ok, _ in found.values())
    assert found[FACTS] == (True, "2 and 2, the same ids")
    assert found[EPISODES] == (True, "2 and 2, the same ids")
    assert (found["ana"], found["ben"]) == ((True, "well"), (True, "well"))
    assert sum(check.startswith("ana, ") for check in found) == 7


@OFFLINE
def test_a_fact_that_the_indexes_lost_fails_the_command_until_it_is_mended(
    env: dict[str, str], sound: tuple[Path, str, str], options: tuple[str, ...]
) -> None:
    _, _, fact = sound

    async def lose(memory: Memory) -> None:
        await swap_entry(memory, fact)

    asyncio.run(_changed(Path(env["PPS_HOME"]), lose))
    found = looked(env, *options, code=1)
    assert found[FACTS] == (False, "2 and 2, NOT the same ids")
    bad = [check for check, (ok, _) in found.items() if not ok]
    assert (len(bad), bad[0]) == (3, "ana"), "the entity, and each index that lost it"
    assert "1 missing, 1 too many" in found["ana"][1]
    assert "`pps reindex ana` mends it" in found["ana"][1]
    assert looked(env, "ben", *options, code=0)["ben"] == (True, "well")

    mended = pps(env, "reindex", "ana")
    assert mended.returncode == 0, mended.stderr
    if options:
        assert pps(env, "serve", "--stop").returncode == 0
    assert looked(env, *options, code=0)[FACTS] == (True, "2 and 2, the same ids")


@OFFLINE
def test_a_turn_that_the_graph_lost_fails_the_command(
    env: dict[str, str], sound: tuple[Path, str, str], options: tuple[str, ...]
) -> None:
    _, turn, _ = sound
    asyncio.run(
        _changed(Path(env["PPS_HOME"]), lambda memory: memory.parts.client.delete_episodes([turn]))
    )
    found = looked(env, "ana", *options, code=1)
    assert found[EPISODES] == (False, "2 and 1, NOT the same ids")
    assert "`pps jobs retry ana ID`" in found["ana"][1]


@OFFLINE
def test_a_mistake_in_the_installations_own_relations_is_one_line_with_its_place(
    env: dict[str, str], options: tuple[str, ...]
) -> None:
    path = Path(env["PPS_HOME"]) / "relations.toml"
    path.write_text("[LIVES_IN]\nsingle = true\nunique = true\n")
    result = pps(env, "doctor", *options)
    assert result.returncode == 1
    [line] = [one for one in result.stdout.splitlines() if "relations.toml" in one and "BAD" in one]
    assert f"relations: {path}:3: LIVES_IN.unique: unknown key" in line


def fixed(
    env: dict[str, str], *options: str, code: int
) -> tuple[list[dict[str, object]], set[str]]:
    """Run ``pps doctor --fix``; return what it did or would do, and the checks that are not well then."""
    ended = pps(env, "doctor", "--fix", *options, "--json")
    assert (ended.returncode, ended.stderr) == (code, ""), ended.stdout
    told = json.loads(ended.stdout)
    return told["fixes"], {one["check"] for one in told["findings"] if not one["ok"]}


@OFFLINE
def test_fix_builds_indexes_anew_that_differ_and_a_dry_run_changes_nothing(
    env: dict[str, str], sound: tuple[Path, str, str], options: tuple[str, ...]
) -> None:
    _, _, fact = sound

    async def lose(memory: Memory) -> None:
        await swap_entry(memory, fact)

    asyncio.run(_changed(Path(env["PPS_HOME"]), lose))
    does = "pps reindex ana: builds its text and vector index anew from what is true"
    would, bad = fixed(env, "--dry-run", *options, code=1)
    assert would == [{"does": does, "done": False}]
    assert "entity ana" in bad
    assert looked(env, *options, code=1)[FACTS][0] is False
    did, bad = fixed(env, *options, code=0)
    assert did == [{"does": does, "done": True}]
    assert bad == set()


@OFFLINE
def test_fix_leaves_indexes_alone_while_the_graph_lacks_a_turn(
    env: dict[str, str], sound: tuple[Path, str, str], options: tuple[str, ...]
) -> None:
    _, turn, _ = sound
    asyncio.run(
        _changed(Path(env["PPS_HOME"]), lambda memory: memory.parts.client.delete_episodes([turn]))
    )
    did, bad = fixed(env, *options, code=1)
    assert did == []
    assert f"entity {EPISODES}" in bad


def test_fix_takes_rights_of_others_away_and_says_so_before(env: dict[str, str]) -> None:
    home = Path(env["PPS_HOME"])
    settings, dropped = home / "pps.toml", home / "spool" / "dropped"
    settings.write_text("")
    settings.chmod(0o644)
    home.chmod(0o755)
    dropped.parent.mkdir(exist_ok=True)
    dropped.write_bytes(b"..")
    kept = home / "spool" / "1.bad"
    kept.write_text("{}")
    would = pps(env, "doctor", "--fix", "--dry-run")
    lines = [line for line in would.stdout.splitlines() if line.startswith("WOULD")]
    assert [line.split()[1:3] for line in lines] == [
        ["chmod", "700"],
        ["chmod", "600"],
        ["remove", str(dropped) + ":"],
    ]
    assert (home.stat().st_mode & 0o777, settings.stat().st_mode & 0o777) == (0o755, 0o644)
    assert dropped.exists()
    done = pps(env, "doctor", "--fix")
    assert (home.stat().st_mode & 0o777, settings.stat().st_mode & 0o777) == (0o700, 0o600)
    assert not dropped.exists()
    assert kept.exists(), "what somebody said is never removed"
    fixing, _, again = done.stdout.partition("Looking again:")
    assert fixing.count("FIX ") == 3
    assert "chmod" not in again


def test_a_dry_run_without_fix_is_refused(env: dict[str, str]) -> None:
    refused = pps(env, "doctor", "--dry-run")
    assert refused.returncode == 2
    assert "--dry-run: goes with --fix" in refused.stderr
