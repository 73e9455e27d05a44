"""The store: who reads does not wait for who writes, and several commits wait for the disk once."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from streamapp.web.queue.agreement import ANSWERED
from streamapp.web.queue.label_queue import LabelQueue
from streamapp.web.store import Store
from tests.unit.streamapp.web.queue.requests import NOW, REQUEST

PATIENCE_S = 120.0
TO_7 = """
DROP TABLE day; CREATE INDEX answer_by_day ON answer (annotator, answered_ms);
"""
"""Statements that take back what format 8 changed."""
TO_6 = f"""{TO_7}
DROP TABLE crowd; DROP TABLE outcome; DROP TABLE gold_shown; DROP TABLE gold; DROP TABLE dealt;
DROP TABLE review; DROP TABLE adjudication; DROP TABLE past_record;
ALTER TABLE request DROP COLUMN gold; ALTER TABLE request DROP COLUMN gold_for;
"""
"""Statements that take back what formats 7 and 8 changed."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "web.sqlite")
    yield made
    made.close()


def names(store: Store) -> set[str]:
    with store.reading() as db:
        return {name for (name,) in db.execute("SELECT name FROM origin")}


def add(store: Store, name: str, *, durable: bool = True) -> None:
    with store.transaction(durable=durable) as db:
        db.execute("INSERT INTO origin VALUES (?, '')", (name,))


def test_another_thread_reads_what_was_before_a_transaction_that_is_open(store: Store) -> None:
    seen: list[set[str]] = []
    with store.transaction() as db:
        db.execute("INSERT INTO origin VALUES ('new', '')")
        reader = threading.Thread(target=lambda: seen.append(names(store)), daemon=True)
        reader.start()
        reader.join(PATIENCE_S)
        assert seen == [set()]
        assert names(store) == {"new"}, "its own thread sees what it wrote"
    assert names(store) == {"new"}


def test_commits_that_come_during_a_sync_share_the_next_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on, syncs = threading.Event(), threading.Event(), []
    fsync = os.fsync

    def slow(file: int) -> None:
        syncs.append(names(store))
        begun.set()
        assert go_on.wait(PATIENCE_S)
        fsync(file)

    monkeypatch.setattr(os, "fsync", slow)
    threads = [threading.Thread(target=add, args=(store, name), daemon=True) for name in "abcd"]
    threads[0].start()
    assert begun.wait(PATIENCE_S)
    for thread in threads[1:]:
        thread.start()
    while names(store) != set("abcd"):  # they are committed while the first is still waiting
        threads[0].join(0.01)
    assert all(thread.is_alive() for thread in threads), "nothing returns before it is on the disk"
    go_on.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert syncs[:2] == [{"a"}, set("abcd")]
    assert len(syncs) < 4, "one that had just committed may count itself a moment later, and sync alone"


def test_only_what_has_to_last_waits_for_the_disk(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs: list[int] = []
    monkeypatch.setattr(os, "fsync", syncs.append)
    add(store, "from a topic", durable=False)
    with store.transaction() as db:
        db.execute("SELECT 1")
    assert syncs == []
    add(store, "from a person")
    assert len(syncs) == 1
    with pytest.raises(ZeroDivisionError), store.transaction() as db:
        db.execute("DELETE FROM origin")
        raise ZeroDivisionError
    assert len(syncs) == 1
    assert names(store) == {"from a topic", "from a person"}


def test_a_file_that_is_there_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "web.sqlite"
    for name in "ab":
        store = Store(path)
        add(store, name)
        store.close()
    store = Store(path)
    assert names(store) == {"a", "b"}
    store.close()


def test_the_votes_are_looked_through_and_not_the_requests(store: Store) -> None:
    with store.reading() as db:
        plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {ANSWERED}", (0,))]
    assert any(step.startswith("SCAN v") for step in plan)
    assert not any(step.startswith("SCAN r") for step in plan)


def test_the_log_is_copied_into_the_file_while_others_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever commits copies nothing: what lies in the file alone is what the store's own thread brought."""
    monkeypatch.setattr("streamapp.web.store.CHECKPOINT_S", 0.01)
    monkeypatch.setattr("streamapp.web.store.LOG_PAGES", 20)
    path, alone = tmp_path / "web.sqlite", tmp_path / "alone.sqlite"
    store = Store(path)
    wanted = {f"{number:04}{'x' * 3000}" for number in range(1500)}  # more than what SQLite copies by itself
    for name in sorted(wanted):
        add(store, name, durable=False)

    def copied() -> set[str]:
        shutil.copyfile(path, alone)
        with closing(sqlite3.connect(f"file:{alone}?immutable=1", uri=True)) as db:
            try:
                return {name for (name,) in db.execute("SELECT name FROM origin")}
            except sqlite3.DatabaseError:  # it was copied while it was written
                return set()

    deadline = time.monotonic() + PATIENCE_S
    while copied() != wanted and time.monotonic() < deadline:
        threading.Event().wait(0.02)
    assert copied() == wanted
    assert names(store) == wanted
    store.close()
    again = Store(path)
    assert names(again) == wanted
    again.close()


def test_a_file_of_the_release_before_is_taken_over_and_controls_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "web.sqlite"
    with closing(Store(path)) as store, store.transaction() as db:
        db.execute("INSERT INTO class VALUES ('k', 'a', NULL)")
        for topic in ("grove.controls", "grove.labels"):
            db.execute("INSERT INTO position VALUES (?, 0, 7)", (topic,))
    with closing(sqlite3.connect(path)) as db:
        db.executescript(
            f"{TO_6} DROP TABLE declared; ALTER TABLE class DROP COLUMN answered_ms;"
            "ALTER TABLE session DROP COLUMN proof; ALTER TABLE request DROP COLUMN reason;"
            "PRAGMA user_version = 3"
        )
    with closing(Store(path)) as store:
        queue = LabelQueue(store)
        assert queue.topics.positions("grove.labels") == {0: 7}
        assert queue.topics.positions("grove.controls") == {}
        with store.reading() as db:
            assert db.execute("SELECT * FROM class").fetchall() == [("k", "a", None)]
            assert db.execute("SELECT * FROM declared").fetchall() == []


def test_requests_of_a_file_of_format_4_stay_and_new_ones_have_their_reason(tmp_path: Path) -> None:
    path = tmp_path / "web.sqlite"
    with closing(Store(path)) as store:
        LabelQueue(store).topics.apply([replace(REQUEST, request_id="old")], [], {}, NOW)
    with closing(sqlite3.connect(path)) as db:
        db.executescript(f"{TO_6} ALTER TABLE request DROP COLUMN reason; PRAGMA user_version = 4")
    with closing(Store(path)) as store:
        queue = LabelQueue(store)
        new = replace(REQUEST, request_id="new", instance_id="new", reason="disagreement")
        queue.topics.apply([new], [], {}, NOW)
        cards = [queue.leases.next_card(person, NOW) for person in ("ann", "bob")]
        assert {card.instance_id: card.reason for card in cards if card} == {"i": None, "new": "disagreement"}


def test_the_days_of_a_file_of_format_7_are_those_of_single_people(tmp_path: Path) -> None:
    path = tmp_path / "web.sqlite"
    Store(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.executescript(f"{TO_7} PRAGMA user_version = 7;")
        for annotator in ("ann", "ann+bob"):
            db.execute(
                "INSERT INTO answer (kind, key, instance_id, partition, asked_ms, annotator, label, weight, "
                "answered_ms, due_ms, state) VALUES ('label', 'k', 'i', 0, 0, ?, 'a', 1.0, ?, 0, 'sent')",
                (annotator, NOW),
            )
        db.commit()
    with closing(Store(path)) as store, store.reading() as db:
        assert db.execute("SELECT annotator, labels, declined, given FROM day").fetchall() == [
            ("ann", 1, 0, 0)
        ]


@pytest.mark.parametrize("version", [3, 4, 5, 6, 7])
def test_a_file_of_each_older_format_gets_the_tables_of_the_present_one(tmp_path: Path, version: int) -> None:
    """The tables of format 6 are those that the present schema has without the later ones."""
    path = tmp_path / "web.sqlite"
    Store(path).close()
    with closing(sqlite3.connect(path)) as db:
        present = set(db.execute("SELECT type, name FROM sqlite_schema"))
        db.executescript(TO_7 if version == 7 else TO_6)
        if version < 6:
            db.executescript("DROP INDEX request_by_model; DROP INDEX answer_by_day;")
        if version < 5:
            db.executescript("ALTER TABLE request DROP COLUMN reason;")
        if version < 4:
            db.executescript(
                "DROP TABLE declared; ALTER TABLE class DROP COLUMN answered_ms;"
                "ALTER TABLE session DROP COLUMN proof;"
            )
        db.execute(f"PRAGMA user_version = {version}")
    Store(path).close()
    with closing(sqlite3.connect(path)) as db:
        assert set(db.execute("SELECT type, name FROM sqlite_schema")) == present
