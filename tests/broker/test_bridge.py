"""The bridge to Label Studio on a real broker, against a server that speaks Label Studio's API."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import cramjam
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from benchmarks.chaos.raw_client import RawClient
from benchmarks.chaos.wire import Record, encode_records
from streamapp.bridge.bridge import Bridge, BridgePlan
from streamapp.bridge.label_studio import LabelStudio
from streamapp.bridge.webhooks import Webhooks
from streamapp.cli.main import main
from tests.broker.web_rig import PARTITIONS, ask, knows_classes, labels, send
from tests.broker.workers import PATIENCE, wait_until
from tests.label_studio_stub import LEGACY, Stub
from topics.clients import admin
from topics.codecs import encode_controls
from topics.definitions import TopicNames

pytestmark = pytest.mark.broker


@contextmanager
def running(kafka: dict[str, str], plan: BridgePlan, stub: Stub) -> Iterator[Bridge]:
    """A bridge at work; what ended it is raised."""
    bridge = Bridge(plan, kafka, LabelStudio(stub.url, LEGACY, 7))
    errors: list[BaseException] = []

    def run() -> None:
        try:
            bridge.run()
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield bridge
    finally:
        bridge.stop()
        thread.join(PATIENCE)
    for error in errors:
        raise error


def test_nothing_is_asked_or_sent_twice(broker: Any, tmp_path: Path) -> None:
    kafka = {"bootstrap.servers": broker.bootstrap_servers}
    names = TopicNames(f"bridge-{uuid.uuid4().hex[:8]}.")
    admin.create(kafka, names, 3)
    plan = BridgePlan(names, f"{names.prefix}label-studio", tmp_path / "state.sqlite", sweep_s=3600)

    def asked(n: int) -> None:
        wait_until(lambda: len(stub.tasks) >= n, PATIENCE, lambda: f"{len(stub.tasks)} of {n} tasks")

    with Stub() as stub:
        ask(kafka, names, "a", "b", "c")
        stub.failures = [503]  # which has the tasks all the same
        with running(kafka, plan, stub) as bridge:
            asked(3)
            first, second, third = stub.tasks
            answer = stub.annotate(first, ["good"])
            assert bridge.taken(first, [answer]) == 1
            assert bridge.taken(first, [answer]) == 0
            ask(kafka, names, "d")
            asked(4)
        stub.annotate(second, [], cancelled=True)
        ask(kafka, names, "a", "e")  # a worker that was restored asks again under the same id
        with running(kafka, plan, stub):
            asked(5)
            wait_until(lambda: len(labels(kafka, names)) == 2, PATIENCE, lambda: str(labels(kafka, names)))
        forgotten = BridgePlan(names, f"{plan.group_id}-2", tmp_path / "other.sqlite", sweep_s=0.5)
        stub.annotate(third, ["fraud"])
        with running(kafka, forgotten, stub):  # another group reads all requests again
            wait_until(lambda: len(labels(kafka, names)) == 5, PATIENCE, lambda: str(labels(kafka, names)))
            seen = len(stub.requests)
            wait_until(lambda: len(stub.requests) >= seen + 4, PATIENCE, lambda: str(stub.requests))
    assert sorted(task["data"]["grove_instance_id"] for task in stub.tasks) == ["a", "b", "c", "d", "e"]
    sent_labels = labels(kafka, names)
    assert [label["id"] for label in sent_labels[:2]] == ["a", "b"]
    assert sent_labels[0]["label"] == "good"
    assert "label" not in sent_labels[1] or sent_labels[1]["label"] is None
    assert sorted(label["id"] for label in sent_labels[2:]) == ["a", "b", "c"], (
        "a bridge without its state sends again"
    )
    assert {label["annotator"] for label in sent_labels} == {"label-studio:1"}


def test_a_refused_batch_at_the_end_is_read_once(
    broker: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kafka = {"bootstrap.servers": broker.bootstrap_servers}
    names = TopicNames(f"bridge-{uuid.uuid4().hex[:8]}.")
    admin.create(kafka, names, PARTITIONS)
    plan = BridgePlan(names, f"{names.prefix}label-studio", tmp_path / "state.sqlite", sweep_s=3600)
    ask(kafka, names, "a")
    now_ms = time.time_ns() // 1_000_000  # retention deletes older records
    too_large = encode_records([Record(b"m", bytes(17 << 20), (), now_ms)] * 4)
    for partition in range(PARTITIONS):
        with RawClient(broker.bootstrap_servers, names.label_requests, partition) as producer:
            producer.write_body(bytes(cramjam.zstd.compress(too_large)), 4, 4)
    group = [TopicPartition(names.label_requests, partition) for partition in range(PARTITIONS)]

    def committed() -> list[int]:
        admin_client = AdminClient(kafka)
        (answer,) = admin_client.list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(plan.group_id, group)]
        ).values()
        return sorted(tp.offset for tp in answer.result(PATIENCE).topic_partitions)

    with Stub() as stub, running(kafka, plan, stub):
        wait_until(lambda: committed() == [4, 4, 5], PATIENCE, lambda: f"{committed()}\n{caplog.text}")
    assert caplog.text.count("becomes more than") == PARTITIONS
    assert len(stub.tasks) == 1


def test_replays_are_sent_once_and_a_class_that_is_shut_out_never(
    broker: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kafka = {"bootstrap.servers": broker.bootstrap_servers}
    names = TopicNames(f"bridge-{uuid.uuid4().hex[:8]}.")
    admin.create(kafka, names, PARTITIONS)
    knows_classes(kafka, names, "fraud", "good")
    ask(kafka, names, "a", "b")
    plan = BridgePlan(names, f"{names.prefix}label-studio", tmp_path / "state.sqlite", sweep_s=3600)
    with Stub() as stub, running(kafka, plan, stub) as bridge:
        wait_until(lambda: len(stub.tasks) == 2, PATIENCE, lambda: f"{len(stub.tasks)} tasks")
        first, second = stub.tasks
        with Webhooks(("127.0.0.1", 0), "", bridge.taken) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()

            def hook(task: Any, annotation: Any) -> str:
                body = {"action": "ANNOTATION_CREATED", "task": task, "annotation": annotation}
                url = f"http://127.0.0.1:{server.server_address[1]}/"
                with urlopen(Request(url, json.dumps(body).encode()), timeout=PATIENCE) as answer:
                    return str(json.load(answer)["detail"])

            maybe = stub.annotate(first, ["maybe"])
            for _ in range(3):
                assert hook(first, maybe) == "0 labels sent"
            (warning,) = [
                record.getMessage() for record in caplog.records if "is not sent" in record.getMessage()
            ]
            assert warning.startswith(
                f"annotation {maybe['id']} is not sent: 'maybe' must be one of fraud, good:"
            )
            good = stub.annotate(second, ["good"])
            with ThreadPoolExecutor(8) as pool:
                answers = list(pool.map(lambda _: hook(second, good), range(40)))
            assert Counter(answers) == {"1 labels sent": 1, "0 labels sent": 39}
            forged = {**second, "data": {**second["data"], "grove_partition": PARTITIONS}}
            assert hook(forged, stub.annotate(second, ["fraud"])) == "0 labels sent"
            mended = maybe | {"result": stub.annotate(first, ["fraud"])["result"]}
            assert hook(first, mended) == "1 labels sent", "the request was left open"
            schema = {"attributes": [{"name": "amount"}], "classes": ["maybe"]}
            send(kafka, names.controls, encode_controls([("reset", {"schema": schema})]))
            assert hook(first, maybe) == "1 labels sent", "controls are read before each label"
            server.shutdown()
    assert [(label["id"], label["label"]) for label in labels(kafka, names)] == [
        ("b", "good"),
        ("a", "fraud"),
        ("a", "maybe"),
    ]


def test_the_command_says_what_is_wrong(
    broker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = TopicNames(f"bridge-{uuid.uuid4().hex[:8]}.")
    admin.create({"bootstrap.servers": broker.bootstrap_servers}, names, 1)
    options = ["-b", broker.bootstrap_servers, "--topics-prefix", names.prefix]
    options += ["--set", f"state.dir={tmp_path}"]

    def said(*more: str, code: int) -> str:
        assert main(["bridge", "label-studio", *options, *more]) == code
        return capsys.readouterr().err

    with Stub() as stub:
        where = f"--url={stub.url}"
        monkeypatch.delenv("GROVE_LABEL_STUDIO_TOKEN", raising=False)
        assert "GROVE_LABEL_STUDIO_TOKEN must be set" in said(where, "--project=7", code=64)
        monkeypatch.setenv("GROVE_LABEL_STUDIO_TOKEN", LEGACY)
        open_door = said(where, "--project=7", "--host=0.0.0.0", "--port=9000", code=64)
        assert "--host 0.0.0.0 must be a loopback address unless" in open_door
        assert "/api/projects/8: 404 Not Found" in said(where, "--project=8", code=1)
        file = tmp_path / "token"
        file.write_text("no such token\n")
        monkeypatch.setenv("GROVE_LABEL_STUDIO_TOKEN_FILE", str(file))
        refused = said(where, "--project=7", code=1)
        assert "401 Unauthorized" in refused
        assert "no such token" not in refused
        assert len(refused.splitlines()) == 1
