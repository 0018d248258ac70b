from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

from pps import __version__
from pps.core.file_lock import FileLock
from pps.server import RunFile, runfile
from tests.integration.interfaces.every_tool import TOOLS, done, refused, text, use_every_tool
from tests.integration.interfaces.serving import ERAS, Served, pps, wait_for_run_file
from tests.proving import stranger
from tests.sampling import sample
from tests.waiting import settle_until


@pytest.mark.parametrize("era", sample(ERAS, 1, "bridge"))  # every tool in each era: test_mcp_http
async def test_every_tool_is_reached_through_the_bridge(served: Served, era: str) -> None:
    name = f"bridge_{ERAS.index(era)}"
    served.create(name)
    async with served.stdio(name, era) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
        await use_every_tool(client)
        assert "did you mean 'limit'" in await refused(client, "recall", query="x", lmit=3)
        with pytest.raises(MCPError):
            await client.call_tool("nonesuch", {})


@pytest.mark.parametrize("era", ERAS)
async def test_a_bridge_for_nobody_says_so(served: Served, era: str) -> None:
    async with served.stdio("nobody", era) as client:
        said = await refused(client, "stats")
        assert "nobody" in said
        assert "pps entity create" in said
        assert len((await client.list_tools()).tools) == len(
            TOOLS
        )  # the table's, without asking the server


@pytest.mark.parametrize(
    ("asked", "said"),
    [(("Not A Name",), "name"), (("ana", "--toolset", "bogus"), "'bogus' is none of")],
)
def test_a_bridge_for_a_bad_name_ends_at_once(
    served: Served, asked: tuple[str, ...], said: str
) -> None:
    ended = served.pps("mcp", "--entity", *asked)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr.count("\n") == 1
    assert said in ended.stderr


async def test_the_bridge_starts_the_server_and_survives_its_death(alone: dict[str, str]) -> None:
    home = Path(alone["PPS_HOME"])
    assert pps(alone, "entity", "create", "ana").returncode == 0
    assert pps(alone, "serve", "--stop").returncode == 0
    assert runfile.read(home) is None
    async with Served(home, alone, run=None).stdio("ana", "2026-07-28") as client:
        first = await done(client, "remember", content="Kept through a crash.")
        pid = wait_for_run_file(home).pid
        os.kill(pid, signal.SIGKILL)
        assert (await done(client, "get", ids=[first["turn_id"]]))["items"][0][
            "content"
        ] == "Kept through a crash."
        assert wait_for_run_file(home).pid != pid
        assert pps(alone, "serve", "--stop").returncode == 0
        assert (await done(client, "stats"))["turns"] == 1


async def test_a_server_that_dies_in_the_middle_of_a_call_is_asked_again_only_where_that_is_safe(
    alone: dict[str, str],
) -> None:
    home = Path(alone["PPS_HOME"])
    assert (await asyncio.to_thread(pps, alone, "entity", "create", "ana")).returncode == 0
    async with Served(home, alone, run=None).stdio("ana", "2026-07-28") as client:
        for pause_s in (1.0, 2.0, 5.0, 10.0, 20.0, 40.0):
            turns = (await done(client, "stats"))["turns"]
            kept = await done(client, "remember", content=f"Kept for {pause_s}.")
            pid = wait_for_run_file(home).pid
            await asyncio.gather(
                *(done(client, "stats") for _ in range(12))
            )  # a proved connection for each that follows
            os.kill(pid, signal.SIGSTOP)
            asked = [
                asyncio.create_task(client.call_tool("stats", {})),
                asyncio.create_task(
                    client.call_tool("remember", {"content": f"Said while it died, {pause_s}."})
                ),
                asyncio.create_task(
                    client.call_tool("forget", {"ids": [kept["turn_id"]], "dry_run": False})
                ),
            ]
            await asyncio.sleep(pause_s)
            os.kill(pid, signal.SIGKILL)
            stats, remembered, forgotten = await asyncio.gather(*asked)
            assert not stats.is_error
            assert not remembered.is_error
            if forgotten.is_error:
                break  # else it was not sent yet: the next server was asked, rightly
        assert forgotten.is_error
        assert "look whether it was done" in text(forgotten)
        assert (await done(client, "get", ids=[kept["turn_id"]]))["items"]
        assert (await done(client, "stats"))["turns"] == turns + 2


async def _told(client: Client, start: int, count: int) -> None:
    for number in range(start, start + count):
        await done(client, "remember", content=f"Message {number}.", source_ref=f"m{number}")


async def test_two_bridges_and_a_command_line_at_once_on_one_entity(alone: dict[str, str]) -> None:
    """Nobody started the server: all three do, and one of them is the starter."""
    home = Path(alone["PPS_HOME"])
    served = Served(home, alone, run=None)
    made = await asyncio.to_thread(pps, alone, "entity", "create", "ana")
    assert made.returncode == 0, made.stderr
    await asyncio.to_thread(pps, alone, "serve", "--stop")
    async with served.stdio("ana", "2026-07-28") as one, served.stdio("ana", "legacy") as two:
        commands = [
            asyncio.to_thread(pps, alone, "remember", "ana", f"From the command line {number}.")
            for number in range(3)
        ]
        results = await asyncio.gather(_told(one, 0, 20), _told(two, 100, 20), *commands)
        for result in results[2:]:
            assert result.returncode == 0, result.stderr
            assert result.stderr == ""
        assert (await done(one, "stats"))["turns"] == 43
        assert (await done(two, "stats"))["turns"] == 43
    # One that came second waits at the first one's lock for a while before it gives up.
    await settle_until(lambda: _servers_of(home) == 1)


def _servers_of(home: Path) -> int:
    mine = f"PPS_HOME={home}".encode()
    listed = subprocess.run(
        ["pgrep", "-f", "pps serve --auto"], capture_output=True, text=True, check=False
    ).stdout
    count = 0
    for pid in listed.split():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it ended meanwhile
            count += mine in Path(f"/proc/{pid}/environ").read_bytes()
    return count


async def test_a_write_that_is_given_up_is_carried_through(served: Served) -> None:
    served.create("shielded")
    async with served.stdio("shielded", "2026-07-28") as client:
        await done(client, "stats")
        call = asyncio.create_task(
            client.call_tool("remember", {"content": "Half said.", "source_ref": "m1"})
        )
        await asyncio.sleep(0.03)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        again = await done(client, "remember", content="Half said.", source_ref="m1")
        assert again["state"] in ("duplicate", "done", "accepted")

        async def is_taken_in() -> bool:
            return not (await done(client, "stats"))["unfinished_jobs"]

        await settle_until(is_taken_in)
        stats = await done(client, "stats")
        assert (stats["turns"], stats["episodes"]) == (1, 1)


def test_a_line_that_is_not_json_does_not_break_the_bridge(served: Served) -> None:
    served.create("quiet")
    ended = served.pps("mcp", "--entity", "quiet", given="this is not json\n")
    assert ended.returncode == 0
    assert all(line.startswith("{") for line in ended.stdout.splitlines())
    assert "Traceback" not in ended.stderr


async def test_the_bridge_tells_nothing_to_a_stranger_at_the_address_of_the_run_file(
    alone: dict[str, str],
) -> None:
    """The stranger lets everybody wait at the lock, as a server that starts does; the bridge finds no server."""
    home = Path(alone["PPS_HOME"])
    runfile.lock_file(home).parent.mkdir(parents=True)
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n" + b"0" * 64
    with stranger(answer) as seen, FileLock(runfile.lock_file(home), what="pps serve"):
        run = RunFile(1, "127.0.0.1", seen.port, __version__, False, runfile.new_secret())
        runfile.write(home, run)
        async with Served(home, alone, run=run).stdio("ana", "2026-07-28") as client:
            asked = asyncio.create_task(
                client.call_tool("remember", {"content": "A secret thought."})
            )
            while seen.told.count(b"GET /owner/proof/") < 3:
                assert not asked.done()
                await asyncio.sleep(0.05)
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
    for word in (run.secret, run.secret[6:], "secret thought", "Authorization"):
        assert word.encode() not in seen.told


async def test_a_plugin_serves_the_entity_that_its_environment_names(served: Served) -> None:
    served.create("ana")
    manifest = json.loads((Path(__file__).parents[3] / "mcp.json").read_text(encoding="utf-8"))
    [server] = manifest["mcpServers"].values()
    assert server["command"] == "pps"
    env = {**served.env, "PPS_ENTITY": "ana"}
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "pps", *server["args"]], env=env
    )
    async with Client(command, mode=ERAS[-1]) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} >= {"recall", "remember"}


def test_an_entity_that_nobody_names_is_not_guessed(served: Served) -> None:
    refused = served.pps("mcp")
    assert refused.returncode == 2
    assert "PPS_ENTITY" in refused.stderr


async def test_the_bundle_makes_its_entity_and_serves_it_without_telling_its_token(
    served: Served, tmp_path: Path
) -> None:
    program = Path(__file__).parents[3] / "config" / "mcpb" / "server.py"
    env = {**served.env, "PPS_ENTITY": "bundled"}
    for _ in range(2):
        errors = tmp_path / "stderr"
        with errors.open("w+") as stderr:
            command = StdioServerParameters(command=sys.executable, args=[str(program)], env=env)
            async with Client(stdio_client(command, errlog=stderr), mode=ERAS[-1]) as client:
                assert (await done(client, "recall", query="anything"))["entity"] == "bundled"
        assert "pps_" not in errors.read_text()
