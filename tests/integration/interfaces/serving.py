"""A real server in a process of its own, and real clients of it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import httpx2
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from pps.server import Link, RunFile, runfile
from pps.server.owner_socket import HOME_HEADER, home_header
from tests.integration.interfaces import forked
from tests.neo4j_server import Neo4jServer
from tests.waiting import PATIENCE_S, wait_until

ERAS = ("legacy", "2026-07-28")
_FOREIGN = ("PPS_", "OPENAI_", "NEO4J_", "ANTHROPIC_", "GEMINI_", "GOOGLE_", "GROQ_")


def clean_env(home: Path, **more: str) -> dict[str, str]:
    """Return this process's environment without anything that PPS reads, for a data folder of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    return {
        **kept,
        "PPS_HOME": str(home),
        "PPS_EMBEDDER__NAME": "hash",
        "PPS_SERVER__PORT": "0",
        **more,
    }


def without_socket(folder: Path) -> dict[str, str]:
    """Return the environment of a server that can make no socket: each path is longer than an address holds."""
    deep = folder / ("deep" * 30)
    deep.mkdir()
    return {"XDG_RUNTIME_DIR": "", "TMPDIR": str(deep)}


_OF_A_JOB = ("state", "nodes", "facts", "edges", "tags", "skipped")


class PatientLink(Link):
    """The owner's link. A write that is to be done before it returns is, also where it takes a busy server longer.

    An operation answers "accepted" after two seconds, and what reads next would not find what was written. This waits
    on and returns what the answer would have been, unless a model has yet to read a turn.
    """

    def call(
        self,
        operation: str,
        entity: str,
        arguments: Mapping[str, Any],
        *,
        timeout_s: float = PATIENCE_S,
    ) -> dict[str, Any]:
        answer = super().call(operation, entity, arguments, timeout_s=timeout_s)
        data = answer["data"]
        is_accepted = isinstance(data, dict) and data.get("state") == "accepted"
        if is_accepted and entity and arguments.get("wait") != "journal":
            turns = [record["turn"] for record in data.get("records", ())]
            turns += [data["turn_id"]] if data.get("turn_id") else []
            wait_until(lambda: self._are_saved(entity, turns))
            jobs = self._jobs(entity, turns)
            if jobs and all(job["state"] in ("done", "failed") for job in jobs):
                data |= {
                    name: jobs[-1][name] for name in _OF_A_JOB if name in data.keys() & jobs[-1]
                }
        return answer

    def _are_saved(self, entity: str, turns: Sequence[str]) -> bool:
        """Tell whether turns can be found, though a model may have yet to read them."""
        waiting = [
            job
            for job in self._jobs(entity, turns)
            if (job["state"], job["stage"]) in (("queued", "save"), ("running", "save"))
        ]
        return not waiting and not super().call("stats", entity, {})["data"]["index_lag"]

    def _jobs(self, entity: str, turns: Sequence[str]) -> list[dict[str, Any]]:
        return [
            super(PatientLink, self).call("job_status", entity, {"id": turn})["data"]
            for turn in turns
        ]


@dataclass
class Served:
    """A data folder with a server, and how to reach it."""

    home: Path
    env: dict[str, str]
    run: RunFile

    @property
    def link(self) -> Link:
        return PatientLink(self.run)

    def create(self, name: str) -> str:
        """Make an entity, or a further token for one that is there."""
        made = self.link.call("entity_create", "", {"name": name})["data"]
        return str(
            made.get("token") or self.link.call("token_issue", "", {"name": name})["data"]["token"]
        )

    @contextlib.asynccontextmanager
    async def client(self, token: str, era: str, toolset: str = "all") -> AsyncIterator[Client]:
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S, trust_env=False) as http:
            transport = streamable_http_client(
                f"{self.run.url}/mcp?toolset={toolset}", http_client=http
            )
            async with Client(transport, mode=era) as client:
                yield client

    def stdio(self, name: str, era: str, *more: str) -> Client:
        command = ["-m", "pps", "mcp", "--entity", name, "--toolset", "all", *more]
        parameters = StdioServerParameters(command=sys.executable, args=command, env=self.env)
        return Client(parameters, mode=era)

    def projects(self, era: str, *roots: str) -> Client:
        """Return a client of the project tools over stdio."""
        limits = [part for root in roots for part in ("--root", root)]
        command = ["-m", "pps", "mcp", "--router", *limits]
        return Client(
            StdioServerParameters(command=sys.executable, args=command, env=self.env), mode=era
        )

    def owner(self, **headers: str) -> httpx2.Client:
        """Return the owner's client, over the server's socket."""
        transport = httpx2.HTTPTransport(uds=self.run.socket)
        named = {HOME_HEADER: home_header(str(self.home)), **headers}
        return httpx2.Client(
            transport=transport, base_url=self.run.url, headers=named, timeout=PATIENCE_S
        )

    def router(self, *roots: str, may_create: bool = True) -> str:
        """Return a new router token."""
        return str(
            self.link.call("router_create", "", {"roots": list(roots), "may_create": may_create})[
                "data"
            ]["token"]
        )

    def pps(self, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        return pps(self.env, *arguments, given=given)


def neo4j_env(server: Neo4jServer) -> dict[str, str]:
    """Return the environment that makes a server keep its graphs on a Neo4j."""
    return {
        "PPS_STORE": "neo4j",
        "NEO4J_URI": server.uri,
        "NEO4J_USER": server.user,
        "NEO4J_PASSWORD": server.password,
        "NEO4J_DATABASE": server.database,
    }


def pps(env: dict[str, str], *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return forked.run(arguments, env, given)


def wait_for_run_file(
    home: Path, process: subprocess.Popen[bytes] | BaseProcess | None = None
) -> RunFile:
    """Wait until a server has said where it listens."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        run = runfile.read(home)
        if run is not None and (process is None or run.pid == process.pid):
            return run
        ended = process.exitcode if isinstance(process, BaseProcess) else process and process.poll()
        assert ended is None, "the server ended at its start"
        time.sleep(0.05)
    raise AssertionError(f"no server within {PATIENCE_S:.0f} s")


@contextlib.contextmanager
def serving(home: Path, **more: str) -> Iterator[Served]:
    """Run ``pps serve`` on a data folder while the block runs."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    env = clean_env(home, **more)
    with (home / "test-server.log").open("ab") as log, Path(os.devnull).open("rb") as nothing:
        process = forked.start(["serve"], env, nothing, log, log)
        try:
            yield Served(home, env, wait_for_run_file(home, process))
            process.terminate()
            process.join(PATIENCE_S)
            assert process.exitcode == 0, (home / "test-server.log").read_text()[-2000:]
        finally:
            process.kill()
            process.join()


@contextlib.contextmanager
def killed_at_the_end(home: Path, **more: str) -> Iterator[Served]:
    """Run ``pps serve`` as ``serving`` does; it is killed when the block ends, unless the block killed it before."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    env = clean_env(home, **more)
    with (home / "test-server.log").open("ab") as log, Path(os.devnull).open("rb") as nothing:
        process = forked.start(["serve"], env, nothing, log, log)
        try:
            yield Served(home, env, wait_for_run_file(home, process))
        finally:
            process.kill()
            process.join()
