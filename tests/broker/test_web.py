"""`grove web` on a real broker: from the request on its topic to the label, by a browser's keyboard."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Producer

from streamapp.web.cards import Card
from streamapp.web.label_queue import LabelQueue, Terms
from streamapp.web.reader import Reader
from streamapp.web.store import Store
from streamapp.web.writer import Writer
from tests.broker.kafka_log import read_topic
from tests.broker.workers import PATIENCE, wait_until
from topics import admin
from topics.codecs import encode_controls, encode_label_requests, encode_labels
from topics.definitions import TopicNames
from topics.partitioner import partition_of
from topics.records import Features, LabelRequests

pytestmark = pytest.mark.broker

CHROMIUM = Path("/usr/bin/chromium")
PARTITIONS = 3
KEY = b"shop <1>"


@pytest.fixture
def kafka(broker: Any) -> dict[str, str]:
    return {"bootstrap.servers": broker.bootstrap_servers}


@pytest.fixture
def names(kafka: dict[str, str]) -> TopicNames:
    names = TopicNames(f"test-{uuid.uuid4().hex[:12]}.")
    admin.create(kafka, names, PARTITIONS)
    return names


def send(kafka: dict[str, str], topic: str, values: list[bytes]) -> None:
    producer = Producer(kafka)
    for value in values:
        producer.produce(topic, value, KEY, partition_of(KEY, PARTITIONS))
    assert producer.flush(PATIENCE) == 0


def ask(kafka: dict[str, str], names: TopicNames, *ids: str) -> None:
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
    send(kafka, names.label_requests, encode_label_requests(requests))


def knows_classes(kafka: dict[str, str], names: TopicNames, *classes: str) -> None:
    schema = {"attributes": [{"name": "amount"}], "classes": list(classes)}
    send(kafka, names.controls, encode_controls([("create", {"schema": schema})]))


def labels(kafka: dict[str, str], names: TopicNames) -> list[dict[str, Any]]:
    import orjson

    return [orjson.loads(message.value()) for message in read_topic(kafka, names.labels)]


class Threads:
    """Reader and writer on a store, as one process has them."""

    def __init__(self, kafka: dict[str, str], names: TopicNames, path: Path, terms: Terms) -> None:
        self.store = Store(path)
        self.queue = LabelQueue(self.store, terms)
        self.reader, self.writer = Reader(kafka, names, self.queue), Writer(kafka, names, self.queue)
        self.threads = [threading.Thread(target=each.run) for each in (self.reader, self.writer)]

    def __enter__(self) -> LabelQueue:
        for thread in self.threads:
            thread.start()
        return self.queue

    def __exit__(self, *_: object) -> None:
        self.reader.stop()
        self.writer.stop()
        for thread in self.threads:
            thread.join(PATIENCE)
        self.store.close()


def now() -> int:
    return time.time_ns() // 1_000_000


def card_of(queue: LabelQueue, who: str) -> Card:
    found: list[Card] = []

    def came() -> bool:
        found.extend(filter(None, [queue.next_card(who, now())]))
        return bool(found)

    wait_until(came, PATIENCE, lambda: f"no card for {who}: {queue.counts(now())}")
    return found[0]


def test_what_was_read_answered_and_sent_survives_the_process(
    kafka: dict[str, str], names: TopicNames, tmp_path: Path
) -> None:
    path, long = tmp_path / "web.sqlite", Terms(undo_ms=3_600_000)
    knows_classes(kafka, names, "fraud", "good")
    ask(kafka, names, "first", "second", "third")
    with Threads(kafka, names, path, Terms(undo_ms=0)) as queue:
        card = card_of(queue, "ann")
        assert (card.key, card.instance_id) == (KEY.decode(), "first")
        assert card.features == {"amount": 12.5, "country": "<b>DE</b>"}
        wait_until(lambda: "good" in card_of(queue, "ann").classes, PATIENCE, lambda: "no control read")
        queue.answer("ann", card.number, "good", now())
        wait_until(lambda: queue.counts(now()).sent == 1, PATIENCE, lambda: "not sent")
    with Threads(kafka, names, path, long) as queue:
        queue.answer("ann", card_of(queue, "ann").number, "fraud", now())
        assert card_of(queue, "bob").instance_id == "third"
    # A process dies between giving a label to the broker and noting it; another one of the oracle comes too.
    store = Store(path)
    queue = LabelQueue(store, long)
    (going,) = queue.due(now() + long.undo_ms)
    assert going.instance_id == "second"
    send(kafka, names.labels, encode_labels(["second"], ["fraud"], annotators=["ann"]))
    send(kafka, names.labels, encode_labels(["third"], ["good"], annotators=["oracle"]))
    store.close()
    with Threads(kafka, names, path, Terms(undo_ms=0)) as queue:
        wait_until(
            lambda: (queue.counts(now()).sent, queue.counts(now()).open) == (2, 0),
            PATIENCE,
            lambda: str(queue.counts(now())),
        )
    # The store is lost: all of it is read again, and nothing is asked again.
    ask(kafka, names, "fourth")
    with Threads(kafka, names, tmp_path / "another.sqlite", Terms(undo_ms=0)) as queue:

        def read() -> bool:
            return sum(queue.positions(names.labels).values()) == 3

        wait_until(read, PATIENCE, lambda: "labels are not read")
        assert card_of(queue, "ann").instance_id == "fourth"
        assert queue.counts(now()).open == 1
    found = [(each["id"], each.get("label"), each["annotator"]) for each in labels(kafka, names)]
    assert found == [("first", "good", "ann"), ("second", "fraud", "ann"), ("third", "good", "oracle")]


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


def test_a_request_is_answered_by_keyboard_alone(
    kafka: dict[str, str], names: TopicNames, tmp_path: Path
) -> None:
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not here")
    from playwright.sync_api import expect, sync_playwright

    knows_classes(kafka, names, "fraud", "good")
    with (
        grove_web(kafka, names, tmp_path / "web.sqlite", "--undo-seconds", "2") as address,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 360, "height": 740})  # a phone's
        complaints: list[str] = []
        page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(address)
        expect(page.get_by_text("Nothing is asked at the moment")).to_be_visible(timeout=PATIENCE * 1000)
        ask(kafka, names, "order <i>1</i>", "order 2")
        heading = page.get_by_role("heading", level=1)
        expect(heading).to_have_text(
            f"{KEY.decode()}: which class has order <i>1</i>?", timeout=PATIENCE * 1000
        )
        expect(page.get_by_role("cell", name="<b>DE</b>")).to_be_visible()
        expect(page.get_by_text("The model says")).not_to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "it fits a phone"

        def press(key: str, then: str) -> None:
            page.wait_for_timeout(400)  # a key before the card can have been read is not taken
            page.keyboard.press(key)
            expect(page.get_by_text(then)).to_be_visible(timeout=PATIENCE * 1000)

        press("g", "The model says fraud")
        press("2", "which class has order 2?")
        press("u", "which class has order <i>1</i>?")
        press("1", "which class has order 2?")
        press("x", "Nothing is asked at the moment")
        wait_until(lambda: len(labels(kafka, names)) == 2, PATIENCE, lambda: str(labels(kafka, names)))
        assert complaints == []
        browser.close()
    assert labels(kafka, names) == [
        {"id": "order <i>1</i>", "label": "fraud", "annotator": "web"},
        {"id": "order 2", "label": None, "declined": True, "annotator": "web"},
    ]


def test_two_annotators_sign_in_and_have_a_card_each(
    kafka: dict[str, str], names: TopicNames, tmp_path: Path
) -> None:
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not here")
    from playwright.sync_api import expect, sync_playwright

    from streamapp.web.users import add_user

    password, path = "correct horse battery", tmp_path / "users.txt"
    add_user(path, "ann", password)
    add_user(path, "bob", password)
    ask(kafka, names, "first", "second")
    with (
        grove_web(kafka, names, tmp_path / "web.sqlite", "--users", str(path)) as address,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for who, card in (("ann", "first"), ("bob", "second")):
            page = browser.new_context().new_page()
            page.goto(address)
            page.get_by_label("Name").fill(who)
            page.get_by_label("Password").fill(password)
            page.keyboard.press("Enter")
            heading = page.get_by_role("heading", level=1)
            expect(heading).to_contain_text(f"which class has {card}?", timeout=PATIENCE * 1000)
        page.get_by_role("button", name="Sign out").click()
        page.wait_for_url("**/sign-in")
        browser.close()
