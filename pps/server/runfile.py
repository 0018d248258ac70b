"""The run file: where the server of a data folder listens, and how its owner reaches it.

The owner reaches it through the Unix socket that the file names (``owner_socket``). Where none
could be made, the file has a secret instead, and the rest of this module holds: the server proves
that it wrote the run file before a client says anything: its port may be a stranger's by now. A
client sends a fresh random text, whoever listens answers with its keyed hash (BLAKE2b under the run
file's secret, over the text, the port and the process, so that no answer can be passed on from
another port). Only then, and on the same connection, does the client show the secret and ask.
``pps_hook.py`` does the same by itself.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from pathlib import Path

from pps.core.errors import StoreError

OWNER_PREFIX = "pps_w_"
NONCE = r"[0-9a-f]{32}"
_SIZE = 32
_MOST = 4_096
_ROOM = 4_096
"""Bytes of a run file, padded with blanks, so that a later one fits into its place."""


@dataclass(frozen=True, slots=True)
class RunFile:
    """What ``server.json`` (mode 0600) says of the running server.

    Attributes:
        secret: Where there is no socket: ``pps_w_`` and 64 hexadecimal digits; new at each start.
            Who shows it is the same user of the operating system and may act for any entity.
        socket: Path of the owner's Unix socket; empty where there is none.
        home: The data folder that the file was read from; it is not written.
        auto: True when it was started by need, so that it stops when idle.
    """

    pid: int
    host: str
    port: int
    version: str
    auto: bool
    secret: str = field(default="", repr=False)
    socket: str = ""
    home: str = field(default="", compare=False)

    @property
    def address(self) -> str:
        """The address to connect to: a server on every interface is asked on loopback."""
        loopback = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - compared
        return loopback.get(self.host, self.host)

    @property
    def url(self) -> str:
        """The server's address for people and clients, without a slash at its end."""
        address = f"[{self.address}]" if ":" in self.address else self.address
        return f"http://{address}:{self.port}"


def new_secret() -> str:
    """Return a fresh owner secret (256 bits)."""
    return OWNER_PREFIX + secrets.token_hex(32)


def run_file(home: Path) -> Path:
    """Return where the run file of a data folder lies."""
    return home / "server.json"


def lock_file(home: Path) -> Path:
    """Return the lock that the server of a data folder holds for as long as it lives."""
    return home / "server.lock"


def write(home: Path, run: RunFile) -> None:
    """Publish a run file in one step, on a full disk in the room that an earlier server's had.

    Raises:
        StoreError: It cannot be written, such as on a full disk where no server ran before.
    """
    path = run_file(home)
    draft = path.with_name(f".server.{secrets.token_hex(6)}")
    fields = asdict(run)
    del fields["home"]
    text = json.dumps(fields).ljust(_ROOM).encode()
    try:
        _write_new(draft, text)
        draft.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        if error.errno not in (errno.ENOSPC, errno.EDQUOT) or not _write_in_place(home, text):
            raise StoreError(
                f"{path}: cannot be written ({error.strerror}); nobody could find the server"
            ) from None
    spare = _spare_file(home)
    if not spare.exists():
        try:
            _write_new(spare, b" " * _ROOM)
        except OSError:  # an empty one would be no room at all
            spare.unlink(missing_ok=True)


def _spare_file(home: Path) -> Path:
    """Return a file of ``_ROOM`` blank bytes that is kept for a start on a full disk."""
    return home / ".server.spare"


def _write_new(path: Path, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(data)


def _write_in_place(home: Path, data: bytes) -> bool:
    """Write the run file into a file that has the room already.

    False where there is none, or it takes new room.

    The caller holds the server's lock: a run file that is there is a killed server's.
    """
    path = run_file(home)
    spare = _spare_file(home)
    try:
        if not spare.exists():
            path.replace(spare)
        descriptor = os.open(spare, os.O_WRONLY | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "wb") as file:
            is_private = os.fstat(descriptor).st_mode & 0o077 == 0
            has_room = os.fstat(descriptor).st_size >= len(data)
            if not (is_private and has_room):
                return False
            file.write(data)
        spare.replace(path)
    except OSError:
        return False
    return True


def read(home: Path) -> RunFile | None:
    """Return the run file; None when there is none."""
    path = run_file(home)
    try:
        with path.open(encoding="utf-8") as file:
            status = os.fstat(file.fileno())
            text = file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"{path}: cannot be read ({error.strerror})") from None
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise StoreError(f"{path}: not private to this user; remove it and start the server again")
    try:
        return replace(RunFile(**json.loads(text)), home=str(home))
    except (ValueError, TypeError):
        raise StoreError(
            f"{path}: not a run file of this version; stop that server, then remove it"
        ) from None


def remove(home: Path, pid: int) -> None:
    """Take the run file away if it is this process's.

    Its room is kept where nothing else is kept for the next start.
    """
    try:
        run = read(home)
    except StoreError:
        return
    if run is None or run.pid != pid:
        return
    path = run_file(home)
    spare = _spare_file(home)
    if not spare.exists():
        with contextlib.suppress(OSError):
            path.replace(spare)
            spare.write_bytes(b" " * _ROOM)
    path.unlink(missing_ok=True)


class Stranger(ConnectionError):
    """Who listens at the run file's address is not the server that wrote it.

    Nothing was told to it.
    """


def proof(secret: str, nonce: str, port: int, pid: int) -> str:
    """Return what a server answers to a nonce: 64 hexadecimal digits."""
    key = bytes.fromhex(secret.removeprefix(OWNER_PREFIX))
    message = f"{nonce} {port} {pid}".encode()
    return blake2b(message, digest_size=_SIZE, key=key, person=b"pps-server-proof").hexdigest()


def question(run: RunFile) -> tuple[str, bytes]:
    """Return a fresh nonce and the request that asks for its proof."""
    nonce = secrets.token_hex(16)
    host = f"[{run.address}]" if ":" in run.address else run.address
    return nonce, f"GET /owner/proof/{nonce} HTTP/1.1\r\nHost: {host}:{run.port}\r\n\r\n".encode()


def is_whole(reply: bytes) -> bool:
    """Tell whether an answer has all that it needs, or more than it may."""
    _, end, body = reply.partition(b"\r\n\r\n")
    return (bool(end) and len(body) >= 2 * _SIZE) or len(reply) > _MOST


def check(run: RunFile, nonce: str, reply: bytes) -> None:
    """Return when an answer is the proof; raise Stranger when it is another one, or none."""
    top, _, body = reply.partition(b"\r\n\r\n")
    wanted = proof(run.secret, nonce, run.port, run.pid).encode()
    if not (top.startswith(b"HTTP/1.1 200") and secrets.compare_digest(body, wanted)):
        raise Stranger("who listens at the address of server.json does not prove that it wrote it")
