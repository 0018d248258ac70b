"""Local HTTP servers of tests: on a free port of the loopback, in threads of this process, silent."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class QuietHandler(BaseHTTPRequestHandler):
    """A handler that logs nothing and keeps connections open."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = (
        True  # head and body are two writes; the second would wait 40 ms for the first
    )

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is part of the tests."""


@contextlib.contextmanager
def http_server(handler: type[QuietHandler], name: str) -> Iterator[str]:
    """Run a server while the block runs; yield its address. What its handlers wait for must end before the block does."""
    httpd = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02}, name=name)
    thread.start()
    try:
        yield f"http://127.0.0.1:{httpd.server_address[1]}"
    finally:
        httpd.shutdown()
        thread.join()
        httpd.server_close()
