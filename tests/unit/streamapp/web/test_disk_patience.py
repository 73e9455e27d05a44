"""A disk without room: what has to be stored waits, the log says it once, and a stop ends the wait."""

import sqlite3
import threading
from pathlib import Path

import pytest

from streamapp.web import disk_patience
from streamapp.web.disk_patience import store_patiently
from streamapp.web.store import Store


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_patience, "DISK_S", 0.0)


class Room:
    """A file that may not grow at first."""

    def __init__(self, path: Path, attempts: int) -> None:
        """`attempts`: how many of them fail before there is room."""
        self.store, self.attempts = Store(path), attempts
        self.failed = 0

    def write(self) -> None:
        most = 1 if self.failed < self.attempts else 1 << 20
        with self.store.transaction() as db:
            db.execute(f"PRAGMA max_page_count = {most}")
            try:
                db.execute("INSERT INTO crowd VALUES ('k', ?)", ("x" * 100_000,))
            except sqlite3.OperationalError:
                self.failed += 1
                raise


def test_what_has_no_room_is_stored_when_there_is_some(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    room = Room(tmp_path / "web.sqlite", 3)
    with caplog.at_level("INFO"):
        assert store_patiently("the note that answers were sent", room.write, threading.Event())
    assert [record.message for record in caplog.records] == [
        "the note that answers were sent cannot be stored, it is tried again: database or disk is full",
        "records are stored again",
    ]
    with room.store.reading() as db:
        assert db.execute("SELECT count(*) FROM crowd").fetchone() == (1,)
    room.store.close()


def test_a_stop_ends_the_wait(tmp_path: Path) -> None:
    room, stop = Room(tmp_path / "web.sqlite", 1 << 20), threading.Event()
    stop.set()
    assert not store_patiently("the note that answers were sent", room.write, stop)
    room.store.close()


def test_damage_is_not_waited_for() -> None:
    def write() -> None:
        raise sqlite3.DatabaseError("database disk image is malformed")

    with pytest.raises(sqlite3.DatabaseError, match="malformed"):
        store_patiently("what is read", write, threading.Event())
