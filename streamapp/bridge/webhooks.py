"""Webhooks: Label Studio tells of an annotation when it is made; nobody has to wait for the next sweep."""

from __future__ import annotations

import hmac
import json
import logging
from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from topics.errors import TopicsError

logger = logging.getLogger(__name__)

BODY_MAX: Final = 9 << 20  # a task repeats its features, which may be one record as large as the largest
TIMEOUT_S: Final = 10.0
ACTIONS: Final = ("ANNOTATION_CREATED", "ANNOTATION_UPDATED", "ANNOTATIONS_CREATED")

Take = Callable[[Mapping[str, Any], Iterable[Mapping[str, Any]]], int]


class Webhooks(ThreadingHTTPServer):
    """Listens for webhooks; each is answered with 200 when its label is at the broker."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], secret: str, take: Take) -> None:
        """secret: what the header Authorization has to be, "" for none; take: `Bridge.taken`."""
        self.secret, self.take = secret, take
        super().__init__(address, _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: Webhooks
    timeout = TIMEOUT_S
    server_version, sys_version = "grove", ""

    def do_POST(self) -> None:
        given = self.headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode(), self.server.secret.encode()) and self.server.secret:
            self._answer(401, "the header Authorization is not that of GROVE_LABEL_STUDIO_WEBHOOK_SECRET")
            return
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()) or int(length) > BODY_MAX:
            self._answer(413, f"Content-Length must be a number up to {BODY_MAX}")
            return
        try:
            body = json.loads(self.rfile.read(int(length)))
        except ValueError:
            self._answer(400, "the body must be JSON")
            return
        task = body.get("task") if isinstance(body, dict) else None
        if not isinstance(task, dict) or body.get("action") not in ACTIONS:
            self._answer(200, "nothing to do")  # of another action; the tool shall not take it for an error
            return
        found = body.get("annotation")
        annotations = found if isinstance(found, list) else [found]
        try:
            n = self.server.take(task, [each for each in annotations if isinstance(each, dict)])
        except TopicsError as error:
            logger.warning("a webhook's label is not sent, the next sweep will: %s", error)
            self._answer(503, "the label is not sent yet")
            return
        self._answer(200, f"{n} labels sent")

    def _answer(self, code: int, text: str) -> None:
        body = json.dumps({"detail": text}).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing: a request line is somebody else's text."""
