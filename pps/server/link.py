"""The client of a data folder's server: find it, start it if it is away, replace an older one.

Built on ``http.client``: the command line must start in a blink, and any HTTP library costs more
than the call.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import os
import sys
import threading
import time
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from urllib.parse import quote

from pps.core import errors
from pps.core.errors import ConfigError, StoreConflict, StoreError, StoreUnavailable
from pps.core.file_lock import FileLock, holder, is_held
from pps.core.version import __version__
from pps.server.owner_socket import HOME_HEADER, home_header
from pps.server.owner_socket import connect as connect_socket
from pps.server.runfile import RunFile, is_whole, lock_file
from pps.server.runfile import check as check_proof
from pps.server.runfile import question as proof_request
from pps.server.runfile import read as read_run_file

if TYPE_CHECKING:
    from pps.core.values import JSON

Answer: TypeAlias = "dict[str, JSON]"

_START_S = 60.0
_DRAIN_S = 60.0
_PAUSE_S = 0.03
_LOG_BYTES = 100_000_000
"""A server rotates its log as ``logs.max_bytes`` says.

This is for servers that end before they have read that.
"""
_CALL_S = 60.0
_SILENCE_S = 600.0
_MISDIRECTED = 421
_PROBLEM_FIELDS = ("path", "problem", "value", "remedy")


class ServerAway(StoreUnavailable):
    """Nothing answers at the run file's address."""


class OwnerConnection(http.client.HTTPConnection):
    """The owner's connection: the server's Unix socket, or else one where it proved itself.

    Nothing is sent to a server that is another user's or cannot prove itself.
    """

    def __init__(self, run: RunFile, timeout_s: float) -> None:
        """Name the server that is meant; nothing is connected yet."""
        super().__init__(run.address, run.port, timeout=timeout_s)
        self._run = run
        self._timeout_s = timeout_s

    def owner_headers(self) -> dict[str, str]:
        """Return the headers by which a request on this connection is the owner's."""
        if self._run.socket:
            return {HOME_HEADER: home_header(self._run.home)}
        return {"Authorization": f"Bearer {self._run.secret}"}

    def connect(self) -> None:
        """Connect; raises an OSError when who listens is not the server that wrote the run file."""
        if self._run.socket:
            self.sock = connect_socket(self._run.socket, self._timeout_s)
            return
        super().connect()
        nonce, request = proof_request(self._run)
        self.sock.sendall(request)
        reply = b""
        # One deadline for the whole reply: a stranger may send a byte now and then.
        until = time.monotonic() + self._timeout_s
        while not is_whole(reply):
            self.sock.settimeout(max(0.001, until - time.monotonic()))
            piece = self.sock.recv(4_096)
            if not piece:
                break
            reply += piece
        self.sock.settimeout(self._timeout_s)
        check_proof(self._run, nonce, reply)


class Link:
    """A connection's worth of knowledge about one running server.

    Calls block; each is a request of its own.

    Every method may raise ServerAway, and whatever error of ``pps.core.errors`` the server
    answered.
    """

    def __init__(self, run: RunFile, actor: str = "") -> None:
        """Name the server that is meant, and who writes with each call; empty is the person."""
        self.run = run
        self._actor = actor

    def status(self, timeout_s: float = 15.0) -> Answer:
        """Return the server's state: pid, version, open entities, uptime."""
        return self._request("GET", "/owner/status", None, timeout_s)

    def stop(self) -> None:
        """Ask the server to finish what it is doing and end."""
        self._request("POST", "/owner/stop", {}, _CALL_S)

    def call(
        self,
        operation: str,
        entity: str,
        arguments: Mapping[str, JSON],
        *,
        timeout_s: float = _CALL_S,
    ) -> dict[str, Any]:
        """Do one operation, for an entity where one is named.

        Returns its ``data``, as ``text`` its words, and the ``time_zone`` that the times of the
        data are shown in.
        """
        reports = self.follow(operation, entity, arguments, timeout_s=timeout_s)
        while True:
            try:
                next(reports)
            except StopIteration as ended:
                return ended.value

    def follow(
        self,
        operation: str,
        entity: str,
        arguments: Mapping[str, JSON],
        *,
        timeout_s: float = _SILENCE_S,
    ) -> Generator[Answer, None, dict[str, Any]]:
        """Do one long operation; yields its progress reports and returns what ``call`` does.

        Each report has ``what``, ``done`` and ``total`` (0 when unknown).
        """
        headers = {
            "Accept": "application/x-ndjson",
            **({"PPS-Entity": quote(entity, errors="replace")} if entity else {}),
            **({"PPS-Actor": quote(self._actor)} if self._actor else {}),
        }
        with self._response(
            "POST", f"/v1/{operation}", dict(arguments), timeout_s, headers
        ) as response:
            for line in response:
                event = _object(line)
                problem = event.get("problem")
                if isinstance(problem, dict):
                    raise error_from(problem)
                if "result" in event:
                    return {"data": event.pop("result"), **event}
                yield event
        raise ServerAway(
            "the server ended in the middle of the work; run the command again, it goes on from "
            "there"
        )

    def _request(self, method: str, path: str, body: Answer | None, timeout_s: float) -> Answer:
        with self._response(method, path, body, timeout_s) as response:
            return _object(response.read())

    @contextlib.contextmanager
    def _response(
        self,
        method: str,
        path: str,
        body: Answer | None,
        timeout_s: float,
        headers: Mapping[str, str] | None = None,
    ) -> Generator[http.client.HTTPResponse]:
        connection = OwnerConnection(self.run, timeout_s)
        sent = {
            **connection.owner_headers(),
            "Content-Type": "application/json",
            **(headers or {}),
        }
        try:
            connection.request(method, path, None if body is None else _encoded(body), sent)
            response = connection.getresponse()
            if response.status == _MISDIRECTED:
                raise ServerAway(f"the server at {self.run.socket or self.run.url} is another's")
            if response.status >= 400:
                raise error_from(_object(response.read()))
            yield response
        except TimeoutError:
            raise StoreUnavailable(f"the server did not answer within {timeout_s:.0f} s") from None
        except (OSError, http.client.HTTPException) as error:
            place = self.run.socket or self.run.url
            raise ServerAway(f"no server answers at {place} ({type(error).__name__})") from None
        finally:
            connection.close()


def error_from(problem: Mapping[str, JSON]) -> errors.PPSError:
    """Return the error that problem details describe, with its class and data in the server."""
    if "code" not in problem or "detail" not in problem:
        return StoreError("the server answered with something that is not an answer of PPS")
    kind = _CLASSES.get(str(problem.get("code")), errors.PPSError)
    if kind is StoreConflict and "problem" in problem:
        kind = errors.Changed
    detail = str(problem["detail"])
    error = kind.__new__(kind)
    errors.PPSError.__init__(error, detail)
    error.message = detail
    if isinstance(error, errors.InvalidRequest):
        error.problems = tuple(_problems_of(problem))
    elif isinstance(error, errors.NotFound):
        values = problem.get("values")
        error.noun = str(problem.get("noun", "id"))
        error.values = tuple(map(str, values)) if isinstance(values, list) else ()
        error.remedy = str(problem.get("remedy", ""))
    elif isinstance(error, errors.UnknownEntity):
        error.name = str(problem.get("name", ""))
    elif isinstance(error, errors.Changed):
        error.path = str(problem.get("path", ""))
        error.problem = str(problem.get("problem", detail))
    return error


def _problems_of(details: Mapping[str, JSON]) -> Generator[errors.Problem]:
    """Yield the problems of an invalid request; one without a path where the server names none."""
    listed = details.get("problems")
    items = listed if isinstance(listed, list) else []
    for item in items:
        if isinstance(item, dict):
            path, problem, value, remedy = (str(item.get(name, "")) for name in _PROBLEM_FIELDS)
            yield errors.Problem(path, problem, value, remedy)
    if not items:
        yield errors.Problem(str(details.get("field", "")), str(details["detail"]))


def _classes(kind: type[errors.PPSError]) -> dict[str, type[errors.PPSError]]:
    by_code = {kind.code: kind}
    for below in kind.__subclasses__():
        by_code = {**_classes(below), **by_code} if below.__module__ == errors.__name__ else by_code
    return by_code


def _encoded(body: Answer) -> bytes:
    """Return a body in UTF-8.

    What this process was given in another encoding is in no string that can be sent.
    """
    try:
        return json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise errors.InvalidRequest(
            "text", "is not UTF-8; convert it first, such as with iconv"
        ) from None


def _object(raw: bytes) -> Answer:
    try:
        value = json.loads(raw)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise StoreError("the server answered with something that is not an answer of PPS")
    return cast("Answer", value)


def connect(home: Path, *, start: bool = True) -> Link:
    """Return a link to the server of a data folder, starting one when it is away. Blocks.

    A server older than this program is asked to finish and a new one is started. Many callers at
    once start one server.
    """
    link = find(home)
    if link is not None:
        return link
    if not start:
        raise StoreUnavailable("no server is running; `pps serve` starts one")
    with FileLock(home / "start.lock", what="a starting client", wait_s=_START_S + _DRAIN_S):
        return find(home) or _start(home)


def find(home: Path) -> Link | None:
    """Return a link to the server that is running now, unless it is older than this program."""
    run = running(home)
    if run is None:
        return None
    link = Link(run)
    try:
        status = link.status()
    except ServerAway:
        return None
    if _version(run.version) < _version(__version__):
        return None
    _check_settings(status)
    return link


def _check_settings(status: Mapping[str, object]) -> None:
    """Refuse a server whose settings differ from those of this process's environment.

    Raises:
        ConfigError: A variable sets what the server has otherwise, or is none of its settings; the
            first is named.
    """
    settings = _texts(status.get("settings"))
    digests = _texts(status.get("secrets"))
    remedy = "`pps serve --stop` ends it and the next command starts one with yours; or unset it"
    for name, value in os.environ.items():
        if name in settings and not _is_same(value, settings[name]):
            raise ConfigError(
                f"{name} is {value!r} here, and the running server has {settings[name]!r}: {remedy}"
            )
        if name in digests and not _is_of(value, digests[name]):
            raise ConfigError(f"{name} is not what the running server has: {remedy}")


def _texts(value: object) -> dict[str, str]:
    return cast("dict[str, str]", value) if isinstance(value, dict) else {}


def _is_same(text: str, other: str) -> bool:
    """Tell whether two texts mean the same setting.

    Numbers, switches and lists have several forms.
    """
    if text == other or text.casefold() in _SWITCH.get(other.casefold(), ()):
        return True
    with contextlib.suppress(ValueError):
        return float(text) == float(other)
    parts = [part.strip() for part in text.split(",")]
    return parts == [part.strip() for part in other.split(",")]


_SWITCH = {
    "true": ("true", "1", "yes", "on", "t", "y"),
    "false": ("false", "0", "no", "off", "f", "n"),
}


def _is_of(text: str, digest: str) -> bool:
    salt = digest.partition("$")[0]
    return digest == f"{salt}${hashlib.sha256(f'{salt}{text}'.encode()).hexdigest()}"


def stop(home: Path) -> RunFile | None:
    """Ask the running server to finish, and wait until it has let go of the files. Blocks."""
    run = running(home)
    if run is not None:
        try:
            Link(run).stop()
        except ServerAway:
            run = None
    _wait_until_free(home)
    return run


def running(home: Path) -> RunFile | None:
    """Return the run file of a live server, None where none is.

    A killed one leaves its file, and its port to others.
    """
    run = read_run_file(home)
    return run if run is not None and is_held(lock_file(home)) else None


def _start(home: Path) -> Link:
    stop(home)
    child = _Child(home)
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        link = find(home)
        if link is not None:
            return link
        if child.ended.wait(_PAUSE_S):
            raise StoreError(f"the server could not start: {_last_line(child.log)}")
    raise StoreUnavailable(
        f"the server did not come up within {_START_S:.0f} s; its log is {child.log}"
    )


def _wait_until_free(home: Path) -> None:
    path = lock_file(home)
    deadline = time.monotonic() + _DRAIN_S
    while is_held(path):
        if time.monotonic() > deadline:
            raise StoreConflict(f"{home} is still held by {holder(path)} after {_DRAIN_S:.0f} s")
        time.sleep(_PAUSE_S)


class _Child:
    """The server process: detached, its output in ``server.log``.

    ``ended`` is set when it is gone.
    """

    def __init__(self, home: Path) -> None:
        self.log = home / "server.log"
        self.ended = threading.Event()
        if self.log.exists() and self.log.stat().st_size > _LOG_BYTES:
            self.log.replace(self.log.with_suffix(".log.1"))
        self._pid = self._spawn(home)
        threading.Thread(target=self._wait_for_end, daemon=True).start()

    def _spawn(self, home: Path) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        try:
            # -P: `-m` must not import a `pps` folder that happens to lie where the caller stands.
            return os.posix_spawn(
                sys.executable,
                [sys.executable, "-P", "-m", "pps", "serve", "--auto"],
                {**os.environ, "PPS_HOME": str(home)},
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 1, str(self.log), flags, 0o600),
                    (os.POSIX_SPAWN_DUP2, 1, 2),
                ],
                setsid=True,
            )
        except OSError as error:
            raise StoreError(f"the server could not be started ({error.strerror})") from None

    def _wait_for_end(self) -> None:
        os.waitpid(self._pid, 0)
        self.ended.set()


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return (
        f"{lines[-1].removeprefix('pps: ')} (more in {log})"
        if lines
        else f"it wrote nothing to {log}"
    )


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())


_CLASSES = _classes(errors.PPSError)
