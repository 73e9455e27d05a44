"""Paused annotators: they get no card of any kind, their cards are free at once, and nobody else notices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from streamapp.cli.running.web_options import pause_rule_of
from streamapp.errors import UsageError
from streamapp.people.pauses import PauseRule
from streamapp.web.queue.cards import Given, Refused
from streamapp.web.queue.label_queue import LabelQueue
from streamapp.web.store import Store
from tests.unit.streamapp.web.queue.requests import NOW, TERMS, WANTED, ask, ids, named

WHY = "You get no cards for now: 3 of 20 gold questions right."


@pytest.fixture
def reasons() -> dict[str, str]:
    return {}


@pytest.fixture
def queue(reasons: dict[str, str]) -> Iterator[LabelQueue]:
    store = Store(":memory:")
    yield LabelQueue(store, replace(TERMS, open_max=10), lambda annotator: reasons.get(annotator, ""))
    store.close()


def test_a_paused_person_gets_no_card_and_their_cards_are_free(
    queue: LabelQueue, reasons: dict[str, str]
) -> None:
    ask(queue, named("one", 0.01), named("two", 0.02), WANTED)
    card = queue.leases.next_card("ann", NOW)
    assert card is not None
    assert queue.leases.card_ahead("ann", NOW) is not None
    reasons["ann"] = WHY
    assert not queue.leases.holds("ann", card.number)
    assert queue.leases.next_card("ann", NOW) is None
    assert queue.leases.card_ahead("ann", NOW) is None
    assert queue.leases.sure("ann", NOW, 20) == []
    assert ids(queue, "bob", "cy", "dan") == ["two", "one", "loan"], "their leases are over"
    del reasons["ann"]
    assert queue.leases.next_card("ann", NOW + 1_000) is not None


def test_a_paused_person_cannot_answer_the_card_on_display(
    queue: LabelQueue, reasons: dict[str, str]
) -> None:
    ask(queue, named("one", 0.01), replace(WANTED, wanted=("age",)))
    cards = {}
    for annotator in ("ann", "bob"):
        cards[annotator] = queue.leases.next_card(annotator, NOW)
    label, features = cards["ann"], cards["bob"]
    assert label is not None
    assert features is not None
    reasons.update(ann=WHY, bob=WHY)
    turn = queue.act("ann", lambda: queue.actions.answer("ann", label.number, "a", NOW), NOW)
    assert (turn.refused, turn.card, turn.ahead) == (WHY, None, None)
    with pytest.raises(Refused, match="no cards for now"):
        queue.actions.give("bob", features.number, Given({"age": 3.0}), NOW)
    assert queue.actions.confirm("ann", [label.number], [], NOW) == [WHY]
    assert queue.outbox.due(NOW + 1_000) == []


def test_an_answer_before_the_pause_can_be_taken_back_and_is_sent_otherwise(
    queue: LabelQueue, reasons: dict[str, str]
) -> None:
    ask(queue, named("one"), named("two"))
    for annotator in ("ann", "bob"):
        card = queue.leases.next_card(annotator, NOW)
        assert card is not None
        queue.actions.answer(annotator, card.number, "a", NOW)
        reasons[annotator] = WHY
    queue.actions.undo("ann", NOW + 1)
    assert queue.leases.next_card("ann", NOW + 1) is None
    assert [going.annotator for going in queue.outbox.due(NOW + 200)] == ["bob"]


def test_options_without_effect_are_refused() -> None:
    compared = replace(TERMS, gold_share=0.1)
    assert pause_rule_of(None, None, TERMS) is None
    assert pause_rule_of(0.7, None, compared) == PauseRule(0.7, 20)
    assert pause_rule_of(0.7, 5, compared) == PauseRule(0.7, 5)
    with pytest.raises(UsageError, match="--pause-after 5 needs --pause-below"):
        pause_rule_of(None, 5, compared)
    with pytest.raises(UsageError, match=r"--pause-below 0\.7 needs answers that can be compared"):
        pause_rule_of(0.7, None, TERMS)
