"""`grove web` on a real broker: from the request on its topic to the label, by a browser's keyboard."""

from __future__ import annotations

import threading
import time
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from streamapp.people import dawid_skene
from streamapp.people.annotator_answers import answers_of
from streamapp.web.annotation_terms import Terms
from streamapp.web.audit_log import AuditLog
from streamapp.web.queue.answer_writer import Writer
from streamapp.web.queue.cards import Card
from streamapp.web.queue.label_queue import LabelQueue
from streamapp.web.queue.quality.annotator_models import model_of
from streamapp.web.queue.quality.gold_file import GoldRecord
from streamapp.web.queue.request_reader import Reader
from streamapp.web.store import Store
from streamapp.web.users import add_user
from tests.broker.kafka_log import read_topic
from tests.broker.web_rig import (
    KEY,
    PARTITIONS,
    PHONE,
    ask,
    ask_for_features,
    browser,
    grove_web,
    knows_classes,
    labels,
    send,
    sign_in,
)
from tests.broker.workers import PATIENCE, wait_until
from topics.clients import admin
from topics.codecs import decode_audit, encode_controls, encode_label_requests, encode_labels
from topics.codecs.avro.input_schemas import label_schema
from topics.codecs.frames.wire_format import framed
from topics.columns.records import AuditEntry, Features, LabelRequests
from topics.definitions import TopicNames
from topics.registry.client import Registry
from topics.registry.registry_access import registry_access

pytestmark = pytest.mark.broker


@pytest.fixture
def kafka(broker: Any) -> dict[str, str]:
    return {"bootstrap.servers": broker.bootstrap_servers}


@pytest.fixture
def names(kafka: dict[str, str]) -> TopicNames:
    names = TopicNames(f"test-{uuid.uuid4().hex[:12]}.")
    admin.create(kafka, names, PARTITIONS)
    return names


class Threads:
    """Reader and writer on a store, as one process has them."""

    def __init__(self, kafka: dict[str, str], names: TopicNames, path: Path, terms: Terms) -> None:
        self.store = Store(path)
        self.queue = LabelQueue(self.store, terms)
        self.reader, self.writer = (
            Reader(kafka, names, self.queue),
            Writer(kafka, names, self.queue, AuditLog(self.store)),
        )
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
        found.extend(filter(None, [queue.leases.next_card(who, now())]))
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
        queue.actions.answer("ann", card.number, "good", now())
        wait_until(lambda: queue.counts(now()).sent == 1, PATIENCE, lambda: "not sent")
    with Threads(kafka, names, path, long) as queue:
        queue.actions.answer("ann", card_of(queue, "ann").number, "fraud", now())
        assert card_of(queue, "bob").instance_id == "third"
    # A process dies between giving a label to the broker and noting it; another one of the oracle comes too.
    store = Store(path)
    queue = LabelQueue(store, long)
    (going,) = queue.outbox.due(now() + long.undo_ms)
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
            return sum(queue.topics.positions(names.labels).values()) == 3

        wait_until(read, PATIENCE, lambda: "labels are not read")
        assert card_of(queue, "ann").instance_id == "fourth"
        assert queue.counts(now()).open == 1
    found = [(each["id"], each.get("label"), each["annotator"]) for each in labels(kafka, names)]
    assert found == [("first", "good", "ann"), ("second", "fraud", "ann"), ("third", "good", "oracle")]


def test_a_lost_store_and_a_second_one_come_to_the_same_annotator_model(
    kafka: dict[str, str], names: TopicNames, tmp_path: Path
) -> None:
    """Requests settled by quality, with gold questions: no answer to these is on the topic of labels."""
    key, gold = KEY.decode(), GoldRecord(KEY.decode(), "known", "good", {"amount": 1.0})
    terms = Terms(undo_ms=0, agree=2, weighted="quality", gold_share=0.5)
    knows_classes(kafka, names, "fraud", "good")
    ask(kafka, names, *(f"order {n}" for n in range(4)))

    def state(queue: LabelQueue, store: Store, n: int) -> dict[str, Any]:
        """Return the model after n outcomes and gold answers are read from the topic."""

        def read() -> int:
            with store.reading() as db:
                return int(db.execute("SELECT count(*) FROM outcome").fetchone()[0])

        wait_until(lambda: read() >= n, PATIENCE, lambda: f"{read()} of {n} entries are read")
        with store.reading() as db:
            return dawid_skene.written(model_of(db, key))

    shown = list[str]()

    def all_answered(queue: LabelQueue) -> bool:
        for annotator in ("ann", "bob", "cy", "dan"):
            while (card := queue.leases.next_card(annotator, now())) is not None:
                shown.extend([card.instance_id] * (card.instance_id == "known"))
                queue.actions.answer(annotator, card.number, "good", now(), new_class=True)
        return queue.counts(now()).open == 0

    threads = Threads(kafka, names, tmp_path / "web.sqlite", terms)
    threads.queue.topics.keep_gold([gold])
    with threads as queue:
        wait_until(lambda: queue.counts(now()).open == 4, PATIENCE, lambda: str(queue.counts(now())))
        wait_until(lambda: all_answered(queue), PATIENCE, lambda: str(queue.counts(now())))
        before = state(queue, threads.store, 4 + len(shown))
    assert shown and before["classes"], "there were gold questions"
    other = Threads(kafka, names, tmp_path / "another.sqlite", terms)
    with other as queue:
        assert state(queue, other.store, 4 + len(shown)) == before
    assert {label["id"] for label in labels(kafka, names)} == {f"order {n}" for n in range(4)}
    entries = decode_audit([message.value() for message in read_topic(kafka, names.audit)])
    answers = answers_of(entry for entry in entries if isinstance(entry, AuditEntry))
    assert sum(answer.gold == "good" for answer in answers) == len(shown)


def wait_for_labels(kafka: dict[str, str], names: TopicNames, n: int) -> list[bytes]:
    """Return the values of the labels once there are `n`."""

    def written() -> list[bytes]:
        return [message.value() for message in read_topic(kafka, names.labels)]

    wait_until(lambda: len(written()) == n, PATIENCE, lambda: str(written()))
    return written()


def test_a_request_is_answered_by_keyboard_alone(
    kafka: dict[str, str],
    names: TopicNames,
    tmp_path: Path,
    registry_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Requests in Avro and JSON; one that has a label in Avro is not shown."""
    monkeypatch.setenv("GROVE_SCHEMA_REGISTRY_URL", registry_url)
    access = registry_access({"schema.registry.url": registry_url})
    assert access is not None
    registry = Registry(access)
    knows_classes(kafka, names, "fraud", "good")
    schema_id = registry.register(f"{names.labels}-value", "AVRO", label_schema())
    send(kafka, names.labels, [framed(schema_id, b"\x0eorder 0\x08good")])  # lengths as zigzag varints
    ask(kafka, names, "order 0", registry=registry)
    with (
        browser() as chromium,
        grove_web(kafka, names, tmp_path / "web.sqlite", "--undo-seconds", "10") as address,
    ):
        from playwright.sync_api import expect

        page = chromium.new_page(viewport=PHONE)
        complaints: list[str] = []
        page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{address}label")
        expect(page.get_by_text("There is no request now")).to_be_visible()
        ask(kafka, names, "order <i>1</i>", registry=registry)
        ask(kafka, names, "order 2")
        heading = page.get_by_role("heading", level=1)
        expect(heading).to_have_text(f"{KEY.decode()}: which class has order <i>1</i>?")
        expect(page.get_by_role("cell", name="<b>DE</b>")).to_be_visible()
        expect(page.get_by_text("The model answers")).not_to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "it fits a phone"

        def press(key: str, then: str) -> None:
            page.wait_for_timeout(400)  # a key before the card can have been read is not taken
            page.keyboard.press(key)
            expect(page.get_by_text(then)).to_be_visible()

        page.get_by_label("Another class").fill("maybe")
        page.get_by_role("button", name="Answer with it").click()
        expect(page.get_by_text("'maybe' must be one of fraud, good: the schema of this")).to_be_visible()
        expect(heading).to_have_text(f"{KEY.decode()}: which class has order <i>1</i>?")
        press("g", "The model answers fraud")
        press("2", "which class has order 2?")
        press("u", "which class has order <i>1</i>?")
        press("1", "which class has order 2?")
        press("x", "There is no request now")
        written = wait_for_labels(kafka, names, 3)
        assert complaints == []
    assert [orjson.loads(value) for value in written[1:]] == [
        {"id": "order <i>1</i>", "label": "fraud", "annotator": "web"},
        {"id": "order 2", "label": None, "declined": True, "annotator": "web"},
    ]


def test_features_are_given_by_keyboard_alone_and_everything_is_audited(
    kafka: dict[str, str], names: TopicNames, tmp_path: Path
) -> None:
    declared = {"attributes": [{"name": "age"}, {"name": "colour", "kind": "nominal", "values": ["red"]}]}
    send(kafka, names.controls, encode_controls([("create", {"schema": declared})]))
    ask_for_features(kafka, names, "loan <1>", "age", "colour", "undeclared")
    with (
        browser() as chromium,
        grove_web(kafka, names, tmp_path / "web.sqlite", "--undo-seconds", "0") as address,
    ):
        from playwright.sync_api import expect

        page = chromium.new_page(viewport=PHONE)
        page.goto(f"{address}label")
        expect(page.get_by_role("heading", level=1)).to_have_text(
            f"{KEY.decode()}: which values has loan <1>?"
        )
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "it fits a phone"
        page.get_by_label("age", exact=True).focus()
        page.keyboard.type("x1")
        page.keyboard.press("Enter")
        expect(page.get_by_text("colour is missing")).to_be_visible()
        page.get_by_label("undeclared is not available").focus()
        page.keyboard.press("Space")
        page.get_by_label("colour", exact=True).click()
        page.get_by_role("option", name="red").click()
        page.get_by_label("age", exact=True).focus()
        page.keyboard.press("Enter")
        expect(page.get_by_text("'x1' is no number")).to_be_visible()
        page.get_by_label("age", exact=True).fill("41")
        page.keyboard.press("Enter")
        expect(page.get_by_text("There is no request now")).to_be_visible()

        def given() -> list[dict[str, Any]]:
            return [orjson.loads(message.value()) for message in read_topic(kafka, names.feature_values)]

        wait_until(lambda: bool(given()), PATIENCE, lambda: "no values came")
        wait_until(lambda: bool(read_topic(kafka, names.audit)), PATIENCE, lambda: "no audit entry came")
    (values,) = given()
    assert values == {
        "id": "loan <1>",
        "features": {"age": 41.0, "colour": "red"},
        "unavailable": {"undeclared": None},
    }
    (entry,) = decode_audit([message.value() for message in read_topic(kafka, names.audit)])
    assert isinstance(entry, AuditEntry)
    assert (entry.user, entry.action, entry.instance_id) == ("web", "features", "loan <1>")


def test_two_annotators_sign_in_and_have_a_card_each(
    kafka: dict[str, str], names: TopicNames, tmp_path: Path
) -> None:
    password, path = "correct horse battery", tmp_path / "users.txt"
    add_user(path, "ann", password)
    add_user(path, "bob", password)
    ask(kafka, names, "first", "second")
    with (
        browser() as chromium,
        grove_web(kafka, names, tmp_path / "web.sqlite", "--users", str(path)) as address,
    ):
        from playwright.sync_api import expect

        for who, card in (("ann", "first"), ("bob", "second")):
            page = chromium.new_context().new_page()
            page.goto(f"{address}label")
            sign_in(page, who, password)
            heading = page.get_by_role("heading", level=1)
            expect(heading).to_contain_text(f"which class has {card}?")
        page.get_by_role("button", name="Sign out").click()
        page.wait_for_url("**/sign-in")
        assert page.goto(address + "_nicegui/anything").url.endswith("/sign-in")


def test_a_megabyte_of_features_makes_a_card_of_some_of_them(
    kafka: dict[str, str], names: TopicNames, tmp_path: Path
) -> None:
    n = 60_000
    features = Features.of([f"feature {i} <b>" for i in range(n)], np.ones((1, n)))
    requests = LabelRequests(
        ["r"], ["large"], [features], ["fraud"], ["random"], np.ones(1), np.full(1, -1, dtype=np.int64)
    )
    (value,) = encode_label_requests(requests)
    assert len(value) > 1 << 20
    send(kafka, names.label_requests, [value])
    with (
        browser() as chromium,
        grove_web(kafka, names, tmp_path / "web.sqlite") as address,
    ):
        from playwright.sync_api import expect

        page = chromium.new_page(viewport=PHONE)
        page.goto(f"{address}label")
        expect(page.get_by_text("and 59,500 more features, which are not shown")).to_be_visible()
        expect(page.get_by_role("cell", name="feature 0 <b>", exact=True)).to_be_visible()
