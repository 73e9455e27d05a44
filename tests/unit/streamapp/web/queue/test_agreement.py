"""Agreement: several annotators answer one request, and their majority is its label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from streamapp.web.queue.cards import Refused
from streamapp.web.queue.label_queue import LabelQueue
from streamapp.web.store import Store
from tests.unit.streamapp.web.queue.requests import NOW, REQUEST, TERMS, ask, ids, named


@pytest.fixture
def jury() -> Iterator[LabelQueue]:
    store = Store(":memory:")
    yield LabelQueue(store, replace(TERMS, agree=3, weighted="share"))
    store.close()


def vote(jury: LabelQueue, **said: str | None) -> None:
    for who, label in said.items():
        card = jury.leases.next_card(who, NOW)
        assert card is not None
        jury.actions.answer(who, card.number, label, NOW, new_class=True)


def test_three_have_to_answer_and_most_of_them_win(jury: LabelQueue) -> None:
    ask(jury, REQUEST)
    vote(jury, ann="a", bob="b")
    assert ids(jury, "ann", "bob") == [None, None]
    assert jury.outbox.due(NOW + 100) == []
    vote(jury, cy="a")
    assert ids(jury, "dan") == [None]
    assert jury.outbox.due(NOW + 99) == [], "the last undo window is open"
    (going,) = jury.outbox.due(NOW + 100)
    assert (going.label, going.annotator, round(going.weight, 3)) == ("a", "ann+bob+cy", 0.667)


def test_a_tie_asks_one_more_and_is_declined_in_the_end(jury: LabelQueue) -> None:
    ask(jury, REQUEST)
    vote(jury, ann="a", bob="b", cy="c")
    for more, label in (("dan", "a"), ("eve", "b"), ("fay", "c")):
        if more == "eve":
            break
        assert jury.outbox.due(NOW + 100) == []
        vote(jury, **{more: label})
    assert [each.label for each in jury.outbox.due(NOW + 200)] == ["a"]
    ask(jury, named("tied"))
    vote(jury, ann="a", bob="b", cy="c")
    assert jury.outbox.due(NOW + 300) == []
    vote(jury, dan="d")
    assert jury.outbox.due(NOW + 400) == []
    vote(jury, eve="e")
    assert jury.outbox.due(NOW + 500) == []
    vote(jury, fay="f")
    assert [(each.label, each.weight) for each in jury.outbox.due(NOW + 600)] == [(None, 1.0)]


def test_a_vote_can_be_taken_back_and_is_given_once(jury: LabelQueue) -> None:
    ask(jury, REQUEST)
    card = jury.leases.next_card("ann", NOW)
    assert card is not None
    jury.actions.answer("ann", card.number, "a", NOW)
    with pytest.raises(Refused, match="ann has answered"):
        jury.actions.answer("ann", card.number, "a", NOW)
    assert jury.actions.undoable_ms("ann", NOW + 40) == 60
    assert jury.actions.undo("ann", NOW + 50).number == card.number
    with pytest.raises(Refused, match="nothing to undo"):
        jury.actions.undo("ann", NOW + 50)


def test_an_agreed_label_has_the_time_of_the_last_vote(jury: LabelQueue) -> None:
    ask(jury, REQUEST)
    for who, at in (("bob", NOW + 1), ("ann", NOW + 9), ("cy", NOW + 5)):
        card = jury.leases.next_card(who, at)
        assert card is not None
        jury.actions.answer(who, card.number, "a", at, new_class=True)
    (going,) = jury.outbox.due(NOW + 200)
    assert (going.annotator, going.timestamp) == ("ann+bob+cy", NOW + 9)
