"""PPS's hooks in clients: which clients there are, and how each is given the hooks.

``config/clients/hooks.toml`` describes the clients. The hook program and the server are the same
for all. What a client calls the fields of an event, the program knows (``ADAPTERS`` in
``config/claude/hooks/pps_hook.py``). Hooks are added to a client's settings file beside other
settings and removed without a trace. Clients that load JavaScript get a plugin: OpenCode a file,
OpenClaw an entry in its settings.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast

from pps.config import shipped
from pps.core.errors import InvalidRequest, StoreError
from pps.core.user_files import read_regular
from pps.core.values import JSON

_Object = dict[str, JSON]
PROGRAM = "pps_hook.py"
_FLAT_VERSION: _Object = {"version": 1}
"""What a settings file has at its top whose events hold hooks, not groups."""
CLAUDE = "claude"
_MAX_BYTES = 16 * 1024 * 1024

_PLUGIN = "pps"
_MARK = "// PPS memory for OpenCode."
_SETTINGS = "const SETTINGS = {}"
_IMPORT = 'import { tell } from "./openclaw/hook_program.js"\n'
"""Replaced by the module itself: OpenCode's plugin is one file."""


@dataclass(frozen=True, slots=True)
class ClientEvent:
    """One event of a client.

    Attributes:
        ours: What the hook program and the server call it.
        timeout_s: How long the client waits; the program keeps shorter times of its own.
        matcher: Of its tools, a regular expression; empty for all, and where there are none.
    """

    ours: str
    timeout_s: int
    matcher: str = ""


@dataclass(frozen=True, slots=True)
class HookClient:
    """A client and its settings.

    Attributes:
        name: Given by ``--client``, and to the hook program.
        title: What people call it.
        form: ``groups``: events hold groups of hooks, as Claude Code has them; ``flat``: events
            hold hooks; ``plugin``: a plugin of ours tells the hook program.
        user: Its settings file, from the home folder.
        project: The same, from a project's folder; empty where it has none.
        home_variable: Names another folder for the first part of ``user``.
        events: Its events; of a plugin none, since the plugin knows them.
        timeouts: In which unit its settings give a time-out; empty: they give none.
        then: What a person does next, in a sentence.
    """

    name: str
    title: str
    form: Literal["groups", "flat", "plugin"]
    user: str
    project: str = ""
    home_variable: str = ""
    events: Mapping[str, ClientEvent] = field(default_factory=dict[str, ClientEvent])
    timeouts: Literal["s", "ms", ""] = "s"
    then: str = ""

    def settings_file(self, scope: str, project: Path) -> Path:
        """Return the settings file of a scope: ``user``, ``project`` or Claude Code's ``local``."""
        if scope == "user":
            folder, _, rest = self.user.partition("/")
            moved = os.environ.get(self.home_variable) if self.home_variable else None
            return Path(moved).expanduser() / rest if moved else Path.home() / folder / rest
        if scope == "local":
            return project / ".claude" / "settings.local.json"
        return project / self.project

    @property
    def scopes(self) -> tuple[str, ...]:
        if self.name == "claude":
            return "user", "project", "local"
        return ("user", "project") if self.project else ("user",)


@cache
def hook_clients() -> Mapping[str, HookClient]:
    """Return the clients by name, Claude Code first."""
    tables = tomllib.loads(shipped("config/clients/hooks.toml").read_text("utf-8"))
    return {name: _client(name, table) for name, table in tables.items()}


def _client(name: str, table: Mapping[str, Any]) -> HookClient:
    events = {event: ClientEvent(**row) for event, row in table.get("events", {}).items()}
    settings: dict[str, Any] = {key: value for key, value in table.items() if key != "events"}
    return HookClient(name=name, events=events, **settings)


@dataclass(frozen=True, slots=True)
class Installed:
    """What a settings file has of ours: events, and the command of the first."""

    events: tuple[str, ...] = ()
    command: tuple[str, ...] = ()

    @property
    def entity(self) -> str:
        """The entity that was named at the installation.

        Empty when the project's folder decides.
        """
        named = [
            after
            for name, after in zip(self.command, self.command[1:], strict=False)
            if name == "--entity"
        ]
        return named[0] if named else ""

    @property
    def missing(self) -> tuple[str, ...]:
        """Files that the command runs and that cannot be read.

        The data folder may still be to come.
        """
        words = zip(("", *self.command), self.command, strict=False)
        return tuple(
            word
            for before, word in words
            if word.startswith("/") and before != "--home" and not os.access(word, os.R_OK)
        )


def program() -> Path:
    """Return where the hook program lies in this installation."""
    return Path(str(shipped(f"config/claude/hooks/{PROGRAM}")))


def settings_file(scope: str, project: Path) -> Path:
    """Return Claude Code's settings file of a scope.

    ``user``, ``project``, or ``local`` (the project's file that is not shared).
    """
    return hook_clients()[CLAUDE].settings_file(scope, project)


def install(path: Path, entity: str, home: str, client: HookClient | None = None) -> bool:
    """Add PPS's hooks to a settings file, Claude Code's if no client is named.

    Return whether it changed.

    The file as it was is kept beside it, with ``.before-pps`` at the end of its name.
    """
    client = client or hook_clients()[CLAUDE]
    before = read(path)
    settings = parsed(path, before)
    wanted = _without_ours(path, settings)
    groups = _groups(path, wanted)
    for name, event in client.events.items():
        command = _command(event.ours, entity, home, client.name)
        matcher: _Object = {"matcher": event.matcher} if event.matcher else {}
        if client.form == "flat":
            added: _Object = {"command": command, **matcher}
        else:
            factor = 1_000 if client.timeouts == "ms" else 1
            hook: _Object = {
                "type": "command",
                "command": command,
                "timeout": event.timeout_s * factor,
            }
            added = {**matcher, "hooks": [hook]}
        groups[name] = [*groups.get(name, []), added]
    version: _Object = _FLAT_VERSION if client.form == "flat" else {}
    merged: _Object = {**version, **wanted, "hooks": cast("JSON", groups)}
    if merged == settings:
        return False
    if before is not None and not _has_ours(path, settings):
        write(backup(path), before)
    write(path, dumped(merged, before))
    return True


def uninstall(path: Path) -> bool:
    """Take our hooks out; return whether there were any.

    A file that holds what it held before gets its very bytes back, one that we made goes.
    """
    now = read(path)
    settings = parsed(path, now)
    kept_file = backup(path)
    if not _has_ours(path, settings):
        return False
    rest = _without_ours(path, settings)
    before = read(kept_file)
    if before is not None and _same(kept_file, before, rest):
        write(path, before)
    elif before is None and rest in ({}, _FLAT_VERSION):
        Path(os.path.realpath(path)).unlink()
    else:
        write(path, dumped(rest, now))
    kept_file.unlink(missing_ok=True)
    return True


def look(path: Path) -> Installed:
    """Return what a settings file has of ours; raises as ``install``."""
    settings = parsed(path, read(path))
    hooks = [(event, _ours(hook)) for event, _, hook in _hooks(path, settings)]
    hooks = [(event, words) for event, words in hooks if words]
    return Installed(
        tuple(dict.fromkeys(event for event, _ in hooks)), hooks[0][1] if hooks else ()
    )


def _command(event: str, entity: str, home: str, client: str) -> str:
    words = [sys.executable, "-I", "-S", str(program()), event]
    words += ["--client", client] if client != CLAUDE else []
    words += ["--entity", entity] if entity else []
    words += ["--home", home] if home else []
    return shlex.join(words)


def _ours(hook: _Object) -> tuple[str, ...]:
    """Return the words of a hook's command when it is ours."""
    command = hook.get("command")
    arguments = hook.get("args")
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        return ()
    words += (
        [argument for argument in arguments if isinstance(argument, str)]
        if isinstance(arguments, list)
        else []
    )
    return tuple(words) if any(Path(word).name == PROGRAM for word in words) else ()


def _hooks(path: Path, settings: _Object) -> Iterator[tuple[str, _Object, _Object]]:
    for event, groups in _groups(path, settings).items():
        for group in groups:
            hooks = group.get(
                "hooks", [group]
            )  # where events hold hooks, a hook is a group of itself
            for hook in hooks if isinstance(hooks, list) else []:
                if isinstance(hook, dict):
                    yield event, group, hook


def _has_ours(path: Path, settings: _Object) -> bool:
    return any(_ours(hook) for _, _, hook in _hooks(path, settings))


def _without_ours(path: Path, settings: _Object) -> _Object:
    """Return settings without our hooks, and without what is empty for that."""
    if not _has_ours(path, settings):
        return dict(settings)
    remaining: dict[str, list[_Object]] = {}
    for event, groups in _groups(path, settings).items():
        for group in groups:
            if "hooks" not in group and _ours(group):
                continue
            hooks = group.get("hooks")
            listed = hooks if isinstance(hooks, list) else []
            others = [hook for hook in listed if not (isinstance(hook, dict) and _ours(hook))]
            if len(others) == len(listed):
                remaining.setdefault(event, []).append(group)
            elif others:
                remaining.setdefault(event, []).append({**group, "hooks": others})
    rest = {name: value for name, value in settings.items() if name != "hooks"}
    return {
        name: cast("JSON", remaining) if name == "hooks" else rest[name]
        for name in settings
        if remaining or name != "hooks"
    }


def _groups(path: Path, settings: _Object) -> dict[str, list[_Object]]:
    hooks = settings.get("hooks", {})
    if not isinstance(hooks, dict):
        raise InvalidRequest(
            "hooks", f"must be a JSON object in {path}; mend it, nothing was changed"
        )
    by_event: dict[str, list[_Object]] = {}
    for event, groups in hooks.items():
        if not isinstance(groups, list) or not all(isinstance(group, dict) for group in groups):
            raise InvalidRequest(
                f"hooks.{event}",
                f"must be a list of JSON objects in {path}; mend it, nothing was changed",
            )
        by_event[event] = [group for group in groups if isinstance(group, dict)]
    return by_event


def parsed(path: Path, raw: bytes | None) -> _Object:
    """Return settings as an object; InvalidRequest where they are none."""
    try:
        value: JSON = json.loads((raw or b"").decode("utf-8-sig").strip() or "{}")
    except UnicodeDecodeError:
        raise InvalidRequest("settings", f"{path} is not UTF-8 text; nothing was changed") from None
    except json.JSONDecodeError as error:
        raise InvalidRequest(
            "settings", f"{path}, line {error.lineno}: {error.msg}; mend it, nothing was changed"
        ) from None
    if not isinstance(value, dict):
        raise InvalidRequest("settings", f"{path} must hold a JSON object; nothing was changed")
    return value


def _same(path: Path, raw: bytes, settings: _Object) -> bool:
    try:
        return _bare(parsed(path, raw)) == _bare(settings)
    except InvalidRequest:
        return False


def _bare(settings: _Object) -> _Object:
    """Return settings without hooks that are there but empty."""
    hooks = settings.get("hooks")
    full = (
        {event: groups for event, groups in hooks.items() if groups}
        if isinstance(hooks, dict)
        else hooks
    )
    return {**settings, "hooks": full or None}


def dumped(settings: _Object, like: bytes | None) -> bytes:
    """Return settings as text, indented as the file was."""
    match = re.search(rb"^[{\[]\r?\n([ \t]+)", (like or b"").removeprefix(b"\xef\xbb\xbf"))
    indent = match[1].decode() if match else "  "
    return (json.dumps(settings, indent=indent, ensure_ascii=False) + "\n").encode()


def backup(path: Path) -> Path:
    """Return where the settings are kept as they were before ours."""
    return path.with_name(path.name + ".before-pps")


def read(path: Path) -> bytes | None:
    """Return a settings file; None where there is none.

    Raises StoreError where it cannot be read.
    """
    try:
        return read_regular(path, _MAX_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _refused(path, "read", error) from None


def write(path: Path, body: bytes) -> None:
    """Replace a file in one step; a link keeps leading where it leads, and the mode stays."""
    target = Path(os.path.realpath(path))
    draft = target.with_name(f".{target.name}.{secrets.token_hex(6)}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        draft.chmod(mode)
        draft.replace(target)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise _refused(path, "written", error) from None


def _refused(path: Path, problem: str, error: OSError) -> StoreError:
    return StoreError(
        f"{path} cannot be {problem} ({error.strerror}): check its permissions and those of its "
        "folder"
    )


def install_plugin(client: str, path: Path, entity: str, home: str) -> bool:
    """Put the plugin in; return whether anything changed.

    Raises InvalidRequest for a file that is somebody else's.
    """
    return (
        _install_opencode(path, entity, home)
        if client == "opencode"
        else _fill_openclaw(path, entity, home)
    )


def uninstall_plugin(client: str, path: Path) -> bool:
    """Take the plugin out; return whether it was there."""
    if client != "opencode":
        return _empty_openclaw(path)
    if plugin_entity("opencode", path) is None:
        return False
    path.unlink()
    return True


def plugin_entity(client: str, path: Path) -> str | None:
    """Return the entity that the plugin was installed for, empty for none by name.

    None where it is not installed.
    """
    if client == "opencode":
        text = read(path)
        if text is None or not text.decode("utf-8", "replace").startswith(_MARK):
            return None
        line = next(
            line for line in text.decode().splitlines() if line.startswith("const SETTINGS")
        )
        return str(json.loads(line.partition("= ")[2])["entity"])
    entry = _object(_object(_object(_read_settings(path)[1], "plugins"), "entries"), _PLUGIN)
    return str(_object(entry, "config").get("entity", "")) if entry else None


def _plugin_values(entity: str, home: str) -> _Object:
    return {
        "python": sys.executable,
        "program": str(program()),
        "entity": entity,
        "home": home,
    }


def _install_opencode(path: Path, entity: str, home: str) -> bool:
    text = shipped("config/clients/opencode.js").read_text(encoding="utf-8")
    values = json.dumps(_plugin_values(entity, home))
    module = shipped("config/clients/openclaw/hook_program.js").read_text(encoding="utf-8")
    text = text.replace(_IMPORT, module.replace("export function", "function", 1), 1)
    wanted = text.replace(_SETTINGS, f"const SETTINGS = {values}", 1).encode()
    before = read(path)
    if before is not None and not before.decode("utf-8", "replace").startswith(_MARK):
        raise InvalidRequest("--client", f"{path} is not ours; move it, nothing was changed")
    if before == wanted:
        return False
    write(path, wanted)
    return True


def _read_settings(path: Path) -> tuple[bytes | None, _Object]:
    raw = read(path)
    return raw, parsed(path, raw)


def _object(value: _Object, key: str) -> _Object:
    inner = value.get(key)
    return inner if isinstance(inner, dict) else {}


def _fill_openclaw(path: Path, entity: str, home: str) -> bool:
    """Add our folder, our entry and the memory slot; what else the settings hold stays."""
    before, now = _read_settings(path)
    plugins = _object(now, "plugins")
    load = _object(plugins, "load")
    slots = _object(plugins, "slots")
    listed = load.get("paths", [])
    folder = str(shipped("config/clients/openclaw"))
    paths = [
        path_listed
        for path_listed in (listed if isinstance(listed, list) else [])
        if path_listed != folder
    ]
    entry: _Object = {
        "enabled": True,
        "hooks": {"allowConversationAccess": True, "allowPromptInjection": True},
        "config": _plugin_values(entity, home),
    }
    filled: _Object = {
        **plugins,
        "load": {**load, "paths": [*paths, folder]},
        "slots": {**slots, "memory": _PLUGIN},
        "entries": {**_object(plugins, "entries"), _PLUGIN: entry},
    }
    wanted: _Object = {**now, "plugins": filled}
    if wanted == now:
        return False
    if before is not None and plugin_entity("openclaw", path) is None:
        write(backup(path), before)
    write(path, dumped(wanted, before))
    return True


def _empty_openclaw(path: Path) -> bool:
    """Take out what ``_fill_openclaw`` added.

    A file that holds what it held before gets its very bytes back.
    """
    if plugin_entity("openclaw", path) is None:
        return False
    raw, now = _read_settings(path)
    plugins = _object(now, "plugins")
    entries = {k: v for k, v in _object(plugins, "entries").items() if k != _PLUGIN}
    slots = {k: v for k, v in _object(plugins, "slots").items() if (k, v) != ("memory", _PLUGIN)}
    folder = str(shipped("config/clients/openclaw"))
    load = _object(plugins, "load")
    listed = load.get("paths", [])
    paths = [
        path_listed
        for path_listed in (listed if isinstance(listed, list) else [])
        if path_listed != folder
    ]
    left_load = {k: v for k, v in load.items() if k != "paths"} | (
        {"paths": paths} if paths else {}
    )
    parts: _Object = {"load": left_load, "slots": slots, "entries": entries}
    plugins_left = {k: v for k, v in plugins.items() if k not in parts} | {
        k: v for k, v in parts.items() if v
    }
    rest = {k: v for k, v in now.items() if k != "plugins"} | (
        {"plugins": plugins_left} if plugins_left else {}
    )
    kept_file = backup(path)
    before = read(kept_file)
    was = parsed(kept_file, before) if before is not None else {}
    slot_before = _object(_object(was, "plugins"), "slots").get("memory")
    if before is not None and slot_before is not None and "memory" not in slots:
        restored = {**_object(rest, "plugins"), "slots": {**slots, "memory": slot_before}}
        rest = {**rest, "plugins": restored}
    if before is not None and was == rest:
        write(path, before)
    elif before is None and not rest:
        path.unlink()
    else:
        write(path, dumped(rest, raw))
    kept_file.unlink(missing_ok=True)
    return True
