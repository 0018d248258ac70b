"""The hook that a client such as Claude Code runs at each event: tell the server of PPS, print what it has to say.

    python -I -S pps_hook.py EVENT [--client NAME] [--entity NAME] [--home FOLDER] [--debug]

EVENT is Claude Code's name of it; ``ADAPTERS`` has what other clients call its fields.

One file, the standard library only, so that it starts in a blink and can be copied anywhere. It always exits with 0,
writes nothing to stderr without ``--debug``, and ends within its event's deadline whatever else hangs. It reads one
JSON object on stdin, picks the few fields that are needed, and asks the server that ``FOLDER/server.json`` names, over
its Unix socket, or where that file names none, over TCP once the server has proved that it wrote it. When that server is away or refuses for now, an event that is to be kept goes to ``FOLDER/spool`` (one file an event, mode
0600, on disk before the hook ends), from where the next server takes it in. Whose memory it is the server decides, by
the project's folder or ``--entity``; what belongs to nobody is neither sent back nor spooled.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import stat
import sys
import time

try:
    from _blake2 import (
        blake2b,
    )  # what hashlib takes it from; that one loads OpenSSL, which takes longer than all of this
except ImportError:
    from hashlib import blake2b

TYPE_CHECKING = False  # typing takes 5 ms to import
if TYPE_CHECKING:
    from typing import Any

STARTED = time.monotonic()

DEADLINES_S = {
    "SessionStart": 5.0,
    "UserPromptSubmit": 2.0,
    "PreToolUse": 0.5,
    "PostToolUse": 3.0,
    "Stop": 3.0,
    "PreCompact": 3.0,
    "SessionEnd": 30.0,
}
"""Seconds for each event, all in all. SessionEnd takes its time in a process of its own: Claude Code waits 1.5 s."""
HANDED_ON_S = 1.2
"""Seconds in which the end of a session is handed on to that process."""
ADAPTERS: dict[str, dict[str, str]] = {
    "claude": {"project_variable": "CLAUDE_PROJECT_DIR", "transcript": "transcript_path"},
    "codex": {"prompt_id": "turn_id"},
    "cursor": {
        "session_id": "conversation_id",
        "prompt_id": "generation_id",
        "last_assistant_message": "text",
        "project_variable": "CURSOR_PROJECT_DIR",
        "project": "workspace_roots",
        "output": "additional_context",
    },
    "gemini": {
        "last_assistant_message": "prompt_response",
        "project_variable": "GEMINI_PROJECT_DIR",
        "frame_before_prompt": "hook_context",
    },
    "opencode": {},
    "openclaw": {},
}
"""By client: its names of fields that are called otherwise, and how it takes what an agent is given.

Only Claude Code's transcripts are read; other clients tell each answer by itself. A plugin of ours uses our names.
"""
KEPT = ("UserPromptSubmit", "PostToolUse", "Stop", "PreCompact", "SessionEnd")
"""Events that are spooled when the server is away; the others only ask."""
BOOT_S = 0.1
"""What a Python takes to start and to end, at most; counted as gone."""
SPOOLING_S = 0.3
"""Kept back for writing an event to disk."""
_PLAIN_IN_A_SHELL = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-"
MOST_IN = 16 * 1024 * 1024
MOST_OUT = 1024 * 1024
MOST_PROOF = 4_096
MOST_SPOOLED = 10_000
MOST_SPOOLED_BYTES = 64 * 1024 * 1024
TOOL_FIELDS = (
    "description",
    "command",
    "file_path",
    "notebook_path",
    "url",
    "query",
    "pattern",
    "path",
    "prompt",
)
TOOL_CHARS = 4_000
MOST_NAME, MOST_PATH = 200, 4_096
MOST = {
    **dict.fromkeys(
        ("session", "entity", "agent", "agent_type", "source", "prompt", "tool", "ref"),
        MOST_NAME,
    ),
    **dict.fromkeys(("project", "cwd", "repository", "transcript"), MOST_PATH),
}
"""Most characters of these fields that a server takes."""
LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - compared


INSIDE = "PPS_INSIDE_EXTRACTOR"
"""Set where a program reads turns for a memory: what is said there is no session of anybody's."""
NOBODY = (FileNotFoundError, ConnectionRefusedError)
"""How it shows that no server runs; one that hangs or refuses is left alone."""


class Away(Exception):
    """No server took the event; it may be told later."""


def main(argv: list[str]) -> None:
    """Handle one event. Raises whatever goes wrong; the caller keeps that to itself."""
    if INSIDE in os.environ:
        return
    event, options = _arguments(argv)
    deadline = STARTED + DEADLINES_S[event] - BOOT_S
    first = min(deadline, STARTED + HANDED_ON_S) if event == "SessionEnd" else deadline
    signal.signal(signal.SIGALRM, _give_up)
    signal.setitimer(signal.ITIMER_REAL, max(0.05, first - time.monotonic()))
    client = options.get("client", "claude")
    given = _object(_stdin())
    message = _message(event, client, options.get("entity", ""), given)
    if event == "SessionEnd":
        _detach(deadline)
    home = home_folder(options.get("home", ""))
    reserve = SPOOLING_S if event in KEPT else 0.05
    message["within_s"] = round(deadline - reserve - time.monotonic(), 3)
    try:
        answer = _ask(home, message, deadline - reserve)
    except (Away, OSError, ValueError) as error:
        if event in KEPT and _is_known(home, message):
            _spool(home, message)
        elif event == "SessionStart" and isinstance(error, NOBODY):
            if _is_known(home, message):
                _start(home)
            else:
                _tell_once(home, message)
        return
    if answer.get("kept") is False and event in KEPT:
        _spool(home, message)
    if event == "SessionStart" and answer.get("nobody") and not _is_known(home, message):
        _tell_once(home, message)
    context = answer.get("context")
    if isinstance(context, str) and context:
        _write(1, json.dumps(_shown(event, client, given, context)).encode())


def _shown(event: str, client: str, given: dict[str, Any], context: str) -> dict[str, object]:
    """Return what the client reads, under the name that it has for the event."""
    field = ADAPTERS[client].get("output")
    if field:
        return (
            {"continue": True, field: context} if event == "UserPromptSubmit" else {field: context}
        )
    named = given.get("hook_event_name")
    name = named if isinstance(named, str) and client != "claude" else event
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": context}}


def _arguments(argv: list[str]) -> tuple[str, dict[str, str]]:
    event, rest = argv[0], argv[1:]
    options: dict[str, str] = {}
    while rest:
        name = rest.pop(0)
        options[name.removeprefix("--")] = "1" if name == "--debug" else rest.pop(0)
    return event, options


def _stdin() -> bytes:
    pieces: list[bytes] = []
    size = 0
    while piece := os.read(0, 1 << 20):
        pieces.append(piece)
        size += len(piece)
        if size > MOST_IN:
            raise ValueError("the event is larger than 16 MiB")
    return b"".join(pieces)


def _give_up(*_: object) -> None:
    os._exit(0)


def _object(raw: bytes | str) -> dict[str, Any]:
    value: Any = json.loads(raw)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value  # pyright: ignore[reportUnknownVariableType] - JSON


def _message(event: str, client: str, entity: str, given: dict[str, Any]) -> dict[str, object]:
    """Return what the server is told: known fields of the right type, nothing else."""
    theirs = ADAPTERS[client]

    def text(name: str) -> str:
        field = theirs.get(name, name)
        value = given.get(field)
        if field == "workspace_roots" and isinstance(value, list):  # the first is the session's
            value = value[0] if value else ""  # pyright: ignore[reportUnknownVariableType] - JSON
        # A lone surrogate, the half of a character, cannot be stored.
        return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""

    message: dict[str, object] = {
        "id": os.urandom(16).hex(),
        "at": time.time() - (time.monotonic() - STARTED),
        "event": event,
        "entity": entity,
        "client": client,
        "project": os.environ.get(theirs.get("project_variable", ""), "") or text("project"),
        "cwd": text("cwd"),
        "session": text("session_id"),
        "transcript": text("transcript_path") if "transcript" in theirs else "",
        "agent": text("agent_id"),
        "agent_type": text("agent_type"),
    }
    if event == "SessionStart":
        message.update(source=text("source"))
    elif event == "UserPromptSubmit":
        prompt = without_frame(text("prompt"), theirs.get("frame_before_prompt", ""))
        message.update(text=prompt, prompt=text("prompt_id"))
    elif event == "Stop":
        message.update(text=text("last_assistant_message"))
    elif event == "PostToolUse":
        message.update(
            tool=text("tool_name"), ref=text("tool_use_id"), input=_picked(given.get("tool_input"))
        )
    message["size"] = _size(str(message["transcript"]))
    working_tree = git_working_tree(str(message["project"] or message["cwd"]))
    if working_tree and (repository := main_repository(working_tree)):
        message["repository"] = repository
    check(message)
    return message


def without_frame(prompt: str, name: str) -> str:
    """Return a prompt without the element that a client puts before it for what hooks gave; empty ``name``: none."""
    opening, closing = f"<{name}>", f"</{name}>"
    if not name or not prompt.startswith(opening) or closing not in prompt:
        return prompt
    return prompt.split(closing, 1)[1].lstrip()


def git_working_tree(folder: str) -> str:
    """Return the folder with a ``.git`` that a folder is or lies in; empty when there is none."""
    place = os.path.realpath(folder) if folder else ""
    while place and not os.path.lexists(os.path.join(place, ".git")):
        parent = os.path.dirname(place)
        place = "" if parent == place else parent
    return place


def main_repository(working_tree: str) -> str:
    """Return the main folder of the repository that a linked worktree (``git worktree add``) is of; else empty.

    Its ``.git`` is a file that names a folder of the repository, whose ``commondir`` leads to what all share, and whose
    ``gitdir`` leads back: a folder that only says that it is somebody's worktree is none.
    """
    link = os.path.join(working_tree, ".git")
    if not os.path.isfile(link):
        return ""
    try:
        named = _first_line(link)
        if not named.startswith("gitdir:"):
            return ""
        own = os.path.join(working_tree, named.removeprefix("gitdir:").strip())
        back = os.path.join(own, _first_line(os.path.join(own, "gitdir")))
        shared = os.path.realpath(os.path.join(own, _first_line(os.path.join(own, "commondir"))))
        if os.path.realpath(back) != os.path.realpath(link):
            return ""
        if not os.path.realpath(own).startswith(os.path.join(shared, "worktrees") + os.sep):
            return ""
    except (OSError, ValueError):
        return ""
    return os.path.dirname(shared) if os.path.basename(shared) == ".git" else shared


def _first_line(path: str) -> str:
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise ValueError("no plain file")
        return os.read(file, MOST_PATH + 16).decode("utf-8").split("\n", 1)[0].strip()
    finally:
        os.close(file)


def check(message: dict[str, object]) -> None:
    """Refuse what no server would ever take: it is neither waited for nor spooled."""
    if not message["session"]:
        raise ValueError("the event is of no session")
    for name, most in MOST.items():
        if len(str(message.get(name, ""))) > most:
            raise ValueError(f"{name} is longer than {most:,} characters")


def _picked(given: Any) -> dict[str, str]:
    found: dict[str, Any] = given if isinstance(given, dict) else {}  # pyright: ignore[reportUnknownVariableType] - JSON
    return {
        name: found[name][:TOOL_CHARS].encode("utf-8", "replace").decode()
        for name in TOOL_FIELDS
        if isinstance(found.get(name), str)
    }


def _size(transcript: str) -> int:
    try:
        return os.stat(os.path.expanduser(transcript)).st_size
    except (OSError, ValueError):
        return 0


def home_folder(named: str) -> str:
    named = named or os.environ.get("PPS_HOME", "").strip()
    if named:
        return os.path.abspath(os.path.expanduser(named))
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Application Support/pps")
    data = os.environ.get("XDG_DATA_HOME", "").strip() or os.path.expanduser("~/.local/share")
    return os.path.join(data, "pps")


def _ask(home: str, message: dict[str, object], until: float) -> dict[str, object]:
    """Return the server's answer; an empty one when it will never take this event.

    Raises:
        Away: It may take it later.
    """
    run = _run_file(home)
    path = run.get("socket")
    if isinstance(path, str) and path:
        link, owner = _by_socket(path, until), f"PPS-Home: {_quoted(home)}"
    else:
        link, owner = _by_proof(run, until), f"Authorization: Bearer {run['secret']}"
    host = LOOPBACK.get(str(run["host"]), str(run["host"]))
    body = json.dumps(message).encode()
    head = (
        f"POST /owner/hooks HTTP/1.1\r\nHost: {f'[{host}]' if ':' in host else host}:{run['port']}\r\n"
        f"{owner}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    with link:
        link.settimeout(_left(until))
        link.sendall(head.encode() + body)
        reply = bytearray()
        while len(reply) <= MOST_OUT:
            link.settimeout(_left(until))
            if not (piece := link.recv(65_536)):
                break
            reply += piece
    top, _, rest = bytes(reply).partition(b"\r\n\r\n")
    status = int(top.split(b" ", 2)[1]) if top.startswith(b"HTTP/1.") else 0
    if status == 200:
        return _object(rest)
    if status in (400, 404, 413):
        _debug(f"the server refused: {rest[:300]!r}")
        return {"nobody": status == 404}
    raise Away


def _by_socket(path: str, until: float) -> socket.socket:
    """Return a connection to the server's socket, once its folder and who listens are known to be this user's."""
    folder = os.lstat(os.path.dirname(path))
    if not stat.S_ISDIR(folder.st_mode) or folder.st_uid != os.getuid() or folder.st_mode & 0o077:
        raise Away("the socket's folder is not this user's alone")
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    link.settimeout(_left(until))
    link.connect(path)
    if _peer_uid(link) != os.getuid():
        link.close()
        raise Away("another user listens at the socket")
    return link


def _peer_uid(link: socket.socket) -> int:
    """Return the user id of the process at the other end of a Unix socket."""
    if hasattr(socket, "SO_PEERCRED"):
        credentials = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        return int.from_bytes(credentials[4:8], sys.byteorder, signed=True)
    credentials = link.getsockopt(0, 1, 76)  # macOS: SOL_LOCAL, LOCAL_PEERCRED, a struct xucred
    return int.from_bytes(credentials[4:8], sys.byteorder)


def _quoted(home: str) -> str:
    """Return a path, percent-encoded."""
    plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/_.-~"
    return "".join(
        chr(byte) if chr(byte) in plain else f"%{byte:02X}" for byte in os.fsencode(home)
    )


def _by_proof(run: dict[str, object], until: float) -> socket.socket:
    """Return a TCP connection to the server, once it has proved that it wrote the run file."""
    host = LOOPBACK.get(str(run["host"]), str(run["host"]))
    link = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        link.settimeout(_left(until))
        link.connect((host, int(str(run["port"]))))
        _prove(link, run, host, until)
    except BaseException:
        link.close()
        raise
    return link


def _prove(link: socket.socket, run: dict[str, object], host: str, until: float) -> None:
    """Return when who listens knows the secret of the run file; to anybody else nothing is told."""
    nonce = os.urandom(16).hex()
    place = f"[{host}]" if ":" in host else host
    link.sendall(
        f"GET /owner/proof/{nonce} HTTP/1.1\r\nHost: {place}:{run['port']}\r\n\r\n".encode()
    )
    reply = b""
    while len(reply) <= MOST_PROOF and len(reply.partition(b"\r\n\r\n")[2]) < 64:
        link.settimeout(_left(until))
        if not (piece := link.recv(MOST_PROOF)):
            break
        reply += piece
    key = bytes.fromhex(str(run["secret"]).partition("pps_w_")[2])
    said = f"{nonce} {run['port']} {run['pid']}".encode()
    wanted = blake2b(said, digest_size=32, key=key, person=b"pps-server-proof").hexdigest()
    if reply.partition(b"\r\n\r\n")[2] != wanted.encode():
        raise Away("who listens at the address of server.json is a stranger")


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise Away
    return left


def _run_file(home: str) -> dict[str, object]:
    with open(os.path.join(home, "server.json"), encoding="utf-8") as file:
        mode = os.fstat(file.fileno())
        if mode.st_uid != os.getuid() or stat.S_IMODE(mode.st_mode) & 0o077:
            raise Away
        run = _object(file.read())
    if not {"host", "port", "secret", "pid"} <= run.keys():
        raise Away
    if not _is_held(os.path.join(home, "server.lock")):
        raise FileNotFoundError(
            "the server that wrote server.json was killed, and its port may be a stranger's now"
        )
    return run


def _is_held(lock: str) -> bool:
    """Tell whether a process holds a lock, as a server does for as long as it lives."""
    handle = os.open(lock, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _is_known(home: str, message: dict[str, object]) -> bool:
    """Tell whether an entity may be meant: what belongs to nobody is not even spooled."""
    import sqlite3  # only needed here, and not for free

    path = os.path.join(home, "registry.db")
    if not os.path.exists(path):
        return False
    place = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    with sqlite3.connect(f"file:{place}?mode=ro", uri=True, timeout=0.1) as db:
        if message["entity"]:
            row = db.execute(
                "SELECT 1 FROM entity WHERE name = ? AND archived = 0", (message["entity"],)
            )
            return row.fetchone() is not None
        roots = [root for (root,) in db.execute("SELECT path FROM route")]
    named = (message.get(name) for name in ("project", "cwd", "repository"))
    places = [os.path.realpath(str(place)) for place in named if place]
    return any(
        place == root or place.startswith(root.rstrip("/") + "/")
        for place in places
        for root in roots
    )


def _spool(home: str, message: dict[str, object]) -> None:
    """Put an event on disk, whole or not at all; when there is no room, note that one was dropped."""
    folder = os.path.join(home, "spool")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    body = json.dumps(message).encode()
    sizes = [one.stat().st_size for one in os.scandir(folder) if one.name.endswith(".json")]
    if len(sizes) >= MOST_SPOOLED or sum(sizes) + len(body) > MOST_SPOOLED_BYTES:
        _append(os.path.join(folder, "dropped"), b".", os.O_APPEND)
        return
    name = f"{time.time_ns():020d}-{message['id']}"
    draft = os.path.join(folder, f".{name}")
    _append(draft, body, os.O_EXCL)
    os.rename(draft, os.path.join(folder, f"{name}.json"))
    place = os.open(folder, os.O_RDONLY)
    os.fsync(place)
    os.close(place)


def _append(path: str, body: bytes, how: int) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | how, 0o600)
    _write(file, body)
    os.fsync(file)
    os.close(file)


def _write(file: int, body: bytes) -> None:
    while body:
        body = body[os.write(file, body) :]


def _tell_once(home: str, message: dict[str, object]) -> None:
    """Say once for each Git repository that it is nobody's, with the command that makes it somebody's."""
    if message["entity"] or not os.path.exists(os.path.join(home, "registry.db")):
        return
    folder = str(message.get("repository") or "") or git_working_tree(
        str(message["project"] or message["cwd"])
    )
    if not folder:
        return
    told = os.path.join(home, "hooks_told")
    os.makedirs(told, mode=0o700, exist_ok=True)
    name = blake2b(folder.encode("utf-8", "replace"), digest_size=16).hexdigest()
    try:
        _append(os.path.join(told, name), b"", os.O_EXCL)
    except FileExistsError:
        return
    plain = set(folder) <= set(_PLAIN_IN_A_SHELL)
    shown = folder if plain else "'" + folder.replace("'", "'\"'\"'") + "'"
    text = (
        f"PPS keeps nothing of this repository, since it is no entity's: `pps route add {shown} NAME` gives it to one "
        "(this is said once)"
    )
    _write(1, json.dumps({"systemMessage": text}).encode())


def _detach(deadline: float) -> None:
    """Go on in a process of its own, that nobody waits for and that outlives Claude Code."""
    if os.fork():
        os._exit(0)
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for one in (0, 1, 2):
        os.dup2(nothing, one)
    signal.setitimer(signal.ITIMER_REAL, max(0.05, deadline - time.monotonic()))


def _start(home: str) -> None:
    """Start the server without waiting for it, where this Python has PPS."""
    code = "import pathlib, sys; from pps.server import connect; connect(pathlib.Path(sys.argv[1]))"
    quiet = [(os.POSIX_SPAWN_OPEN, one, os.devnull, os.O_RDWR, 0) for one in (0, 1, 2)]
    arguments = [sys.executable, "-P", "-c", code, home]
    environment = {**os.environ, "PPS_HOME": home}
    os.posix_spawn(sys.executable, arguments, environment, file_actions=quiet, setsid=True)


def _debug(what: str) -> None:
    if "--debug" in sys.argv:
        _write(2, f"pps hook: {what}\n".encode("utf-8", "replace"))


def run() -> None:
    """Handle the event that the arguments name, and end the process."""
    try:
        main(sys.argv[1:])
    except BaseException as error:  # noqa: BLE001 - a hook never disturbs the session it serves
        _debug(f"{type(error).__name__}: {error}")
    os._exit(0)


if __name__ == "__main__":
    run()
