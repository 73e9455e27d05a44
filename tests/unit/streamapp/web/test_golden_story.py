"""The store of a release in which annotators worked is read by this one, and work goes on."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from streamapp.web.queue.cards import Given
from streamapp.web.store import VERSION, Store
from streamapp.web.users import Sessions
from tests.golden import stores, web_story
from tests.golden.versions import ascending
from tests.golden.web_story import DAY, TOKEN, Office, rows_of, tell
from tests.unit.streamapp.web.queue.requests import NOW


@pytest.fixture(params=ascending(web_story.HERE.glob("web-story-*.sql")), ids=lambda path: path.stem)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    version = int(request.param.stem.rpartition("-")[2])
    path = tmp_path / "web.sqlite"
    stores.load(request.param, version, path)
    return path


@pytest.fixture
def office(database: Path) -> Iterator[Office]:
    with closing(Store(database)) as store:
        yield Office(store)


def test_the_story_of_now_has_rows_in_every_table_and_those_of_the_release(
    database: Path, tmp_path: Path
) -> None:
    """A table that this release adds must get rows from the story."""
    with closing(Store(tmp_path / "now.sqlite")) as store:
        tell(store)
    now = rows_of(tmp_path / "now.sqlite")
    assert [name for name, rows in now.items() if not rows] == []
    Store(database).close()  # brings it to the format of now
    assert rows_of(database) == now


def test_every_format_has_a_story() -> None:
    assert (web_story.HERE / f"web-story-{VERSION}.sql").exists()


def test_cards_votes_and_skips_go_on(office: Office) -> None:
    queue = office.queue
    counts = queue.counts(NOW + 1_000)
    card = queue.leases.next_card("eve", NOW + 1_000)
    assert card is not None
    assert card.instance_id == "half", "the card that she had"
    for annotator in ("eve", "cy"):
        office.take(annotator, "half", "b", NOW + 1_000)
    office.send(NOW + 1_200)
    assert queue.counts(NOW + 1_200).open == counts.open - 2, "this one, and the one in its undo window"
    with office.store.reading() as db:
        (votes,) = db.execute(
            "SELECT count(*) FROM vote "
            "WHERE request NOT IN (SELECT request FROM answer WHERE state = 'doubt')"
        ).fetchone()
        answers = db.execute("SELECT label, state FROM answer WHERE instance_id = 'half'").fetchall()
    assert (votes, answers) == (0, [("b", "sent")]), "the vote from before was counted, and is over"


def test_answers_under_way_are_in_doubt_and_votes_can_be_taken_back(office: Office) -> None:
    with office.store.reading() as db:
        states = dict(db.execute("SELECT instance_id, state FROM answer WHERE state != 'sent'"))
    assert states == {"on its way": "doubt"}
    assert office.queue.actions.undo("cy", NOW + 950).instance_id == "in its undo window"


def test_reviews_crowds_and_gold_questions_are_there(office: Office) -> None:
    (item,) = office.queue.reviews.open_items("oldest", 0, 9)
    assert (item.instance_id, item.votes) == ("disputed", {"ann": "a", "bob": "b", "cy": "a"})
    (reviewed,) = office.queue.reviews.reviewed_items(9)
    assert (reviewed.instance_id, reviewed.reviewer, reviewed.present) == ("corrected", "rev", "b")
    assert office.queue.reviews.decide("rev", item, "b", NOW + 1_000) == "corrected"
    assert office.queue.reviews.count_open() == 0


def test_features_are_given_and_a_session_stays(office: Office) -> None:
    queue = office.queue
    with office.store.reading() as db:
        (number,) = db.execute("SELECT number FROM request WHERE kind = 'features'").fetchone()
    while (card := queue.leases.next_card("fay", NOW + 1_000)) is not None and card.number != number:
        queue.actions.skip("fay", card.number, NOW + 1_000)
    queue.actions.give("fay", number, Given({"age": 4.0, "colour": "red"}), NOW + 1_000)
    assert [going.given for going in queue.outbox.due(NOW + 1_200) if going.given] == [
        Given({"age": 4.0, "colour": "red"})
    ]
    sessions = Sessions(office.store)
    assert (sessions.annotator(TOKEN, DAY - 1), sessions.proof(TOKEN)) == ("ann", "proof")
    assert sessions.annotator(TOKEN, DAY) is None


def test_the_audit_entries_of_the_release_can_be_sent(office: Office) -> None:
    waiting = office.log.waiting()
    assert {entry.action for _, entry in waiting} >= {"skip"}
    office.log.sent([number for number, _ in waiting])
    assert office.log.waiting() == []


def test_the_file_is_a_database_of_its_format(database: Path) -> None:
    with closing(sqlite3.connect(database)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
