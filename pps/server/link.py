"""A client of the server's owner API: calls, and long work that reports as it goes.

Built on ``http.client``: the command line must start in a blink, and any HTTP library costs more
than the call.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import time
from collections.abc import Generator, Mapping
from typing import TypeAlias, cast

from pps.core import errors
from pps.core.values import JSON
from pps.server import handshake
from pps.server.runfile import RunFile

Answer: TypeAlias = "dict[str, JSON]"

_CALL_S = 60.0
_SILENCE_S = 600.0


class ServerAway(errors.StoreUnavailable):
    """Nothing answers at the run file's address."""


class ProvedConnection(http.client.HTTPConnection):
    """A connection on which the server has proved itself before anything is sent."""

    def __init__(self, run: RunFile, timeout_s: float) -> None:
        """Name the server that is meant; nothing is connected yet."""
        super().__init__(run.address, run.port, timeout=timeout_s)
        self._run = run
        self._timeout_s = timeout_s

    def connect(self) -> None:
        """Connect, and let the server prove itself; raises Stranger (an OSError) when it does not."""
        super().connect()
        nonce, asked = handshake.question(self._run)
        self.sock.sendall(asked)
        reply, until = b"", time.monotonic() + self._timeout_s  # all in all: a stranger may send a byte now and then
        while not handshake.is_whole(reply):
            self.sock.settimeout(max(0.001, until - time.monotonic()))
            if not (piece := self.sock.recv(4_096)):
                break
            reply += piece
        self.sock.settimeout(self._timeout_s)
        handshake.check(self._run, nonce, reply)


class Link:
    """A connection's worth of knowledge about one running server. Calls block; each is a request of its own.

    Every method may raise ServerAway, and whatever error of ``pps.core.errors`` the server answered.
    """

    def __init__(self, run: RunFile) -> None:
        self.run = run

    def status(self, timeout_s: float = 5.0) -> Answer:
        """Return the server's state: pid, version, open entities, uptime."""
        return self._request("GET", "/owner/status", None, timeout_s)

    def stop(self) -> None:
        """Ask the server to finish what it is doing and end."""
        self._request("POST", "/owner/stop", {}, _CALL_S)

    def call(self, verb: str, entity: str, arguments: Mapping[str, JSON], *, timeout_s: float = _CALL_S) -> Answer:
        """Let an entity do one verb of the tool table; returns its structured result."""
        body: Answer = {"entity": entity, "arguments": dict(arguments)}
        return self._request("POST", f"/owner/call/{verb}", body, timeout_s)

    def admin(self, action: str, arguments: Mapping[str, JSON], *, timeout_s: float = _CALL_S) -> Answer:
        """Do one action on the registry, such as ``entity.create``."""
        return self._request("POST", f"/registry/{action}", dict(arguments), timeout_s)

    def runner(self, verb: str, arguments: Mapping[str, JSON]) -> Answer:
        """Do one verb of a task runner, such as ``task_claim``, for any project."""
        return self._request("POST", f"/runner/{verb}", dict(arguments), _CALL_S)

    def work(self, task: str, arguments: Mapping[str, JSON]) -> Generator[Answer, None, Answer]:
        """Run a long task; yields its progress reports and returns its result.

        Each report has ``what``, ``done`` and ``total`` (0 when unknown).
        """
        with self._response("POST", f"/owner/work/{task}", dict(arguments), _SILENCE_S) as response:
            for line in response:
                event = _object(line)
                if "error" in event:
                    raise error_from(event)
                if "result" in event:
                    return cast("Answer", event["result"])
                yield event
        raise ServerAway("the server ended in the middle of the work; run the command again, it goes on from there")

    def _request(self, method: str, path: str, body: Answer | None, timeout_s: float) -> Answer:
        with self._response(method, path, body, timeout_s) as response:
            return _object(response.read())

    @contextlib.contextmanager
    def _response(
        self, method: str, path: str, body: Answer | None, timeout_s: float
    ) -> Generator[http.client.HTTPResponse]:
        connection = ProvedConnection(self.run, timeout_s)
        headers = {"Authorization": f"Bearer {self.run.secret}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, None if body is None else _encoded(body), headers)
            response = connection.getresponse()
            if response.status >= 400:
                raise error_from(_object(response.read()))
            yield response
        except TimeoutError:
            raise errors.StoreUnavailable(f"the server did not answer within {timeout_s:.0f} s") from None
        except (OSError, http.client.HTTPException) as error:
            raise ServerAway(f"no server answers at {self.run.url} ({type(error).__name__})") from None
        finally:
            connection.close()


def error_from(answer: Mapping[str, JSON]) -> errors.PPSError:
    """Return the error that an answer carries, of the class it had in the server."""
    said = answer.get("error")
    if not isinstance(said, Mapping):
        return errors.StoreError("the server answered with something that is not an answer of PPS")
    kind = _CLASSES.get(str(said.get("code")), errors.PPSError)
    error = kind.__new__(kind)
    errors.PPSError.__init__(error, str(said.get("message")))
    return error


def _classes(kind: type[errors.PPSError]) -> dict[str, type[errors.PPSError]]:
    found = {kind.code: kind}
    for below in kind.__subclasses__():
        found = {**_classes(below), **found} if below.__module__ == errors.__name__ else found
    return found


def _encoded(body: Answer) -> bytes:
    """Return a body in UTF-8; what this process was given in another encoding is in no string that can be sent."""
    try:
        return json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise errors.InvalidRequest("text", "is not UTF-8; convert it first, such as with iconv") from None


def _object(raw: bytes) -> Answer:
    try:
        value = json.loads(raw)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise errors.StoreError("the server answered with something that is not an answer of PPS")
    return cast("Answer", value)


_CLASSES = _classes(errors.PPSError)
