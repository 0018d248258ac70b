"""Hooks in Claude Code's settings: beside what is there, and out again to the last byte."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from pps.core.errors import InvalidRequest, StoreError
from pps.interfaces.cli.client_settings import hook_clients, install, look, settings_file, uninstall

EVENTS = hook_clients()["claude"].events

FILES = {
    "empty object": b"{}",
    "four spaces": b"""{
    "model": "opus",
    "hooks": {
        "Stop": [{"hooks": [{"type": "command", "command": "true"}]}]
    }
}
""",
    "tabs": b'{\n\t"permissions": {"allow": ["Bash(ls)"]}\n}',
    "one line": '{"env": {"NAME": "Zoë"}, "hooks": {}}'.encode(),
    "empty lists": b'{"hooks": {"Stop": [], "Notification": []}}\r\n',
    "byte order mark": b'\xef\xbb\xbf{"theme": "dark"}',
    "nothing": b"",
}


@pytest.mark.parametrize("kind", FILES)
def test_installing_and_uninstalling_gives_back_every_byte(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(FILES[kind])
    path.chmod(0o640)
    before = json.loads(FILES[kind].decode("utf-8-sig") or "{}")
    assert install(path, "ana", "")
    now = json.loads(path.read_text())
    assert {name: value for name, value in now.items() if name != "hooks"} == {
        name: value for name, value in before.items() if name != "hooks"
    }
    for event, groups in before.get("hooks", {}).items():
        assert now["hooks"][event][: len(groups)] == groups
    assert look(path).events == tuple(sorted(EVENTS, key=list(now["hooks"]).index))
    assert path.stat().st_mode & 0o777 == 0o640
    assert uninstall(path)
    assert path.read_bytes() == FILES[kind]
    assert [one.name for one in tmp_path.iterdir()] == ["settings.json"]


def test_a_file_that_was_not_there_is_made_and_goes_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "settings.json"
    assert install(path, "", "")
    assert path.stat().st_mode & 0o777 == 0o600
    assert uninstall(path)
    assert not path.exists()
    assert not uninstall(path)


def test_a_second_time_changes_nothing_and_another_entity_replaces_the_first(
    tmp_path: Path,
) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(FILES["tabs"])
    assert install(path, "ana", "/data/pps home")
    first = path.read_bytes()
    assert not install(path, "ana", "/data/pps home")
    assert path.read_bytes() == first
    assert b'\n\t"permissions"' in first
    assert look(path).entity == "ana"
    assert look(path).command[-4:] == ("--entity", "ana", "--home", "/data/pps home")
    assert install(path, "bea", "")
    assert look(path).entity == "bea"
    assert len(re.findall("pps_hook.py", path.read_text())) == len(EVENTS)
    uninstall(path)
    assert path.read_bytes() == FILES["tabs"]


def test_what_was_changed_in_between_stays(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(FILES["four spaces"])
    install(path, "ana", "")
    now = json.loads(path.read_text())
    now["model"] = "haiku"
    now["hooks"]["Stop"][-1]["hooks"].append({"type": "command", "command": "say done"})
    path.write_text(json.dumps(now))
    assert uninstall(path)
    rest = json.loads(path.read_text())
    assert rest["model"] == "haiku"
    assert [group["hooks"][0]["command"] for group in rest["hooks"]["Stop"]] == ["true", "say done"]
    assert list(rest["hooks"]) == ["Stop"]


def test_a_link_keeps_leading_to_the_file(tmp_path: Path) -> None:
    real, link = tmp_path / "dotfiles.json", tmp_path / "settings.json"
    real.write_bytes(FILES["tabs"])
    link.symlink_to(real)
    install(link, "", "")
    assert link.is_symlink()
    assert b"pps_hook.py" in real.read_bytes()
    uninstall(link)
    assert real.read_bytes() == FILES["tabs"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{\n  "a": 1,\n  oops\n}', "line 3"),
        ("[]", "must hold a JSON object"),
        ('{"hooks": []}', "hooks: must be a JSON object"),
        ('{"hooks": {"Stop": {}}}', "hooks.Stop: must be a list"),
        ('{"hooks": {"Stop": ["x"]}}', "hooks.Stop: must be a list"),
    ],
)
def test_a_file_that_is_broken_is_refused_and_left_alone(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "settings.json"
    path.write_text(text)
    for act in (lambda: install(path, "", ""), lambda: uninstall(path), lambda: look(path)):
        with pytest.raises(InvalidRequest) as refused:
            act()
        assert said in refused.value.message
    assert path.read_text() == text
    assert [one.name for one in tmp_path.iterdir()] == ["settings.json"]


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(b"\xff\xfe{}")
    with pytest.raises(InvalidRequest, match="UTF-8"):
        install(path, "", "")


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot be read .*: check its permissions"):
        install(tmp_path / "file" / "settings.json", "", "")


def test_each_scope_has_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings_file("user", tmp_path) == Path(os.environ["HOME"]) / ".claude" / "settings.json"
    assert settings_file("project", tmp_path) == tmp_path / ".claude" / "settings.json"
    assert settings_file("local", tmp_path) == tmp_path / ".claude" / "settings.local.json"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    assert settings_file("user", Path()) == tmp_path / "settings.json"
