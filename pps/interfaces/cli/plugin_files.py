"""PPS's plugins in clients that load JavaScript: OpenCode's file, OpenClaw's settings entry."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pps.config import shipped
from pps.core.errors import InvalidRequest
from pps.core.values import JSON
from pps.interfaces.cli import client_settings as settings_files

_Object = dict[str, JSON]

_PLUGIN = "pps"
_MARK = "// PPS memory for OpenCode."
_SETTINGS = "const SETTINGS = {}"
_IMPORT = 'import { tell } from "./openclaw/hook_program.js"\n'
"""Replaced by the module itself: OpenCode's plugin is one file."""


def install(client: str, path: Path, entity: str, home: str) -> bool:
    """Put the plugin in; return whether anything changed.

    Raises InvalidRequest for a file that is somebody else's.
    """
    return _install_file(path, entity, home) if client == "opencode" else _fill(path, entity, home)


def uninstall(client: str, path: Path) -> bool:
    """Take the plugin out; return whether it was there."""
    if client != "opencode":
        return _empty(path)
    if entity_of("opencode", path) is None:
        return False
    path.unlink()
    return True


def entity_of(client: str, path: Path) -> str | None:
    """Return the entity that the plugin was installed for, empty for none by name.

    None where it is not installed.
    """
    if client == "opencode":
        text = settings_files.read(path)
        if text is None or not text.decode("utf-8", "replace").startswith(_MARK):
            return None
        line = next(
            line for line in text.decode().splitlines() if line.startswith("const SETTINGS")
        )
        return str(json.loads(line.partition("= ")[2])["entity"])
    entry = _object(_object(_object(_read(path)[1], "plugins"), "entries"), _PLUGIN)
    return str(_object(entry, "config").get("entity", "")) if entry else None


def _values(entity: str, home: str) -> _Object:
    program = str(settings_files.program())
    return {"python": sys.executable, "program": program, "entity": entity, "home": home}


def _install_file(path: Path, entity: str, home: str) -> bool:
    text = shipped("config/clients/opencode.js").read_text(encoding="utf-8")
    values = json.dumps(_values(entity, home))
    module = shipped("config/clients/openclaw/hook_program.js").read_text(encoding="utf-8")
    text = text.replace(_IMPORT, module.replace("export function", "function", 1), 1)
    wanted = text.replace(_SETTINGS, f"const SETTINGS = {values}", 1).encode()
    before = settings_files.read(path)
    if before is not None and not before.decode("utf-8", "replace").startswith(_MARK):
        raise InvalidRequest("--client", f"{path} is not ours; move it, nothing was changed")
    if before == wanted:
        return False
    settings_files.write(path, wanted)
    return True


def _read(path: Path) -> tuple[bytes | None, _Object]:
    raw = settings_files.read(path)
    return raw, settings_files.parsed(path, raw)


def _object(value: _Object, key: str) -> _Object:
    inner = value.get(key)
    return inner if isinstance(inner, dict) else {}


def _fill(path: Path, entity: str, home: str) -> bool:
    """Add our folder, our entry and the memory slot; what else the settings hold stays."""
    before, now = _read(path)
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
        "config": _values(entity, home),
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
    if before is not None and entity_of("openclaw", path) is None:
        settings_files.write(settings_files.backup(path), before)
    settings_files.write(path, settings_files.dumped(wanted, before))
    return True


def _empty(path: Path) -> bool:
    """Take out what ``_fill`` added.

    A file that holds what it held before gets its very bytes back.
    """
    if entity_of("openclaw", path) is None:
        return False
    raw, now = _read(path)
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
    kept_file = settings_files.backup(path)
    before = settings_files.read(kept_file)
    was = settings_files.parsed(kept_file, before) if before is not None else {}
    slot_before = _object(_object(was, "plugins"), "slots").get("memory")
    if before is not None and slot_before is not None and "memory" not in slots:
        restored = {**_object(rest, "plugins"), "slots": {**slots, "memory": slot_before}}
        rest = {**rest, "plugins": restored}
    if before is not None and was == rest:
        settings_files.write(path, before)
    elif before is None and not rest:
        path.unlink()
    else:
        settings_files.write(path, settings_files.dumped(rest, raw))
    kept_file.unlink(missing_ok=True)
    return True
