"""A reverse proxy with TLS, as Caddy and nginx are: it passes ``Host`` on as it came, and upgrades, and says whom it serves."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

_END_OF_HEAD = b"\r\n\r\n"
_LARGEST_HEAD = 64 * 1024
_PIECE = 64 * 1024


@dataclass
class TLSProxy:
    """A proxy on a free port of the loopback; each connection carries one request, or one upgrade.

    Attributes:
        port: Where it listens.
        upstream: The server's port, to be set before anything is asked.
    """

    port: int = 0
    upstream: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one request to the server, and its answer back."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(_END_OF_HEAD)).removesuffix(_END_OF_HEAD)
            from_server, to_server = await asyncio.open_connection("127.0.0.1", self.upstream)
            to_server.write(_forwarded(head))
            await asyncio.gather(_copy(reader, to_server), _copy(from_server, writer))


@contextlib.contextmanager
def tls_proxy(folder: Path) -> Iterator[TLSProxy]:
    """Run a proxy while the block runs, with a certificate of its own, which nobody trusts, in a folder.

    One event loop carries everything: two threads must not read from and write to one TLS
    connection at the same time, for OpenSSL then loses what one of them wrote.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(_certificate(folder))
    proxy = TLSProxy()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True, name="tls-proxy")
    thread.start()
    listening = asyncio.start_server(proxy.serve, "127.0.0.1", 0, ssl=context, limit=_LARGEST_HEAD)
    server = asyncio.run_coroutine_threadsafe(listening, loop).result()
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        asyncio.run_coroutine_threadsafe(_end(server), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end(server: asyncio.Server) -> None:
    """Stop listening, and end every request that is still carried."""
    server.close()
    carried = asyncio.all_tasks() - {asyncio.current_task()}
    for task in carried:
        task.cancel()
    await asyncio.gather(*carried, return_exceptions=True)


def _forwarded(head: bytes) -> bytes:
    """Return a head as proxies pass it on; only an upgrade keeps its connection."""
    lines = head.split(b"\r\n")
    if not any(line.lower().startswith(b"upgrade:") for line in lines):
        lines = [line for line in lines if not line.lower().startswith(b"connection:")]
        lines.append(b"Connection: close")
    return b"\r\n".join([*lines, b"X-Forwarded-For: 203.0.113.7", b"\r\n"])


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Carry what one side sends to the other until it ends, then end the other."""
    try:
        while data := await source.read(_PIECE):
            target.write(data)
            await target.drain()
    except OSError:
        pass
    finally:
        target.close()


def _certificate(folder: Path) -> Path:
    """Write a certificate and its key into one file; return its path."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / "proxy.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return path
