"""A registry for tests of a client: it answers as it is told, and notes the requests.

A real registry: tests/broker/test_schemas.py.
"""

from __future__ import annotations

import json
import ssl
import threading
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

Answer = tuple[int, bytes]
"""HTTP status and body."""


def answered(**members: Any) -> Answer:
    return 200, json.dumps(members).encode()


def failed(status: int, code: int, message: str = "") -> Answer:
    return status, json.dumps({"error_code": code, "message": message}).encode()


class RegistryEndpoint(ThreadingHTTPServer):
    """Use as a context. `answers` are by path; a path that is not there has no schema."""

    scheme = "http"

    def __init__(self, **answers: Answer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = {"/" + path.replace("__", "/"): answer for path, answer in answers.items()}
        self.requests: list[tuple[str, str]] = []
        self.headers: list[Message] = []
        self.bodies: list[Any] = []

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}"

    def only_for(self, clients: Path, identity: Path) -> None:
        """Serve by TLS, and only clients with a certificate; PEM of their authority, and of the server."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(identity)
        context.load_verify_locations(clients)
        context.verify_mode = ssl.CERT_REQUIRED
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.scheme = "https"

    def handle_error(self, *_: object) -> None:
        """A client without a certificate goes away, which is no error of the test."""

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: RegistryEndpoint

    def do_GET(self) -> None:
        self._answer("GET", None)

    def do_POST(self) -> None:
        self._answer("POST", json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _answer(self, method: str, body: Any) -> None:
        self.server.requests.append((method, self.path))
        self.server.headers.append(self.headers)
        self.server.bodies.append(body)
        status, text = self.server.answers.get(self.path, failed(404, 40403, "Schema not found"))
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Say nothing."""
