"""Figures about people on a real broker: a pause by the rule, a resumption, a lost store, the commands."""

from __future__ import annotations

import csv
import io
import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from streamapp.cli.main import main
from streamapp.people.pauses import USER, PauseRule
from streamapp.people.people_store import PeopleStore
from streamapp.web import audit_log
from streamapp.web.annotation_terms import Overlap, Terms
from streamapp.web.audit_log import AuditLog
from streamapp.web.people.audit_reader import AuditReader
from streamapp.web.people.people_figures import PeopleFigures
from streamapp.web.queue.answer_writer import Writer
from streamapp.web.queue.label_queue import LabelQueue
from streamapp.web.queue.request_reader import Reader
from streamapp.web.store import Store
from tests.broker.test_web import card_of, now
from tests.broker.web_rig import KEY, PARTITIONS, ask, knows_classes, send
from tests.broker.workers import PATIENCE, wait_until
from topics.clients import admin
from topics.columns.records import AuditEntry
from topics.definitions import TopicNames

pytestmark = pytest.mark.broker

RULE = PauseRule(0.7, 8)
MODEL = KEY.decode()


@contextmanager
def running(*parts: Any) -> Iterator[None]:
    threads = [threading.Thread(target=part.run) for part in parts]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for part in parts:
            part.stop()
        for thread in threads:
            thread.join(PATIENCE)


def tables(people: PeopleStore) -> dict[str, list[tuple[Any, ...]]]:
    with people.reading() as db:
        names = ("answer", "day", "pace", "pair", "pattern", "pause")
        return {name: db.execute(f"SELECT * FROM {name}").fetchall() for name in names}


def test_a_person_is_paused_and_resumed_and_a_lost_store_has_the_same_figures(
    broker: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kafka = {"bootstrap.servers": broker.bootstrap_servers}
    names = TopicNames(f"test-{uuid.uuid4().hex[:12]}.")
    admin.create(kafka, names, PARTITIONS)
    knows_classes(kafka, names, "fraud", "good")
    ask(kafka, names, *(f"i{number}" for number in range(8)))
    with ExitStack() as opened:
        store, people = Store(tmp_path / "web.sqlite"), PeopleStore(tmp_path / "people.sqlite")
        opened.callback(store.close)
        opened.callback(people.close)
        audit = AuditLog(store)
        figures = PeopleFigures(people, audit)
        queue = LabelQueue(store, Terms(undo_ms=0, overlap=Overlap(1.0)), figures.why_paused)
        parts = (
            Reader(kafka, names, queue),
            Writer(kafka, names, queue, audit),
            AuditReader(kafka, names, people, audit, RULE),
        )
        with running(*parts):
            for annotator in ("ann", "eve"):
                for number in range(5):
                    card = card_of(queue, annotator)
                    label = "fraud" if annotator == "eve" and number == 0 else "good"
                    queue.actions.answer(
                        annotator, card.number, label, now(), new_class=True, shown_ms=now() - 2_000
                    )
            with store.transaction() as db:
                for number in range(8):
                    about = (f"gold-{number}", "eve", "label", now(), MODEL, f"g{number}", f"g{number}")
                    audit_log.note(db, AuditEntry(*about, label="fraud", gold="good"))
            wait_until(lambda: bool(figures.why_paused("eve")), PATIENCE, lambda: str(tables(people)))
            assert queue.leases.next_card("eve", now()) is None
            assert queue.leases.next_card("ann", now()) is not None
            assert people.pause_states["eve"].user == USER
            figures.note("eve", "olga", pause=False, reason="we talked", now=now())
            wait_until(lambda: not figures.why_paused("eve"), PATIENCE, lambda: "not resumed")
            assert queue.leases.next_card("eve", now()) is not None
            hostile = {"id": "x", "user": "eve", "action": "pause", "at_ms": 1, "annotator": {"ann": 1}}
            send(kafka, names.audit, [b"no entry", b'{"id": 1}', json.dumps(hostile).encode()])
        again = PeopleStore(tmp_path / "again.sqlite")
        opened.callback(again.close)
        with running(AuditReader(kafka, names, again, audit, RULE)):
            wait_until(lambda: tables(again) == tables(people), PATIENCE, lambda: str(tables(again)))
        assert not again.pause_states["eve"].is_paused
        assert audit.waiting() == [], "nobody is paused again"

    options = ["-b", broker.bootstrap_servers, "--topics-prefix", names.prefix]

    def grove(*command: str) -> str:
        assert main(["people", *command, *options]) == 0
        return capsys.readouterr().out

    ann, eve = json.loads(grove("list", "--json"))
    assert (ann["annotator"], ann["answers"], ann["compared"], ann["agreed"]) == ("ann", 5, 5, 4)
    assert ann["seconds"] == pytest.approx(2.0, abs=0.5)
    assert (eve["answers"], eve["gold"], eve["gold_right"]) == (13, 8, 0)
    (total,) = csv.DictReader(io.StringIO(grove("list", "--total", "--annotator", "eve", "--csv")))
    assert (total["annotator"], total["answers"], total["gold_high"][:4]) == ("eve", "13", "0.32")
    assert "day" not in total
    assert "ann" in grove("list")
    (model, fraud, good) = json.loads(grove("agreement", "--key", MODEL, "--json"))
    assert (model["class"], fraud["class"], good["class"]) == (None, "fraud", "good")
    assert model["records"] == 5
    both, *by_class = json.loads(grove("agreement", "--pairs", "--key", MODEL, "--json"))
    assert [(row["class"], row["agreed"]) for row in (both, *by_class)] == [
        (None, 4),
        ("fraud", 4),
        ("good", 4),
    ]
    (pair,) = json.loads(grove("agreement", "--pairs", "--annotator", "eve", "--json"))
    assert (pair["first"], pair["second"], pair["agreed"], pair["cohen"]) == ("ann", "eve", 4, 0.0)
    assert json.loads(grove("list", "--since", "2999-01-01", "--json")) == []
    for wrong in (
        ("list", "--json", "--csv"),
        ("list", "--since", "soon"),
        ("agreement", "--annotator", "ann"),
    ):
        assert main(["people", *wrong, *options]) == 64
