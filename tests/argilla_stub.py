"""A server that speaks as much of Argilla's HTTP API as the bridge needs, and keeps records.

Its answers have the members that Argilla's server 2.8.0 gave; tests/broker/test_argilla.py runs that server
where it is installed.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

KEY = "owner.apikey"
SECRET = "whsec_Z3JvdmUtd2ViaG9va3MtYXJlLXNpZ25lZA=="
SPACES = [{"id": "w-1", "name": "team"}, {"id": "w-2", "name": "other"}]
USER = "f6c08c40-517b-499d-a0e9-5abed24a571d"


def signed(body: bytes, at_s: int, secret: str = SECRET) -> dict[str, str]:
    """Return the headers of a webhook, as Standard Webhooks signs it."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.digest(key, f"msg_1.{at_s}.".encode() + body, hashlib.sha256)
    return {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(at_s),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


class ArgillaStub(ThreadingHTTPServer):
    """Dataset `shop` of the workspace `team`. Use as a context."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.datasets: list[dict[str, Any]] = [
            {
                "id": "d-1",
                "name": "shop",
                "status": "ready",
                "allow_extra_metadata": True,
                "workspace_id": "w-1",
            }
        ]
        self.fields = [{"id": "f-1", "name": "record", "settings": {"type": "text", "use_markdown": False}}]
        options = [{"value": name, "text": name} for name in ("good", "fraud")]
        self.questions = [
            {"id": "q-1", "name": "label", "settings": {"type": "label_selection", "options": options}}
        ]
        self.records: dict[str, dict[str, Any]] = {}
        self.writes = 0
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def respond(self, record: dict[str, Any], label: str | None, status: str = "submitted") -> dict[str, Any]:
        values = None if label is None else {"label": {"value": label}}
        with self.lock:
            number = sum(len(kept["responses"]) for kept in self.records.values())
            response = {"id": f"a-{number}", "values": values, "status": status, "user_id": USER}
            record["responses"].append(response)
        return response

    def __enter__(self) -> ArgillaStub:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: ArgillaStub

    def do_GET(self) -> None:
        stub, where = self.server, urlsplit(self.path)
        path = where.path.removeprefix("/api/v1")
        lists: dict[str, list[Any]] = {
            "/me/datasets": stub.datasets,
            "/me/workspaces": SPACES,
            "/datasets/d-1/fields": stub.fields,
            "/datasets/d-1/questions": stub.questions,
        }
        if self.headers["X-Argilla-Api-Key"] != KEY:
            self._say(401, {"detail": f"no such key: {self.headers['X-Argilla-Api-Key']}"})
        elif path in lists:
            self._say(200, {"items": lists[path]})
        elif path == "/datasets/d-1/records":
            asked = parse_qs(where.query)
            offset, limit = int(asked["offset"][0]), int(asked["limit"][0])
            assert asked["include"] == ["responses"]
            with stub.lock:
                records = list(stub.records.values())
            self._say(200, {"items": records[offset : offset + limit], "total": len(records)})
        else:
            self._say(404, {"detail": "Not Found"})

    def do_PUT(self) -> None:
        stub = self.server
        items = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["items"]
        assert self.path == "/api/v1/datasets/d-1/records/bulk"
        assert 0 < len(items) <= 500
        with stub.lock:
            stub.writes += 1
            for item in items:
                known = stub.records.get(
                    item["external_id"], {"id": f"rec-{len(stub.records)}", "responses": []}
                )
                stub.records[item["external_id"]] = known | item
        self._say(200, {"items": []})

    def _say(self, code: int, document: Any) -> None:
        body = json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass
