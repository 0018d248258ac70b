"""The Unix socket on which the machine's owner reaches the server: its place and its peer.

It lies in a folder of mode 0700, so nobody else can make, replace or reach it; both ends also check
the user id of the other. What cannot be kept so is not used: the owner then proves itself as
``runfile`` says. Standard library only; ``pps_hook.py`` does by itself what a client does here.
"""

from __future__ import annotations

import hashlib
import logging
import os
import socket
import stat
import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, unquote

_log = logging.getLogger(__name__)

MAX_PATH_BYTES = 103 if sys.platform == "darwin" else 107
"""Longest path that an address of a Unix socket holds, without its NUL."""
HOME_HEADER = "PPS-Home"
"""Names the data folder, percent-encoded, that a client of the socket asks for."""

# Of macOS; Python has no names for them.
_SOL_LOCAL = 0
_LOCAL_PEERCRED = 1
_XUCRED_BYTES = 76
_BACKLOG = 2_048


class ForeignSocket(ConnectionError):
    """The socket, its folder or who listens there is not this user's; nothing was sent."""


def has_peer_uid() -> bool:
    """Tell whether this system says who is at the other end of a Unix socket."""
    return hasattr(socket, "SO_PEERCRED") or sys.platform == "darwin"


def peer_uid(link: socket.socket) -> int:
    """Return the user id of the process at the other end of a Unix socket.

    OSError where the system does not say.
    """
    if hasattr(socket, "SO_PEERCRED"):
        _, uid, _ = struct.unpack(
            "3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        )
        return uid
    if sys.platform == "darwin":
        credentials = link.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED_BYTES)
        version, uid = struct.unpack_from("2I", credentials)
        if version == 0:
            return uid
    raise OSError("this system does not say who is at the other end of a socket")


def socket_name(home: Path) -> str:
    """Return the name of a data folder's socket: a digest of its path."""
    digest = hashlib.sha256(os.fsencode(os.path.realpath(home))).hexdigest()
    return f"{digest[:32]}.sock"


def listen(home: Path) -> socket.socket | None:
    """Return the listening socket of a data folder's server.

    None where none can be made and kept private.

    The caller holds the server's lock: what lies at the socket's place is a killed server's, and is
    replaced.
    """
    if not has_peer_uid():
        return None
    for folder in _folders():
        path = folder / socket_name(home)
        if len(os.fsencode(path)) > MAX_PATH_BYTES:
            continue
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            check_folder(folder)
            path.unlink(missing_ok=True)
            listener.bind(str(path))
            path.chmod(0o600)
            listener.listen(_BACKLOG)
        except OSError as error:
            listener.close()
            _log.warning("%s: no socket can be made there (%s)", folder, error)
        else:
            return listener
    return None


def connect(path: str, timeout_s: float) -> socket.socket:
    """Return a connection to the server at a socket.

    Raises:
        ForeignSocket: The folder can be changed by another user, or another user listens.
        OSError: Nobody listens there.
    """
    check_folder(Path(path).parent)
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        link.settimeout(timeout_s)
        link.connect(path)
        if peer_uid(link) != os.getuid():
            raise ForeignSocket(f"{path}: another user listens there")
    except BaseException:
        link.close()
        raise
    return link


def check_folder(folder: Path) -> None:
    """Return when a folder is this user's own and closed to all others.

    Raise ForeignSocket when it is not.

    FileNotFoundError when there is none.
    """
    status = folder.lstat()
    is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
    if not is_own or status.st_mode & 0o077:
        raise ForeignSocket(f"{folder}: not a folder of mode 0700 of this user")


def home_header(home: str) -> str:
    """Return a data folder as ``HOME_HEADER`` names it."""
    return quote(os.fsencode(home))


class OwnHome:
    """Tells whether a client means this server's data folder, by its lock, on whichever path."""

    def __init__(self, lock: Path) -> None:
        self._lock_name = lock.name
        self._lock = lock.stat()

    def is_named(self, header: str) -> bool:
        """Tell whether a value of ``HOME_HEADER`` leads to this server's data folder."""
        path = Path(unquote(header, errors="surrogateescape"), self._lock_name)
        try:
            return os.path.samestat(path.stat(), self._lock)
        except (OSError, ValueError):
            return False


def _folders() -> Iterator[Path]:
    """Make and yield folders for sockets: in the runtime directory, then in the temporary one."""
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    candidates = [Path(tempfile.gettempdir()) / f"pps-{os.getuid()}"]
    if runtime.is_absolute():
        try:
            check_folder(runtime)
        except OSError as error:
            _log.debug("XDG_RUNTIME_DIR is not used: %s", error)
        else:
            candidates.insert(0, runtime / "pps")
    for folder in candidates:
        try:
            folder.mkdir(0o700, exist_ok=True)
            check_folder(folder)
        except OSError as error:
            _log.warning("%s is not used for the owner's socket: %s", folder, error)
        else:
            yield folder
