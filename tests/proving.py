"""Stand-ins for a server on loopback: one that can prove itself, and a stranger that notes all that it is sent."""

from __future__ import annotations

import contextlib
import http.server
import socket
import threading
import time
from collections.abc import Generator
from typing import ClassVar

from pps.server import RunFile
from pps.server.runfile import proof


class Proving(http.server.BaseHTTPRequestHandler):
    """Proves that it wrote ``run``; what it answers else is its subclass's business. Connections are used on."""

    protocol_version = "HTTP/1.1"
    run: ClassVar[RunFile]

    def do_GET(self) -> None:
        nonce = self.path.removeprefix("/owner/proof/")
        if nonce == self.path:
            self.send_error(404)
            return
        body = proof(self.run.secret, nonce, self.run.port, self.run.pid).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class Strange:
    """Where a stranger listens, and all that it was sent."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.told = b""


@contextlib.contextmanager
def stranger(answer: bytes, every_s: float = 0.0) -> Generator[Strange]:
    """Listen on a port, note what comes and answer everything in one way; again and again, if ``every_s`` is set."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        seen = Strange(listener.getsockname()[1])

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    link, _ = listener.accept()
                    with link:
                        while piece := link.recv(65_536):
                            seen.told += piece
                            link.sendall(answer)
                            while every_s and not time.sleep(every_s):
                                link.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        yield seen
        listener.shutdown(socket.SHUT_RDWR)
