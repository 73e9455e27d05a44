"""Label queue: order, leases, undo, what is refused and in which words; a store that is another's."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from streamapp.errors import StreamappError
from streamapp.web.cards import Label, Refused, Request
from streamapp.web.label_queue import LabelQueue, Terms
from streamapp.web.store import Store

NOW = 1_000_000
TERMS = Terms(lease_ms=300, undo_ms=100, open_max=3, jump_ms=10_000)
REQUEST = Request(0, "k", "r", "i", NOW, -1, math.nan, "a", "s", {"x": 1.0, "colour": "<b>"})


@pytest.fixture
def queue() -> Iterator[LabelQueue]:
    store = Store(":memory:")
    yield LabelQueue(store, TERMS)
    store.close()


def ask(queue: LabelQueue, *requests: Request) -> None:
    queue.apply(requests, [], {("requests", 0): len(requests)}, NOW)


def named(name: str, utility: float = math.nan, **members: int) -> Request:
    return replace(REQUEST, instance_id=name, request_id=name, utility=utility, **members)  # type: ignore[arg-type]


def ids(queue: LabelQueue, *people: str) -> list[str | None]:
    found = [queue.next_card(who, NOW) for who in people]
    return [None if card is None else card.instance_id for card in found]


def test_what_is_most_useful_comes_first_then_what_is_oldest(queue: LabelQueue) -> None:
    ask(queue, named("none"), named("late", 0.5, asked_ms=NOW + 1), named("early", 0.5), named("best", 0.9))
    assert ids(queue, *"abcde") == ["best", "early", "late", "none", None]


def test_a_card_stays_until_its_lease_is_over(queue: LabelQueue) -> None:
    ask(queue, REQUEST)
    assert ids(queue, "ann", "ann", "bob") == ["i", "i", None]
    card = queue.next_card("bob", NOW + 600)
    assert card is not None
    assert not queue.holds("ann", card.number)
    with pytest.raises(Refused, match="bob has it now"):
        queue.answer("ann", card.number, "a", NOW + 601)
    queue.answer("bob", card.number, "a", NOW + 602)
    with pytest.raises(Refused, match="bob has answered"):
        queue.answer("ann", card.number, "a", NOW + 603)


def test_whoever_is_late_may_still_answer_what_nobody_took(queue: LabelQueue) -> None:
    ask(queue, REQUEST)
    card = queue.next_card("ann", NOW)
    assert card is not None
    queue.answer("ann", card.number, "a", NOW + 10_000)
    assert queue.counts(NOW).undoable == 1


def test_what_was_skipped_comes_again_when_nothing_else_is_left(queue: LabelQueue) -> None:
    ask(queue, named("best", 0.9), named("other", 0.1))
    card = queue.next_card("ann", NOW)
    assert card is not None
    queue.skip("ann", card.number, NOW)
    assert ids(queue, "ann", "bob") == ["other", "best"]
    other = queue.next_card("ann", NOW)
    assert other is not None
    queue.answer("ann", other.number, None, NOW)
    queue.skip("bob", card.number, NOW)
    assert ids(queue, "ann") == ["best"]


def test_a_class_that_nobody_knows_has_to_be_said_to_be_new(queue: LabelQueue) -> None:
    ask(queue, REQUEST)
    card = queue.next_card("ann", NOW)
    assert card is not None
    assert card.classes == ("a",)
    with pytest.raises(Refused, match="Nobody knows a class 'B'"):
        queue.answer("ann", card.number, "B", NOW)
    for bad in ("", "x" * 1025, "a\nb"):
        with pytest.raises(Refused, match=r"1 to 1,024 bytes"):
            queue.answer("ann", card.number, bad, NOW, new_class=True)
    queue.answer("ann", card.number, "B", NOW, new_class=True)
    assert queue.undo("ann", NOW).classes == ("B", "a")


def test_classes_come_from_labels_controls_and_predictions_of_the_same_key(queue: LabelQueue) -> None:
    label = Label("k", "z", "seen", None, NOW)
    queue.apply([REQUEST], [label, replace(label, key="other", label="no")], {}, NOW, [("k", "named")])
    card = queue.next_card("ann", NOW)
    assert card is not None
    assert card.classes == ("a", "named", "seen")


def test_what_has_expired_is_neither_asked_nor_taken(queue: LabelQueue) -> None:
    ask(queue, replace(REQUEST, expires_ms=NOW + 50))
    card = queue.next_card("ann", NOW)
    assert card is not None
    with pytest.raises(Refused, match="has expired"):
        queue.answer("ann", card.number, "a", NOW + 51)
    assert queue.next_card("bob", NOW + 400) is None
    queue.tidy(NOW + 400)
    assert queue.counts(NOW).open == 0
    with pytest.raises(Refused, match="is closed"):
        queue.answer("ann", card.number, "a", NOW + 401)


def test_a_stream_of_the_past_expires_by_its_own_clock(queue: LabelQueue) -> None:
    ask(queue, named("old", asked_ms=1000, expires_ms=1050))
    queue.tidy(NOW)
    assert ids(queue, "ann") == ["old"]
    ask(queue, named("next", asked_ms=1051, expires_ms=2000))
    queue.tidy(NOW)
    assert ids(queue, "bob") == ["next"]
    assert queue.counts(NOW).open == 1


def test_an_answer_can_be_taken_back_until_it_is_sent(queue: LabelQueue) -> None:
    ask(queue, REQUEST)
    card = queue.next_card("ann", NOW)
    assert card is not None
    queue.answer("ann", card.number, "a", NOW)
    assert queue.undoable_ms("ann", NOW + 40) == 60
    assert queue.due(NOW + 99) == []
    assert queue.undo("ann", NOW + 99) == card
    queue.answer("ann", card.number, None, NOW + 99)
    with pytest.raises(Refused, match="nothing to undo"):
        queue.undo("bob", NOW + 100)
    (going,) = queue.due(NOW + 199)
    assert (going.label, going.annotator, going.timestamp) == (None, "ann", NOW + 99)
    with pytest.raises(Refused, match="nothing to undo"):
        queue.undo("ann", NOW + 199)


def test_a_label_is_not_older_than_its_request(queue: LabelQueue) -> None:
    ask(queue, named("ahead", asked_ms=NOW + 5000))
    card = queue.next_card("ann", NOW)
    assert card is not None
    queue.answer("ann", card.number, "a", NOW)
    assert queue.due(NOW + 100)[0].timestamp == NOW + 5000


def test_an_id_may_be_asked_again_long_after_its_label(queue: LabelQueue) -> None:
    queue.apply([], [Label("k", "i", "a", None, NOW)], {}, NOW)
    ask(queue, REQUEST)
    assert ids(queue, "ann") == [None]
    ask(queue, replace(REQUEST, asked_ms=NOW + 100_000))
    assert ids(queue, "ann") == ["i"]


def test_above_the_limit_the_least_useful_go(queue: LabelQueue) -> None:
    ask(queue, *(named(f"i{n}", n / 10) for n in range(5)), named("none"))
    queue.tidy(NOW)
    assert ids(queue, *"abcd") == ["i4", "i3", "i2", None]
    assert queue.counts(NOW).dropped == 3


def test_topics_made_anew_give_up_what_was_read(queue: LabelQueue) -> None:
    assert not queue.begin({"cluster": "c", "labels": "1"})
    ask(queue, REQUEST)
    assert not queue.begin({"cluster": "c", "labels": "1"})
    assert queue.positions("requests") == {0: 1}
    assert queue.begin({"cluster": "c", "labels": "2"})
    assert queue.positions("requests") == {}
    assert ids(queue, "ann") == [None]


def test_a_store_has_one_process(tmp_path: Path) -> None:
    first = Store(tmp_path / "web.sqlite")
    with pytest.raises(StreamappError, match="another 'grove web' has it"):
        Store(tmp_path / "web.sqlite")
    first.close()
    Store(tmp_path / "web.sqlite").close()
    assert (tmp_path / "web.sqlite").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("content", [b"no database " * 100, None])
def test_a_file_that_is_no_store_is_told(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "web.sqlite"
    if content is None:
        store = Store(path)
        with store.reading() as db:
            db.execute("PRAGMA user_version = 7")
        store.close()
    else:
        path.write_bytes(content)
    with pytest.raises(StreamappError, match="name another file"):
        Store(path)


@pytest.mark.parametrize(("annotator", "state"), [("ann", "sent"), ("oracle", "overtaken")])
def test_a_label_that_is_read_before_the_client_fails_is_not_sent_again(
    queue: LabelQueue, annotator: str, state: str
) -> None:
    ask(queue, REQUEST)
    card = queue.next_card("ann", NOW)
    assert card is not None
    queue.answer("ann", card.number, "a", NOW)
    going = queue.due(NOW + 100)
    queue.apply([], [Label("k", "i", "a", annotator, NOW)], {}, NOW + 100)
    queue.not_sent(going)
    queue.caught_up(queue.in_doubt())
    assert queue.due(NOW + 200) == []
    assert getattr(queue.counts(NOW), state) == 1
    assert queue.counts(NOW).open == 0


@pytest.mark.parametrize("arrived", [True, False])
def test_what_a_dead_process_was_sending_is_looked_for_before_it_is_sent(arrived: bool) -> None:
    store = Store(":memory:")
    queue = LabelQueue(store, TERMS)
    ask(queue, REQUEST)
    card = queue.next_card("ann", NOW)
    assert card is not None
    queue.answer("ann", card.number, "a", NOW)
    (going,) = queue.due(NOW + 100)
    queue = LabelQueue(store, TERMS)
    assert queue.due(NOW + 200) == []
    doubts = queue.in_doubt()
    if arrived:
        queue.apply([], [Label("k", "i", "a", "ann", going.timestamp)], {}, NOW + 200)
    queue.caught_up(doubts)
    assert queue.due(NOW + 200) == ([] if arrived else [going])
    assert queue.counts(NOW).sent == int(arrived)
    store.close()
