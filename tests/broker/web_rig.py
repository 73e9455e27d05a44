"""Rig of the web application's tests: what models ask, the command as a process, a browser."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from confluent_kafka import Producer

from tests.broker.kafka_log import read_topic
from tests.broker.workers import PATIENCE
from topics.clients.partitioner import partition_of
from topics.codecs import encode_controls, encode_feature_requests, encode_label_requests
from topics.codecs.avro.output_schemas import current
from topics.codecs.avro.output_values import avro_values
from topics.codecs.frames.wire_format import framed
from topics.columns.records import FeatureRequest, Features, LabelRequests
from topics.definitions import TopicNames
from topics.registry.client import Registry

CHROMIUM = Path("/usr/bin/chromium")
PARTITIONS = 3
KEY = b"shop <1>"
PHONE = {"width": 360, "height": 740}


def send(kafka: dict[str, str], topic: str, values: list[bytes]) -> None:
    producer = Producer(kafka | {"message.max.bytes": 8 << 20})
    for value in values:
        producer.produce(topic, value, KEY, partition_of(KEY, PARTITIONS))
    assert producer.flush(PATIENCE) == 0


def ask(kafka: dict[str, str], names: TopicNames, *ids: str, registry: Registry | None = None) -> None:
    """Request labels; registry: in Avro, by a schema that is registered there."""
    n = len(ids)
    features = Features.of(["amount", "country"], np.full((n, 2), 12.5), {1: ["<b>DE</b>"] * n})
    requests = LabelRequests(
        [f"r-{i}" for i in ids],
        list(ids),
        [features],
        ["fraud"] * n,
        ["random"] * n,
        np.arange(n, 0, -1) / n,
        np.full(n, -1, dtype=np.int64),
    )
    values = encode_label_requests(requests)
    if registry is not None:
        schema_id = registry.register(f"{names.label_requests}-value", "AVRO", current("label-request"))
        values = [framed(schema_id, value) for value in avro_values("label-request", values)]
    send(kafka, names.label_requests, values)


def knows_classes(kafka: dict[str, str], names: TopicNames, *classes: str) -> None:
    schema = {"attributes": [{"name": "amount"}], "classes": list(classes)}
    send(kafka, names.controls, encode_controls([("create", {"schema": schema})]))


def labels(kafka: dict[str, str], names: TopicNames) -> list[dict[str, Any]]:
    return [orjson.loads(message.value()) for message in read_topic(kafka, names.labels)]


def ask_for_features(kafka: dict[str, str], names: TopicNames, name: str, *features: str) -> None:
    request = FeatureRequest(f"q-{name}", name, list(features), 2.5, 0.5, {"amount": 9.0}, 2**53)
    send(kafka, names.feature_requests, encode_feature_requests([request]))


@contextmanager
def grove_web(kafka: dict[str, str], names: TopicNames, path: Path, *options: str) -> Iterator[str]:
    """The command as a process of its own; gives its address."""
    command = [sys.executable, "-m", "streamapp", "web", "--port", "0", "--state", str(path), *options]
    command += ["-b", kafka["bootstrap.servers"], "--topics-prefix", names.prefix]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=None, start_new_session=True
    ) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            address = re.search(r"http://\S+", line)
            assert address, f"{line!r}, {process.poll()}"
            yield address[0]
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 130


@contextmanager
def browser() -> Iterator[Any]:
    """Chromium without a window; skipped where it is not."""
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not here")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE * 1000)
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield running
        finally:
            running.close()


def sign_in(page: Any, name: str, password: str) -> None:
    """Fill the form that is shown, by keyboard, and go on to the cards."""
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password)
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Label the next card").click()
