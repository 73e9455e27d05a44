"""A token endpoint for tests: it answers as it is told, over HTTP or TLS, and counts the requests.

A real issuer with a real broker: tests/broker/test_tokens.py.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections import deque
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs

PATIENCE = 60

Answer = tuple[int, bytes]
"""HTTP status and body."""


def jwt(**claims: Any) -> str:
    """Return a JSON Web Token with these claims, whose signature nobody checks."""
    parts = [json.dumps(part).encode() for part in ({"alg": "none"}, claims)]
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in (*parts, b"signature"))


def granted(life_s: float | str | None = 300, token: str = "", **more: Any) -> Answer:
    """Return the answer with a token; life_s: `expires_in`, None: without."""
    answer = {"access_token": token or jwt(sub="grove"), "token_type": "Bearer", **more}
    return 200, json.dumps(answer | ({} if life_s is None else {"expires_in": life_s})).encode()


def refused(status: int, error: str = "", description: str = "") -> Answer:
    return status, json.dumps({"error": error, "error_description": description}).encode()


class TokenEndpoint(ThreadingHTTPServer):
    """Use as a context. `answers` are given one by one, and the last one again and again."""

    def __init__(self, *answers: Answer, identity: Path | None = None) -> None:
        """identity: certificate and key of a server with TLS (PEM)."""
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = deque(answers or [granted()])
        self.forms: list[dict[str, list[str]]] = []
        self.logins: list[str] = []
        self.asked = threading.Condition()
        self.scheme = "http"
        if identity is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(identity)
            self.socket = context.wrap_socket(self.socket, server_side=True)
            self.scheme = "https"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}/token"

    def answer(self, body: str, headers: Message) -> Answer:
        """Return the answer to a request; `asked` is held."""
        return self.answers.popleft() if len(self.answers) > 1 else self.answers[0]

    def wait_for(self, requests: int) -> None:
        """Return once this number of requests have come."""
        with self.asked:
            assert self.asked.wait_for(lambda: len(self.forms) >= requests, PATIENCE), len(self.forms)

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, *_: object) -> None:
        """A client that does not trust the certificate goes away, which is no error of the test."""


class _Handler(BaseHTTPRequestHandler):
    server: TokenEndpoint

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        with self.server.asked:
            self.server.forms.append(parse_qs(body))
            self.server.logins.append(
                base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode()
            )
            status, text = self.server.answer(body, self.headers)
            self.server.asked.notify_all()
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", self.server.url)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Say nothing."""
