"""An HTTP server whose answers never end: one byte of the body comes, and the others never."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Handler(BaseHTTPRequestHandler):
    ends: threading.Event

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"{")
        self.ends.wait()

    do_POST = do_GET

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def dripping_server() -> Iterator[str]:
    """Yield the address of the server."""

    class Handler(_Handler):
        ends = threading.Event()

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            Handler.ends.set()
            server.shutdown()
