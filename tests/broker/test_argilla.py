"""The bridge against Argilla's own server, where it is installed: the whole loop.

It needs an environment of its own (tests/argilla_program.py): GROVE_ARGILLA names its Python.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from streamapp.bridge.argilla import Argilla
from streamapp.bridge.bridge import Bridge, BridgePlan
from streamapp.bridge.hook_formats import ArgillaHooks
from streamapp.bridge.webhooks import Webhooks
from streamapp.worker.reserved_ports import free_ports
from tests.argilla_stub import KEY
from tests.broker.web_rig import ask, labels
from tests.broker.workers import PATIENCE, wait_until
from topics.clients import admin
from topics.definitions import TopicNames

PYTHON: Final = os.environ.get("GROVE_ARGILLA")
PROGRAM: Final = Path(__file__).parents[1] / "argilla_program.py"
pytestmark = [
    pytest.mark.broker,
    pytest.mark.skipif(PYTHON is None, reason="argilla-server is not installed"),
]


@dataclass
class Server:
    """An Argilla that runs, and the actions of a person in it."""

    url: str

    def call(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"X-Argilla-Api-Key": KEY, "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/api/v1{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read() or b"null")

    def listens(self) -> bool:
        try:
            return bool(self.call("GET", "/version"))
        except OSError:
            return False

    def dataset(self) -> str:
        """Make and publish a dataset; return its id."""
        space = self.call("POST", "/workspaces", {"name": f"team-{uuid.uuid4().hex[:8]}"})
        about = {"name": "shop", "workspace_id": space["id"], "allow_extra_metadata": True}
        dataset = str(self.call("POST", "/datasets", about)["id"])
        field = {"name": "record", "title": "Record", "required": True, "settings": {"type": "text"}}
        self.call("POST", f"/datasets/{dataset}/fields", field)
        options = [{"value": name, "text": name} for name in ("good", "fraud")]
        settings = {"type": "label_selection", "options": options}
        question = {"name": "label", "title": "Label", "required": True, "settings": settings}
        self.call("POST", f"/datasets/{dataset}/questions", question)
        self.call("PUT", f"/datasets/{dataset}/publish")
        return dataset

    def respond(self, record: dict[str, Any], label: str | None) -> dict[str, Any]:
        """Answer a record as its page does; None: discard it."""
        made: dict[str, Any] = self.call("POST", f"/records/{record['id']}/responses", _response(label))
        return made

    def change(self, response: dict[str, Any], label: str) -> None:
        self.call("PUT", f"/responses/{response['id']}", _response(label))


def _response(label: str | None) -> dict[str, Any]:
    if label is None:
        return {"status": "discarded"}
    return {"values": {"label": {"value": label}}, "status": "submitted"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder, port = tmp_path_factory.mktemp("argilla"), free_ports()
    assert PYTHON is not None
    log = folder / "log"
    with (
        log.open("w") as file,
        subprocess.Popen([PYTHON, PROGRAM, str(port), folder], stdout=file, stderr=file) as process,
    ):
        running = Server(f"http://127.0.0.1:{port}")
        try:
            wait_until(
                lambda: process.poll() is not None or running.listens(),
                PATIENCE,
                lambda: log.read_text(errors="replace")[-2000:],
            )
            assert process.poll() is None, log.read_text(errors="replace")[-2000:]
            yield running
        finally:
            process.terminate()


@contextmanager
def bridged(plan: BridgePlan, kafka: dict[str, str], client: Argilla, hook: Any = None) -> Iterator[Bridge]:
    """A bridge at work, which listens for webhooks if there is a port; its error is raised."""
    bridge = Bridge(plan, kafka, client)
    errors: list[BaseException] = []

    def run() -> None:
        try:
            bridge.run()
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    with ExitStack() as stack:
        if hook is not None:
            port, secret = hook
            hooks = Webhooks(("127.0.0.1", port), secret, bridge.taken, hooks=ArgillaHooks())
            stack.enter_context(hooks)
            threading.Thread(target=hooks.serve_forever, daemon=True).start()
            stack.callback(hooks.shutdown)
        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield bridge
        finally:
            bridge.stop()
            thread.join(PATIENCE)
    for error in errors:
        raise error


def test_requests_go_out_and_labels_come_back_once(broker: Any, tmp_path: Path, server: Server) -> None:
    kafka = {"bootstrap.servers": broker.bootstrap_servers}
    names = TopicNames(f"argilla-{uuid.uuid4().hex[:8]}.")
    admin.create(kafka, names, 3)
    dataset, port = server.dataset(), free_ports()
    about = {"url": f"http://127.0.0.1:{port}/", "events": ["response.created", "response.updated"]}
    secret = server.call("POST", "/webhooks", about)["secret"]
    client = Argilla(server.url, KEY, dataset)
    by_hooks = BridgePlan(names, f"{names.prefix}argilla", tmp_path / "state.sqlite", sweep_s=3600)

    def records(*instances: str) -> dict[str, dict[str, Any]]:
        def kept() -> dict[str, Any]:
            return {record["metadata"]["grove_instance_id"]: record for record in client.tasks()}

        wait_until(lambda: {*kept()} == {*instances}, PATIENCE, lambda: str(kept()))
        assert len(list(client.tasks())) == len(instances), "none is there twice"
        return kept()

    def came(*expected: tuple[str, str | None]) -> None:
        def sent() -> list[str]:
            return sorted(str((label["id"], label.get("label"))) for label in labels(kafka, names))

        wait_until(lambda: sent() == sorted(map(str, expected)), PATIENCE, lambda: str(sent()))

    client.check()
    ask(kafka, names, "a", "b", "c")
    with bridged(by_hooks, kafka, client, (port, secret)) as bridge:
        by_id = records("a", "b", "c")
        made = server.respond(by_id["a"], "good")
        came(("a", "good"))  # by the webhook: the next sweep is an hour away
        record = records("a", "b", "c")["a"]
        assert bridge.taken(record, client.annotations_of(record)) == 0
        server.change(made, "fraud")
        came(("a", "good"), ("a", "fraud"))
        server.respond(by_id["b"], None)
        came(("a", "good"), ("a", "fraud"), ("b", None))
    server.respond(by_id["c"], "fraud")  # while there is no bridge
    ask(kafka, names, "a", "d")  # a is there already
    with bridged(by_hooks, kafka, client):
        records("a", "b", "c", "d")
        came(("a", "good"), ("a", "fraud"), ("b", None), ("c", "fraud"))
