"""The bridge against Label Studio itself, where it is installed: the whole loop, twice over.

It needs an environment of its own (`pip install label-studio`): GROVE_LABEL_STUDIO names its command.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from streamapp.bridge.bridge import Bridge, BridgePlan
from streamapp.bridge.label_studio import LabelStudio, LabelStudioError
from streamapp.bridge.webhooks import Webhooks
from streamapp.worker.reserved_ports import free_ports
from tests.broker.web_rig import ask, labels
from tests.broker.workers import PATIENCE, wait_until
from topics.clients import admin
from topics.definitions import TopicNames

COMMAND: Final = shutil.which(os.environ.get("GROVE_LABEL_STUDIO", "label-studio"))
pytestmark = [
    pytest.mark.broker,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(COMMAND is None, reason="label-studio is not installed"),
]

USER, PASSWORD, TOKEN = "ann@example.com", "correct horse battery", "0123456789abcdef" * 2 + "01234567"
SECRET = "of the webhook"
BEGINS_S: Final = 600.0  # a new database takes minutes on a busy machine
CONFIG: Final = """
<View>
  <Table name="record" value="$record"/>
  <Choices name="label" toName="record" choice="single" required="true">
    <Choice value="good"/>
    <Choice value="fraud"/>
  </Choices>
</View>
"""


@dataclass
class Tool:
    """A Label Studio that runs, and what a person does in it."""

    url: str

    def call(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Token {TOKEN}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read()[:500]!r}") from None

    def listens(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def project(self) -> int:
        return int(self.call("POST", "/api/projects", {"title": "grove", "label_config": CONFIG})["id"])

    def tasks(self, project: int) -> dict[str, dict[str, Any]]:
        """Return the tasks of a project by their instances."""
        all_tasks = list(LabelStudio(self.url, TOKEN, project).tasks())
        assert len({task["data"]["grove_request_id"] for task in all_tasks}) == len(all_tasks), (
            "none is there twice"
        )
        return {task["data"]["grove_instance_id"]: task for task in all_tasks}

    def annotate(self, task: dict[str, Any], choice: str | None) -> dict[str, Any]:
        """Answer a task as its page does; None: skip it."""
        chosen = {"from_name": "label", "to_name": "record", "type": "choices"}
        result = [] if choice is None else [{**chosen, "value": {"choices": [choice]}}]
        body = {"result": result, "was_cancelled": choice is None}
        made: dict[str, Any] = self.call("POST", f"/api/tasks/{task['id']}/annotations/", body)
        return made

    def change(self, annotation: dict[str, Any], choice: str) -> None:
        """Change the answer of an annotation."""
        result = [{**annotation["result"][0], "value": {"choices": [choice]}}]
        self.call("PATCH", f"/api/annotations/{annotation['id']}/", {"result": result})


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tool]:
    directory = tmp_path_factory.mktemp("label-studio")
    port = free_ports()
    environment = {
        **os.environ,
        "LABEL_STUDIO_USER_TOKEN": TOKEN,
        "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
        "LATEST_VERSION_CHECK": "false",
        "SENTRY_DSN": "",
        "FRONTEND_SENTRY_DSN": "",
        "COLLECT_ANALYTICS": "false",
        "SSRF_PROTECTION_ENABLED": "false",  # webhooks go to this machine
    }
    assert COMMAND is not None
    command = [COMMAND, "start", "--no-browser", "--internal-host", "127.0.0.1", "--port", str(port)]
    command += ["--username", USER, "--password", PASSWORD, "--data-dir", str(directory)]
    log = directory / "log"
    with (
        log.open("w") as file,
        subprocess.Popen(command, stdout=file, stderr=file, env=environment) as server,
    ):
        running = Tool(f"http://127.0.0.1:{port}")
        try:
            wait_until(
                lambda: server.poll() is None and running.listens(),
                BEGINS_S,
                lambda: f"{server.poll()}: {log.read_text(errors='replace')[-2000:]}",
            )
            yield running
        finally:
            server.terminate()


@contextmanager
def bridged(plan: BridgePlan, kafka: dict[str, str], client: LabelStudio, port: int = 0) -> Iterator[Bridge]:
    """A bridge at work, with a door for webhooks if there is a port; what ended it is raised."""
    bridge = Bridge(plan, kafka, client)
    errors: list[BaseException] = []

    def run() -> None:
        try:
            bridge.run()
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    with ExitStack() as stack:
        if port:
            door = stack.enter_context(Webhooks(("127.0.0.1", port), SECRET, bridge.taken))
            threading.Thread(target=door.serve_forever, daemon=True).start()
            stack.callback(door.shutdown)
        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield bridge
        finally:
            bridge.stop()
            thread.join(PATIENCE)
    for error in errors:
        raise error


def said(documents: Sequence[dict[str, Any]]) -> list[tuple[str, str | None]]:
    return [(document["id"], document.get("label")) for document in documents]


def test_requests_go_out_and_labels_come_back_once(broker: Any, tmp_path: Path, tool: Tool) -> None:
    kafka = {"bootstrap.servers": broker.bootstrap_servers}
    names = TopicNames(f"studio-{uuid.uuid4().hex[:8]}.")
    admin.create(kafka, names, 3)
    project, port = tool.project(), free_ports()
    hook = {
        "project": project,
        "url": f"http://127.0.0.1:{port}/",
        "send_payload": True,
        "send_for_all_actions": False,
        "actions": ["ANNOTATION_CREATED", "ANNOTATION_UPDATED"],
        "headers": {"Authorization": SECRET},
    }
    tool.call("POST", "/api/webhooks/", hook)
    client = LabelStudio(tool.url, TOKEN, project)
    assert client.check() == "grove"
    by_hooks = BridgePlan(names, f"{names.prefix}studio", tmp_path / "state.sqlite", sweep_s=3600)

    def tasks(*instances: str) -> dict[str, dict[str, Any]]:
        wait_until(lambda: {*tool.tasks(project)} == {*instances}, PATIENCE, lambda: str(tool.tasks(project)))
        return tool.tasks(project)

    def came(*expected: tuple[str, str | None]) -> None:
        wait_until(
            lambda: sorted(map(str, said(labels(kafka, names)))) == sorted(map(str, expected)),
            PATIENCE,
            lambda: str(labels(kafka, names)),
        )

    ask(kafka, names, "a", "b", "c")
    with bridged(by_hooks, kafka, client, port) as bridge:
        tasks_by_id = tasks("a", "b", "c")
        assert [row["feature"] for row in tasks_by_id["a"]["data"]["record"]]
        made = tool.annotate(tasks_by_id["a"], "good")
        came(("a", "good"))  # by the webhook: the next sweep is an hour away
        task = tool.tasks(project)["a"]
        assert bridge.taken(task, task["annotations"]) == 0
        tool.change(made, "fraud")
        came(("a", "good"), ("a", "fraud"))
        tool.annotate(tasks_by_id["b"], None)
        came(("a", "good"), ("a", "fraud"), ("b", None))
    tool.annotate(tasks_by_id["c"], "fraud")  # while there is no bridge
    ask(kafka, names, "a", "d")  # what is asked again is there already
    with bridged(by_hooks, kafka, client, port):
        tasks("a", "b", "c", "d")
        came(("a", "good"), ("a", "fraud"), ("b", None), ("c", "fraud"))
    other = BridgePlan(names, f"{names.prefix}other", by_hooks.store, sweep_s=0.5)
    with bridged(other, kafka, client):  # another group reads all requests again
        tool.annotate(tasks("a", "b", "c", "d")["d"], "good")
        came(("a", "good"), ("a", "fraud"), ("b", None), ("c", "fraud"), ("d", "good"))
    assert {label["annotator"] for label in labels(kafka, names)} == {"label-studio:1"}
    tasks("a", "b", "c", "d")


def test_what_label_studio_refuses_is_said_in_one_line(tool: Tool) -> None:
    project = tool.project()
    with pytest.raises(LabelStudioError, match=r"401 Unauthorized.*GROVE_LABEL_STUDIO_TOKEN") as refused:
        LabelStudio(tool.url, "0" * 40, project).check()
    assert not refused.value.passes
    with pytest.raises(LabelStudioError, match=r"404 Not Found") as missing:
        LabelStudio(tool.url, TOKEN, project + 1000).check()
    assert not missing.value.passes


def test_pages_of_tasks_are_read_to_their_end(tool: Tool) -> None:
    project = tool.project()
    client = LabelStudio(tool.url, TOKEN, project)
    request_ids = {f"q{number}" for number in range(203)}
    tasks = [{"data": {"grove_request_id": request_id, "record": []}} for request_id in sorted(request_ids)]
    assert client.add(tasks) == 203
    assert sorted(task["data"]["grove_request_id"] for task in client.tasks()) == sorted(request_ids)
    assert list(LabelStudio(tool.url, TOKEN, tool.project()).tasks()) == []
