"""The public surface of PPS as plain data, asked of the running code; ``scripts/contract`` compares and writes it.

Each function returns one file of ``tests/contract``: what a user or a program reaches, by its name. Descriptions are
not part of it: ``docs/reference.md`` has those, and has a test of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import importlib
import inspect
import io
import json
import pkgutil
import re
import subprocess
import sys
import tempfile
import tomllib
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias, cast

import click
import httpx
from pydantic import TypeAdapter
from starlette.routing import Route

import pps
from pps.app import App
from pps.config import EmbedderSettings, Settings, shipped
from pps.config.pack_reading import (
    AuthorityPart,
    FieldTable,
    Head,
    Kind,
    Layer,
    LifecyclePart,
    RelationPart,
    Tool,
)
from pps.config.relation_files import _Entry as RelationEntry  # pyright: ignore[reportPrivateUsage]
from pps.config.spaces import spaces
from pps.config.squad_files import _File as SquadFile  # pyright: ignore[reportPrivateUsage]
from pps.core import recalled, values
from pps.core.errors import InvalidRequest, PPSError, Problem
from pps.entities.own import OwnSettings
from pps.entities.tokens import Role, mint
from pps.features.squad.agent import AgentMemory
from pps.features.topics.portfolio import Topics
from pps.ingest.importing.formats import FORMATS, TurnLine
from pps.interfaces.cli import output
from pps.interfaces.cli.main import build
from pps.interfaces.hooks.hook_desk import HookEventDesk
from pps.interfaces.http.auth import ACTOR_HEADER, ENTITY_HEADER, Names, Trust
from pps.interfaces.http.health import HealthProbe
from pps.interfaces.http.page.browsers import Browsers
from pps.interfaces.http.problems import problem
from pps.interfaces.http.requests import Activity
from pps.interfaces.http.routes import HttpRoutes, ServerParts
from pps.interfaces.http.v1 import TIME_ZONE
from pps.interfaces.mcp.endpoint import Endpoint
from pps.interfaces.mcp.server_ends import BridgeDesk
from pps.interfaces.mcp.tools import tool
from pps.interfaces.remote import RemoteMember, RemoteMemory
from pps.isolation.recipes import RECIPES
from pps.journal.kept_records import KEPT
from pps.memory import Memory
from pps.models.program import Preset
from pps.operations import openapi
from pps.operations.calls import Calls, ProgressReport
from pps.operations.catalog import OPERATIONS, operations_for
from pps.operations.table import Audience
from pps.recall.perspectives import PERSPECTIVES
from pps.recall.profiles import ProfileFile, Profiles
from pps.server import runfile
from tests.contract.schema_lines import schema_lines

Tree: TypeAlias = "dict[str, Any]"

FOLDER = Path(__file__).parent
_ROOT = FOLDER.parents[1]
_VARIABLE = re.compile(r"\b(?:PPS|NEO4J|OPENAI|ANTHROPIC|GEMINI|GOOGLE|GROQ)_[A-Z0-9_]*[A-Z0-9]\b")
_AUDIENCES: tuple[Audience, ...] = typing.get_args(Audience)


def http_operations() -> Tree:
    """Return what ``POST /v1/{operation}`` takes and answers, by audience."""
    return {
        audience: {
            name: {
                "arguments": schema_lines(operation.input_schema()),
                "answer": schema_lines(operation.output_schema()),
                "answers": "lines of progress, then the answer" if operation.long else "once",
            }
            for name, operation in operations_for(audience).items()
        }
        for audience in _AUDIENCES
    }


def mcp_tools() -> Tree:
    """Return the tools of the Model Context Protocol by audience and toolset, with the arguments that models see."""
    found: Tree = {}
    for audience in ("entity", "member", "router"):
        for name, operation in operations_for(audience).items():
            shown = tool(operation)
            hints = [key for key, value in sorted(shown["annotations"].items()) if value is True]
            toolset = found.setdefault(audience, {}).setdefault(operation.toolset, {})
            toolset[name] = {
                "arguments": schema_lines(shown["inputSchema"]),
                "hints": " ".join(hints) or "none",
            }
    return found


def commands() -> Tree:
    """Return every command with its arguments and options."""
    found: Tree = {}
    for path, command in _commands(build(), "pps"):
        parameters: dict[str, str] = {}
        for parameter in command.params:
            is_argument = parameter.param_type_name == "argument"
            names = [parameter.metavar or parameter.name] if is_argument else parameter.opts
            names = [*names, *parameter.secondary_opts]
            parameters[", ".join(map(str, names))] = _parameter_text(parameter)
        found[path] = parameters
    return found


def _commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group) or command.params:
        yield path, command
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from _commands(child, f"{path} {name}")
        for alias, name in getattr(command, "aliases", {}).items():
            yield from _commands(command.commands[name], f"{path} {alias}")


def _parameter_text(parameter: click.Parameter) -> str:
    if getattr(parameter, "is_flag", False):
        text = "switch"
    elif isinstance(parameter.type, click.Choice):
        text = " | ".join(map(str, cast("Any", parameter.type).choices))
    else:
        text = str(cast("Any", parameter.type).name).lower()
        least, most = getattr(parameter.type, "min", None), getattr(parameter.type, "max", None)
        if least is not None or most is not None:
            text = f"{text}({_or_empty(least)}..{_or_empty(most)})"
    if getattr(parameter, "multiple", False) or parameter.nargs == -1:
        text += ", several"
    if parameter.required:
        text += ", required"
    if not isinstance(parameter.default, bool | None) and parameter.default:
        shown = str(parameter.default)
        text += "" if "Sentinel" in shown else f", default {shown}"
    return text + (", hidden" if getattr(parameter, "hidden", False) else "")


def _or_empty(value: object) -> str:
    return "" if value is None else str(value)


def errors() -> Tree:
    """Return the error classes: base, code, HTTP status and exit code; and what statuses and exit codes mean."""
    for module in pkgutil.walk_packages(pps.__path__, "pps."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    classes = {PPSError, *_subclasses(PPSError)}
    problem_schema = openapi.document([])["components"]["schemas"]["Problem"]
    return {
        "classes": {kind.__name__: _error_line(kind) for kind in classes},
        "http_status": {str(status): text for status, text in openapi.PROBLEMS.items()},
        "http_problem": schema_lines(problem_schema),
        "exit_codes": re.findall(r"Exit codes: (.*)\.", build().help or "")[0].split(", "),
        "command_json": _error_json(),
    }


def _subclasses(kind: type[PPSError]) -> Iterator[type[PPSError]]:
    for child in kind.__subclasses__():
        if child.__module__.startswith("pps.") and not child.__name__.startswith("_"):
            yield child
            yield from _subclasses(child)


def _error_line(kind: type[PPSError]) -> str:
    error = kind.__new__(kind)
    error.message = "a message"
    if isinstance(error, InvalidRequest):
        error.problems = (Problem("a field", "a problem"),)
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        exit_code = output.told(error)
    base = ", ".join(parent.__name__ for parent in kind.__bases__)
    retryable = ", may be tried again" if kind.retryable else ""
    status = problem(error, "contract")["status"]
    written = inspect.getsource(kind.__init__) if "__init__" in vars(kind) else ""
    properties = [name for name, value in vars(kind).items() if isinstance(value, property)]
    stored = [name for name in re.findall(r"self\.(\w+) = ", written) if not name.startswith("_")]
    attributes = " ".join([*properties, *stored])
    known = f"; has {attributes}" if attributes else ""
    return f"{base}; code {kind.code}; HTTP {status}; exit {exit_code}{retryable}{known}"


def _error_json() -> list[str]:
    """Return the keys of what a command prints on stdout for an error, where JSON was asked for."""
    arguments, sys.argv = sys.argv, ["pps", "--json"]
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            output.told(PPSError("a message"))
    finally:
        sys.argv = arguments
    return _keys(json.loads(printed.getvalue()))


def settings() -> Tree:
    """Return the keys of ``pps.toml`` and ``entity.toml``, and the variables of the environment that are read."""
    keys = schema_lines(Settings.model_json_schema())
    keys.pop("home")
    sections = {path.partition(".")[0] for path in keys if "." in path}
    variables = {
        f"PPS_{path.replace('.', '__').upper()}"
        for path in keys
        if not re.search(r"[*\[(]", path) and path not in sections
    }
    sources = [*_ROOT.glob("pps/**/*.py"), *_ROOT.glob("config/claude/**/*.py")]
    read = {name for file in sources for name in _VARIABLE.findall(file.read_text("utf-8"))}
    return {
        "pps.toml": {path: text for path, text in keys.items() if path not in sections},
        "entity.toml": schema_lines(OwnSettings.model_json_schema()),
        "variables_of_settings": sorted(variables),
        "other_variables": sorted(read - variables),
    }


def files() -> Tree:
    """Return the formats of files: what users write, what PPS writes for other programs, and what is shipped."""
    tables = {
        "": Head,
        "layers.*": Layer,
        "kinds.*": Kind,
        "kinds.*.fields.*": FieldTable,
        "relations.*": RelationPart,
        "relations.*.fields.*": FieldTable,
        "lifecycles.*": LifecyclePart,
        "authority.*": AuthorityPart,
        "tools.*": Tool,
    }
    pack: dict[str, str] = {}
    for path, table in tables.items():
        pack.update(schema_lines(table.model_json_schema(), path))
    plugin = [path for path in _ROOT.glob("config/claude/**/*") if path.is_file()]
    hooks = json.loads((_ROOT / "config/claude/hooks/hooks.json").read_text("utf-8"))["hooks"]
    return {
        "pack": pack,
        "profile": schema_lines(ProfileFile.model_json_schema()),
        "squad": schema_lines(SquadFile.model_json_schema()),
        "relations.toml": schema_lines(RelationEntry.model_json_schema()),
        "extractors.toml": schema_lines(TypeAdapter(Preset).json_schema()),
        "import_line": schema_lines(TurnLine.model_json_schema()),
        "record_line": schema_lines(KEPT.json_schema(mode="serialization")),
        "claude_plugin": sorted(
            str(path.relative_to(_ROOT)) for path in plugin if "__pycache__" not in path.parts
        ),
        "claude_hook_events": {name: _hook_command(hook) for name, hook in hooks.items()},
    }


def _hook_command(entries: list[Tree]) -> str:
    (entry,) = entries
    (hook,) = entry["hooks"]
    return " ".join([hook["command"], *hook["args"]])


def names() -> Tree:
    """Return the names that users pass as values: profiles, retrievers, recipes, packs and others."""
    profiles = Profiles.load(Settings(home=Path("nowhere")))
    own = [profile for profile in profiles.all() if not profile.recipe]
    shipped_packs = (tomllib.loads(file.read_text("utf-8")) for file in _shipped("config/packs"))
    return {
        "profiles": {profile.name: " ".join(profile.channels) for profile in own},
        "recipes": list(RECIPES),
        "retrievers": {
            name: "finds" if one.finds else "only orders" for name, one in PERSPECTIVES.items()
        },
        "perspectives": {name: space.perspective for name, space in spaces().items()},
        "channels": list(values.CHANNELS),
        "packs": {pack["name"]: _pack_names(pack) for pack in shipped_packs},
        "squads": [file.name.removesuffix(".toml") for file in _shipped("config/squads")],
        "extractors": sorted(tomllib.loads(shipped("config/extractors.toml").read_text("utf-8"))),
        "import_formats": sorted(FORMATS),
        "toolsets": {
            audience: sorted({one.toolset for one in operations_for(audience).values()})
            for audience in _AUDIENCES
        },
        "commands_of_operations": {
            f"{one.audience}.{one.name}": one.command for one in OPERATIONS if one.command
        },
    }


def _shipped(folder: str) -> list[Any]:
    return sorted(shipped(folder).iterdir(), key=lambda file: file.name)


def _pack_names(pack: Tree) -> Tree:
    relations: dict[str, list[str]] = {}
    for name, tables in pack.get("relations", {}).items():
        pairs = [pair for table in tables for pair in table["pairs"]]
        relations[name] = sorted(" to ".join(pair) for pair in pairs)
    moves: dict[str, list[str]] = {}
    for name, lifecycle in pack.get("lifecycles", {}).items():
        pairs = [(state, after) for state, next_ in lifecycle["moves"].items() for after in next_]
        moves[name] = sorted(" to ".join(pair) for pair in pairs)
    found = {
        "layers": sorted(pack.get("layers", {})),
        "kinds": {name: sorted(kind.get("fields", {})) for name, kind in pack["kinds"].items()},
        "relations": relations,
        "lifecycles": moves,
        "authority": sorted(pack.get("authority", {})),
        "tools": {name: table["operation"] for name, table in pack.get("tools", {}).items()},
    }
    return {name: value for name, value in found.items() if value}


def python() -> Tree:
    """Return ``pps.__all__`` and the public fields and methods of what programs get."""
    found: Tree = {"pps.__all__": sorted(pps.__all__)}
    for name in pps.__all__:
        value = getattr(pps, name)
        if not isinstance(value, type):
            found[f"pps.{name}"] = _signature(value)
    for kind in _public_classes():
        found[kind.__name__] = members(kind)
    for name, part in _parts_of_memory():
        found[f"Memory.{name}"] = methods(part)
    return found


def _public_classes() -> list[type]:
    exported = [getattr(pps, name) for name in pps.__all__]
    kinds: list[type] = [
        kind
        for kind in exported
        if isinstance(kind, type) and kind is not Settings and not issubclass(kind, PPSError)
    ]
    for module in (values, recalled):
        kinds += [
            kind
            for kind in cast("Iterable[object]", vars(module).values())
            if isinstance(kind, type)
            and dataclasses.is_dataclass(kind)
            and kind.__module__ == module.__name__
        ]
    kinds += [RemoteMemory, RemoteMember, AgentMemory]
    return sorted(set(kinds), key=lambda kind: kind.__name__)


def _parts_of_memory() -> Iterator[tuple[str, type]]:
    """Yield the classes behind the properties of a memory, such as ``Memory.records``."""
    for name, value in inspect.getmembers_static(Memory, lambda one: isinstance(one, property)):
        kind = typing.get_type_hints(cast("property", value).fget, localns={"Topics": Topics})[
            "return"
        ]
        if isinstance(kind, type) and kind.__module__.startswith("pps."):
            yield name, kind


def members(kind: type) -> dict[str, str]:
    """Return the public fields, properties and methods of a class, with what each takes and returns."""
    found = methods(kind)
    if dataclasses.is_dataclass(kind):
        for field in dataclasses.fields(kind):
            if not field.name.startswith("_"):
                found[field.name] = str(field.type) + _default_of(field)
    return found


def methods(kind: type) -> dict[str, str]:
    """Return the public properties and methods of a class, and the keywords of ``**options``."""
    found: dict[str, str] = {}
    members: list[tuple[str, Any]] = inspect.getmembers_static(kind)
    for name, value in members:
        if name.startswith("_"):
            continue
        member: Any = value
        if isinstance(value, property):
            found[name] = f"property: {inspect.get_annotations(value.fget or print).get('return')}"
        elif isinstance(value, staticmethod | classmethod) or inspect.isfunction(value):
            function = cast("Callable[..., Any]", getattr(member, "__func__", member))
            prefix = "async " if inspect.iscoroutinefunction(function) else ""
            found[name] = prefix + _signature(function)
            found |= _option_lines(name, function)
    return found


def _signature(function: Callable[..., Any]) -> str:
    """Return a signature with its annotations as they are written."""
    text = re.sub(r"""(: |-> )'([^']*)'""", r"\1\2", str(inspect.signature(function)))
    return re.sub(r'''(: |-> )"([^"]*)"''', r"\1\2", text)


def _default_of(field: dataclasses.Field[Any]) -> str:
    if field.default_factory is not dataclasses.MISSING:
        return " = empty"
    if field.default is dataclasses.MISSING:
        return ""
    return f" = {field.default!r}"


def _option_lines(name: str, function: Callable[..., Any]) -> dict[str, str]:
    """Return the keywords that a method takes by ``**options: Unpack[...]``, one line each."""
    found: dict[str, str] = {}
    for parameter in inspect.signature(function).parameters.values():
        match = re.fullmatch(r"Unpack\[(\w+)\]", str(parameter.annotation))
        if match:
            options = function.__globals__[match[1]]
            for key, annotation in inspect.get_annotations(options).items():
                text = getattr(annotation, "__forward_arg__", annotation)
                found[f"{name}(**{key})"] = str(text)
    return found


def http() -> Tree:
    """Return routes and headers of the server, the fields of what it answers beside operations, tokens, its file."""
    found: Tree = {
        "token_shapes": {role: _token_shape(role) for role in typing.get_args(Role)},
        "headers": {
            "request": [ENTITY_HEADER, ACTOR_HEADER],
            "answer": [TIME_ZONE],
        },
    }
    return found | asyncio.run(_of_a_new_home())


def _token_shape(role: Role) -> str:
    *head, id_, secret = mint(role).text.split("_")
    return f"{'_'.join(head)}_ID_SECRET with {len(id_)} and {len(secret)} characters"


async def _of_a_new_home() -> Tree:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        settings = Settings(home=home, embedder=EmbedderSettings(name="hash"))
        async with App.open(settings) as app:
            await app.create("ana")
            async with app.memory("ana") as memory:
                await memory.remember("Said once.", extraction="none")
            answers = await _of_a_server(app)
        runfile.write(home, runfile.RunFile(1, "127.0.0.1", 8377, "0", False, "pps_w_0"))
        server_json = json.loads(runfile.run_file(home).read_text("utf-8"))
    return {
        **answers,
        "server.json": {name: type(value).__name__ for name, value in server_json.items()},
    }


async def _of_a_server(app: App) -> Tree:
    """Ask the routes as the owner of the machine does."""
    secret = runfile.new_secret()
    names = Names("127.0.0.1", (), ())
    calls = Calls(app)
    activity = Activity()
    trust = Trust(app.registry, secret)
    parts = ServerParts(
        app,
        calls,
        trust,
        Browsers(app.registry),
        names,
        activity,
        HealthProbe(app, calls, activity),
        Endpoint(calls, trust.caller, hosts=names.hosts, origins=names.origins),
        HookEventDesk(app),
        BridgeDesk(calls),
    )
    server = HttpRoutes(parts).starlette()
    client = httpx.AsyncClient(
        transport=httpx.ASGITransport(server),
        base_url="http://127.0.0.1:8377",
        headers={"Authorization": f"Bearer {secret}"},
    )
    async with client:
        health = (await client.get("/health")).json()
        status = (await client.get("/owner/status")).json()
        metrics = (await client.get("/metrics")).text
        lines = await client.post(
            "/v1/reindex", json={"entity": "ana"}, headers={"Accept": "application/x-ndjson"}
        )
        refused = await client.post("/v1/reindex", json={"entity": "nobody"})
    routes = (route for route in server.routes if isinstance(route, Route))
    return {
        "routes": {route.path: " ".join(sorted(route.methods or ["any"])) for route in routes},
        "health": sorted(health),
        "owner_status": sorted(status),
        "metrics": sorted(set(re.findall(r"(?m)^# TYPE (\w+ \w+)", metrics))),
        "progress_line": sorted(field.name for field in dataclasses.fields(ProgressReport)),
        "last_line": sorted(json.loads(lines.text.splitlines()[-1])),
        "problem": {
            "fields": sorted(refused.json()),
            "media_type": refused.headers["content-type"],
        },
    }


def _keys(tree: Mapping[str, Any], path: str = "") -> list[str]:
    found: list[str] = []
    for name, value in tree.items():
        below = f"{path}.{name}" if path else name
        if isinstance(value, Mapping):
            found += _keys(cast("Mapping[str, Any]", value), below)
        else:
            found.append(below)
    return sorted(found)


FILES: Mapping[str, Callable[[], Tree]] = {
    "commands": commands,
    "errors": errors,
    "files": files,
    "http": http,
    "mcp": mcp_tools,
    "names": names,
    "python": python,
    "settings": settings,
    "v1": http_operations,
}
"""Name of each snapshot beside this module → what reports it."""
GONE = "gone"
"""Name of the list of all items that were ever lost; each must be named in ``CHANGELOG.md``."""


def stored(name: str) -> Tree:
    """Return a snapshot; the committed one where the file has the marks of a merge conflict; empty when there is none."""
    file = FOLDER / f"{name}.json"
    try:
        return json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except json.JSONDecodeError:
        place = f"HEAD:{file.relative_to(_ROOT)}"
        shown = subprocess.run(["git", "show", place], cwd=_ROOT, capture_output=True, check=True)
        return json.loads(shown.stdout)


def still_gone(known: Iterable[str], name: str, before: Tree, after: Tree) -> list[str]:
    """Return the items that are gone for good: those known to be, and what ``after`` lacks; not what has come back."""
    old, new = _items(before), _items(after)
    lost = [f"{name} > {path}" for path in old if path not in new]
    back = {f"{name} > {path}" for path in new}
    return sorted({*known, *lost} - back)


def write(name: str, tree: Tree) -> None:
    text = json.dumps(tree, ensure_ascii=False, indent=1, sort_keys=True)
    (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def differences(name: str, before: Tree, after: Tree) -> list[str]:
    """Return one line for each item that is gone, new or otherwise; empty when nothing changed."""
    old, new = _items(before), _items(after)
    lines = [f"{name}: gone: {path}: {old[path]}" for path in old if path not in new]
    lines += [f"{name}: new: {path}: {new[path]}" for path in new if path not in old]
    lines += [
        f"{name}: changed: {path}: {old[path]} -> {new[path]}"
        for path in old
        if path in new and old[path] != new[path]
    ]
    return lines


def _items(tree: Tree, path: str = "") -> dict[str, str]:
    """Return the leaves of a tree by their path; the items of a list are leaves of their own."""
    found: dict[str, str] = {}
    for name, value in tree.items():
        below = f"{path} > {name}" if path else name
        if isinstance(value, Mapping):
            found |= _items(cast("Tree", value), below) or {below: "nothing"}
        elif isinstance(value, list):
            found |= {f"{below} > {item}": "listed" for item in cast("list[Any]", value)}
        else:
            found[below] = str(value)
    return found


def main() -> int:
    """Compare the snapshots with the code, or write them (``--write``); return the exit code."""
    if sys.argv[1:] not in ([], ["--write"]):
        print("usage: scripts/contract [--write]", file=sys.stderr)  # noqa: T201
        return 2
    is_writing = bool(sys.argv[1:])
    lines: list[str] = []
    gone: list[str] = stored(GONE).get("items", [])
    for name, report in FILES.items():
        before, after = stored(name), json.loads(json.dumps(report()))
        lines += differences(name, before, after)
        gone = still_gone(gone, name, before, after)
        if is_writing:
            write(name, after)
    if is_writing:
        write(GONE, {"items": gone})
    print("\n".join(lines) or "nothing changed")  # noqa: T201
    return 1 if lines and not is_writing else 0


if __name__ == "__main__":
    sys.exit(main())
