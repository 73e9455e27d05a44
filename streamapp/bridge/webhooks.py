"""Webhooks: Label Studio reports an annotation when it is made, so that its label need not wait for a sweep.

A request must be complete within TIMEOUT_S, however slowly its bytes come. At most CONNECTIONS_MAX
requests are read at a time, and at most BODIES_MAX bytes of them are held. A further request makes room by
ending the request that has been incomplete for longest, so that slow clients delay only themselves.
Complete requests are handled one at a time.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import logging
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any, Final

import orjson

from topics.errors import TopicsError

logger = logging.getLogger(__name__)

BODY_MAX: Final = 9 << 20  # a task repeats its features, which may come from a record of the largest size
BODIES_MAX: Final = 4 * BODY_MAX  # of all requests together
TIMEOUT_S: Final = 10.0
CONNECTIONS_MAX: Final = 64
CHUNK: Final = 1 << 16
ACTIONS: Final = ("ANNOTATION_CREATED", "ANNOTATION_UPDATED", "ANNOTATIONS_CREATED")

Take = Callable[[Mapping[str, Any], Iterable[Mapping[str, Any]]], int]


class _Connection:
    """A request that is being read: its start, the bytes of its body so far, and whether it is complete."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock, self.began, self.bytes, self.is_whole = sock, time.monotonic(), 0, False

    def end(self) -> None:
        """End the connection; the thread that reads it gets an end of file."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)


class Webhooks(ThreadingHTTPServer):
    """Listens for webhooks; each is answered with 200 when the broker has its label."""

    daemon_threads = True
    request_queue_size = 2 * CONNECTIONS_MAX

    def __init__(self, address: tuple[str, int], secret: str, take: Take) -> None:
        """secret: the expected header Authorization, "" for none; take: `Bridge.taken`."""
        self.secret, self.take = secret, take
        self.turn = threading.Lock()  # held while a body is parsed: 9 MiB need much more memory then
        self._open: dict[socket.socket, _Connection] = {}  # the oldest first
        self._changing = threading.Lock()
        with contextlib.suppress(ValueError):
            self.address_family = socket.AF_INET6 if ip_address(address[0]).version == 6 else socket.AF_INET
        super().__init__(address, _Handler)

    # -- open connections, and room for further connections -----------------------------------------------

    def process_request(self, request: Any, client_address: Any) -> None:
        """Read a request in a new thread; if there is no room for it, end the connection."""
        with self._changing:
            if len(self._open) >= CONNECTIONS_MAX and not self._make_room():
                self.shutdown_request(request)
                return
            self._open[request] = _Connection(request)
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Read and answer a request, then remove it."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._changing:
                self._open.pop(request, None)

    def service_actions(self) -> None:
        """End requests that are not complete in time."""
        with self._changing:
            for body in self._open.values():
                if not body.is_whole and body.began < time.monotonic() - TIMEOUT_S:
                    body.end()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - as socketserver calls it
        """Log in one line why a request ended; clients that disconnect are not logged."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            logger.error("a webhook ended with %s: %s", type(error).__name__, error)

    def came(self, request: socket.socket, count: int, *, is_whole: bool) -> None:
        """Note how many bytes of a body have come; if all bodies together are too large, make room."""
        with self._changing:
            self._open[request].bytes, self._open[request].is_whole = count, is_whole
            while sum(body.bytes for body in self._open.values()) > BODIES_MAX and self._make_room():
                pass

    def _make_room(self) -> bool:
        """End the request that has been incomplete for longest; return whether there was one."""
        for sock, body in self._open.items():
            if not body.is_whole:
                del self._open[sock]
                body.end()
                return True
        return False


class _Handler(BaseHTTPRequestHandler):
    server: Webhooks
    timeout = TIMEOUT_S
    server_version, sys_version = "grove", ""

    def do_POST(self) -> None:
        authorization = self.headers.get("Authorization", "").encode("latin-1", "replace")
        if not hmac.compare_digest(authorization, self.server.secret.encode()) and self.server.secret:
            self._refuse(
                401, "the header Authorization must have the value of GROVE_LABEL_STUDIO_WEBHOOK_SECRET"
            )
            return
        if "Origin" in self.headers:
            self._refuse(403, "a label tool sends no header Origin: pages of browsers send no webhooks")
            return
        lengths = self.headers.get_all("Content-Length", [])
        length = lengths[0] if len(lengths) == 1 else ""
        if not (length.isascii() and length.isdigit() and len(length) < 20) or int(length) > BODY_MAX:
            self._refuse(413, f"Content-Length must be a number up to {BODY_MAX}")
            return
        body = self._body(int(length))
        if body is None:
            return
        with self.server.turn:
            answer = self._taken(body)
        self._answer(*answer)

    def _refuse(self, code: int, text: str) -> None:
        """Refuse a request and read its body away: an unread body would make the client lose the answer."""
        self._answer(code, text)
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_WR)
        for _ in range(2 * BODY_MAX // CHUNK):
            if not self.rfile.read1(CHUNK):
                return

    def _body(self, length: int) -> bytes | None:
        """Return the body; None: the client disconnected before its end, or was ended to make room."""
        parts: list[bytes] = []
        count = 0
        while count < length:
            part = self.rfile.read1(min(CHUNK, length - count))
            if not part:
                return None
            parts.append(part)
            count += len(part)
            try:
                self.server.came(self.connection, count, is_whole=count == length)
            except KeyError:
                return None
        return b"".join(parts)

    def _taken(self, data: bytes) -> tuple[int, str]:
        """Send the labels of a body; return code and text of the answer."""
        try:
            body = orjson.loads(data)
        except orjson.JSONDecodeError:
            return 400, "the body must be JSON"
        task = body.get("task") if isinstance(body, dict) else None
        if not isinstance(task, dict) or body.get("action") not in ACTIONS:
            return 200, "nothing to do"  # a webhook of another action; the tool must not see an error
        annotation = body.get("annotation")
        annotations = annotation if isinstance(annotation, list) else [annotation]
        try:
            n = self.server.take(
                task, [annotation for annotation in annotations if isinstance(annotation, dict)]
            )
        except TopicsError as error:
            logger.warning("a webhook's label is not sent, the next sweep will: %s", error)
            return 503, "the label is not sent yet"
        return 200, f"{n} labels sent"

    def _answer(self, code: int, text: str) -> None:
        body = json.dumps({"detail": text}).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Log nothing, because a request line is text from outside."""
