"""A reverse proxy with TLS, as Caddy and nginx are: it passes ``Host`` on as it came, and upgrades, and says whom it serves."""

from __future__ import annotations

import contextlib
import datetime
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

_MOST_HEAD = 64 * 1024


@dataclass
class TLSProxy:
    """A proxy on a free port of the loopback; each connection carries one request, or one upgrade.

    Attributes:
        port: Where it listens.
        upstream: The server's port, to be set before anything is asked.
    """

    port: int
    upstream: int = 0
    _open: set[socket.socket] = field(default_factory=set[socket.socket])

    def serve(self, client: socket.socket) -> None:
        """Carry one request to the server, and its answer back."""
        with contextlib.suppress(OSError), client:
            head, rest = _head_of(client)
            with socket.create_connection(("127.0.0.1", self.upstream)) as server:
                self._open |= {client, server}
                server.sendall(_forwarded(head) + rest)
                answering = threading.Thread(target=_copy, args=(server, client), daemon=True)
                answering.start()
                _copy(client, server)
                answering.join()
                self._open -= {client, server}

    def close(self) -> None:
        for one in tuple(self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def tls_proxy(folder: Path) -> Iterator[TLSProxy]:
    """Run a proxy while the block runs, with a certificate of its own, which nobody trusts, in a folder."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(_certificate(folder))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy = TLSProxy(listener.getsockname()[1])

        def accept() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:  # the block has ended
                    return
                threading.Thread(target=shake, args=(client,), daemon=True).start()

        def shake(client: socket.socket) -> None:
            with contextlib.suppress(OSError):
                proxy.serve(context.wrap_socket(client, server_side=True))

        threading.Thread(target=accept, daemon=True, name="tls-proxy").start()
        try:
            yield proxy
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            proxy.close()


def _head_of(client: socket.socket) -> tuple[bytes, bytes]:
    """Return a request's head, and what came of its body with it."""
    data = b""
    while b"\r\n\r\n" not in data and len(data) < _MOST_HEAD:
        more = client.recv(16 * 1024)
        if not more:
            raise ConnectionError
        data += more
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


def _forwarded(head: bytes) -> bytes:
    """Return a head as proxies pass it on; only an upgrade keeps its connection."""
    lines = head.split(b"\r\n")
    if not any(line.lower().startswith(b"upgrade:") for line in lines):
        lines = [line for line in lines if not line.lower().startswith(b"connection:")]
        lines.append(b"Connection: close")
    return b"\r\n".join([*lines, b"X-Forwarded-For: 203.0.113.7", b"\r\n"])


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(64 * 1024):
            target.sendall(data)
    for one in (source, target):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


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
