"""A server that speaks as much of Label Studio's HTTP API as the bridge needs, and keeps tasks.

That Label Studio itself speaks so is shown by tests/broker/test_label_studio.py, where it is installed.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

LEGACY = "0123456789abcdef"
PERSONAL = "head.payload.signature"
Task = dict[str, Any]


class Stub(ThreadingHTTPServer):
    """Project 7, of the users who have one of the two tokens. Use as a context."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.tasks: list[dict[str, Any]] = []
        self.requests: list[str] = []
        self.failures: list[int] = []  # codes of the next answers to imports, which are made all the same
        self.access = 0
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def annotate(
        self, task: dict[str, Any], choices: list[str], *, cancelled: bool = False
    ) -> dict[str, Any]:
        result = [
            {"from_name": "label", "to_name": "record", "type": "choices", "value": {"choices": choices}}
        ]
        with self.lock:
            annotation = {
                "id": 1000 + sum(len(task["annotations"]) for task in self.tasks),
                "result": result if choices else [],
                "was_cancelled": cancelled,
                "completed_by": 1,
            }
            task["annotations"].append(annotation)
        return annotation

    def __enter__(self) -> Stub:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: Stub

    def do_GET(self) -> None:
        self._answer_to("GET", None)

    def do_POST(self) -> None:
        self._answer_to("POST", json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _answer_to(self, method: str, body: Any) -> None:
        stub, where = self.server, urlsplit(self.path)
        asked = parse_qs(where.query)
        stub.requests.append(f"{method} {where.path}")
        if where.path == "/api/token/refresh":
            stub.access += 1
            self._say(
                *((200, {"access": f"access-{stub.access}"}) if body == {"refresh": PERSONAL} else (401, {}))
            )
        elif self.headers["Authorization"] not in (f"Token {LEGACY}", f"Bearer access-{stub.access}"):
            self._say(401, {"detail": f"Invalid token: {self.headers['Authorization']}"})
        elif where.path == "/api/projects/7":
            self._say(200, {"id": 7, "title": "Sales"})
        elif where.path == "/api/projects/7/import" and method == "POST":
            with stub.lock:
                stub.tasks += [
                    {"id": len(stub.tasks) + i, "annotations": [], **task} for i, task in enumerate(body, 1)
                ]
            if stub.failures:
                self._say(stub.failures.pop(0), {"detail": "busy"})
            else:
                self._say(201, {"task_count": len(body), "annotation_count": 0})
        elif where.path == "/api/tasks" and asked["project"] == ["7"]:
            size, page = int(asked["page_size"][0]), int(asked["page"][0])
            with stub.lock:
                page_of_tasks = stub.tasks[(page - 1) * size : page * size]
            if page_of_tasks or page == 1:
                self._say(200, {"tasks": page_of_tasks, "total": len(stub.tasks)})
            else:
                self._say(404, {"detail": "Invalid page."})
        else:
            self._say(404, {"detail": "Not found."})

    def _say(self, code: int, document: Any) -> None:
        body = json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass
