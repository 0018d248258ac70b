"""The server proves that it wrote the run file before a client says anything: its port may be a stranger's by now.

A client sends a fresh random text, whoever listens answers with its keyed hash (BLAKE2b under the run file's secret,
over the text, the port and the process, so that no answer can be passed on from another port). Only then, and on the
same connection, does the client show the secret and ask. ``pps_hook.py`` does the same by itself.
"""

from __future__ import annotations

import secrets
from hashlib import blake2b

from pps.server.runfile import OWNER_PREFIX, RunFile

NONCE = r"[0-9a-f]{32}"
_SIZE = 32
_MOST = 4_096


class Stranger(ConnectionError):
    """Who listens at the run file's address is not the server that wrote it; nothing was told to it."""


def proof(secret: str, nonce: str, port: int, pid: int) -> str:
    """Return what a server answers to a nonce: 64 hexadecimal digits."""
    key = bytes.fromhex(secret.removeprefix(OWNER_PREFIX))
    said = f"{nonce} {port} {pid}".encode()
    return blake2b(said, digest_size=_SIZE, key=key, person=b"pps-server-proof").hexdigest()


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
