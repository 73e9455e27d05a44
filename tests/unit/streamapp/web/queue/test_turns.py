"""Turns: which request comes next to whom, for how long, and what comes after it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streamapp.web.queue.cards import Range, Refused
from streamapp.web.queue.label_queue import LabelQueue
from streamapp.web.store import Store
from streamapp.web.wording import features_table
from tests.unit.streamapp.web.queue.requests import NOW, REQUEST, TERMS, ask, ids, named


def test_what_is_most_useful_comes_first_then_what_is_oldest(queue: LabelQueue) -> None:
    ask(queue, named("none"), named("late", 0.5, asked_ms=NOW + 1), named("early", 0.5), named("best", 0.9))
    assert ids(queue, *"abcde") == ["best", "early", "late", "none", None]


def test_a_card_stays_until_its_lease_is_over(queue: LabelQueue) -> None:
    ask(queue, REQUEST)
    assert ids(queue, "ann", "ann", "bob") == ["i", "i", None]
    card = queue.leases.next_card("bob", NOW + 600)
    assert card is not None
    assert not queue.leases.holds("ann", card.number)
    with pytest.raises(Refused, match="bob has it now"):
        queue.actions.answer("ann", card.number, "a", NOW + 601)
    queue.actions.answer("bob", card.number, "a", NOW + 602)
    with pytest.raises(Refused, match="bob has answered"):
        queue.actions.answer("ann", card.number, "a", NOW + 603)


def test_a_card_whose_lease_is_over_is_chosen_again_among_all(queue: LabelQueue) -> None:
    ask(queue, named("low", 0.1), named("lower", 0.05))
    card = queue.leases.next_card("ann", NOW)
    ahead = queue.leases.card_ahead("ann", NOW)
    assert card is not None
    assert ahead is not None
    assert (card.instance_id, ahead.instance_id) == ("low", "lower")
    ask(queue, named("high", 0.9))
    at_its_end = queue.leases.next_card("ann", NOW + TERMS.lease_ms - 1)
    later = queue.leases.next_card("ann", NOW + 3 * TERMS.lease_ms)
    assert at_its_end is not None
    assert later is not None
    assert (at_its_end.instance_id, later.instance_id) == ("low", "high"), "until then it is his"


@pytest.mark.parametrize("rounds", [40, pytest.param(1000, marks=pytest.mark.nightly)])
def test_a_thousand_leases_by_one_person_hold_up_nobody_else(rounds: int) -> None:
    store = Store(":memory:")
    queue = LabelQueue(store, replace(TERMS, open_max=10_000, sure_utility=1.0, lease_ms=10**9))
    ask(queue, *(named(f"i{n}", 0.5) for n in range(rounds)))
    for n in range(rounds):
        card = queue.leases.next_card("greedy", NOW + n)
        queue.leases.card_ahead("greedy", NOW + n)
        queue.leases.sure("greedy", NOW + n, 20)
        if card is not None and n % 2:
            queue.actions.skip("greedy", card.number, NOW + n)
    with store.reading() as db:
        (held,) = db.execute("SELECT count(*) FROM lease WHERE annotator = 'greedy'").fetchone()
    assert held <= 22, "a card, the next one, and a page of sure ones"
    others = [queue.leases.next_card(f"p{n}", NOW + rounds) for n in range(rounds - 22)]
    assert None not in others
    assert len({card.number for card in others if card is not None}) == rounds - 22
    store.close()


def test_whoever_is_late_may_still_answer_what_nobody_took(queue: LabelQueue) -> None:
    ask(queue, REQUEST)
    card = queue.leases.next_card("ann", NOW)
    assert card is not None
    queue.actions.answer("ann", card.number, "a", NOW + 10_000)
    assert queue.counts(NOW).undoable == 1


def test_what_was_skipped_comes_again_when_nothing_else_is_left(queue: LabelQueue) -> None:
    ask(queue, named("best", 0.9), named("other", 0.1))
    card = queue.leases.next_card("ann", NOW)
    assert card is not None
    queue.actions.skip("ann", card.number, NOW)
    assert ids(queue, "ann", "bob") == ["other", "best"]
    other = queue.leases.next_card("ann", NOW)
    assert other is not None
    queue.actions.answer("ann", other.number, None, NOW)
    queue.actions.skip("bob", card.number, NOW)
    assert ids(queue, "ann") == ["best"]


def test_the_card_that_comes_next_is_his_unless_somebody_has_none(queue: LabelQueue) -> None:
    ask(queue, named("first", 0.9), named("second", 0.8), named("third", 0.1))
    assert queue.leases.card_ahead("ann", NOW) is None, "he has none before him"
    first = queue.leases.next_card("ann", NOW)
    ahead = queue.leases.card_ahead("ann", NOW)
    assert (first and first.instance_id, ahead and ahead.instance_id) == ("first", "second")
    assert queue.counts(NOW).leased == 1
    assert ids(queue, "bob", "cy") == ["third", "second"], "who has none gets what ann has for later"
    assert queue.leases.card_ahead("ann", NOW) is None
    assert first is not None
    queue.actions.skip("ann", first.number, NOW)
    assert ids(queue, "ann") == ["first"]


def test_an_action_brings_the_next_card_and_the_one_after_it(queue: LabelQueue) -> None:
    ask(queue, named("first", 0.9), named("second", 0.8), named("third", 0.1))
    card = queue.leases.next_card("ann", NOW)
    assert card is not None
    turn = queue.act("ann", lambda: queue.actions.answer("ann", card.number, "a", NOW), NOW)
    assert (turn.card and turn.card.instance_id, turn.ahead and turn.ahead.instance_id) == ("second", "third")
    assert (turn.refused, turn.undoable_ms) == ("", 100)
    again = queue.act("ann", lambda: queue.actions.answer("ann", card.number, "a", NOW), NOW)
    assert again == turn._replace(refused="ann has answered this request already.")
    back = queue.act("ann", lambda: queue.actions.undo("ann", NOW), NOW)
    assert (back.card and back.card.instance_id, back.ahead and back.ahead.instance_id) == ("first", "third")


def test_a_card_that_expired_while_it_was_to_come_does_not_come(queue: LabelQueue) -> None:
    ask(queue, named("first", 0.9), named("brief", 0.8, expires_ms=NOW + 50), named("third", 0.1))
    first = queue.leases.next_card("ann", NOW)
    ahead = queue.leases.card_ahead("ann", NOW)
    assert first is not None
    assert ahead is not None
    assert ahead.instance_id == "brief"
    turn = queue.act("ann", lambda: queue.actions.answer("ann", first.number, None, NOW + 60), NOW + 60)
    assert turn.card is not None
    assert turn.card.instance_id == "third"


def test_sure_ones_may_be_what_was_to_come_for_him(queue: LabelQueue) -> None:
    sure = [replace(named(name, 0.05), prediction="a") for name in ("one", "two")]
    ask(queue, named("first", 0.9), *sure)
    assert ids(queue, "ann") == ["first"]
    assert queue.leases.card_ahead("ann", NOW) is not None
    assert {card.instance_id for card in queue.leases.sure("ann", NOW, 5)} == {"one", "two"}
    assert queue.leases.card_ahead("ann", NOW) is None


def test_sure_ones_are_of_one_model_and_one_class(queue: LabelQueue) -> None:
    ask(queue, named("sure", 0.01), named("also", 0.02), named("doubtful", 0.5))
    ask(queue, replace(named("other", 0.03), prediction="b"), named("silent"))
    assert [card.instance_id for card in queue.leases.sure("ann", NOW, 10)] == ["sure", "also"]
    assert [card.instance_id for card in queue.leases.sure("bob", NOW, 10)] == ["other"]
    assert ids(queue, "ann", "cy") == ["doubtful", "silent"]
    cards = queue.leases.sure("ann", NOW, 10)
    assert queue.actions.confirm("ann", [cards[0].number], [cards[1].number], NOW) == []
    assert [card.instance_id for card in queue.leases.sure("cy", NOW, 10)] == ["also"]
    (refused,) = queue.actions.confirm("bob", [cards[0].number], [], NOW)
    assert "ann has answered" in refused
    assert queue.actions.undo("ann", NOW + 1).instance_id == "sure"


def test_above_the_limit_the_least_useful_go(queue: LabelQueue) -> None:
    ask(queue, *(named(f"i{n}", n / 10) for n in range(5)), named("none"))
    queue.topics.tidy(NOW)
    assert ids(queue, *"abcd") == ["i4", "i3", "i2", None]
    assert queue.counts(NOW).dropped == 3


def test_the_range_of_a_feature_is_that_of_all_requests_of_its_model(queue: LabelQueue) -> None:
    numbers = (2.0, -1.0, 7.5, 3.0)
    requests = [
        replace(named(f"i{n}", 0.5), features={"x": x, "text": "a"}) for n, x in enumerate(numbers[:3])
    ]
    other = replace(named("other", 0.1), key="other", features={"x": 99.0})
    ask(queue, *requests[:2], other)
    ask(queue, requests[2], replace(requests[0], features={"x": numbers[3]}))
    card = queue.leases.next_card("ann", NOW)
    assert card is not None
    assert card.ranges == {"x": Range(-1.0, 7.5, 4)}


def test_a_card_says_of_what_its_ranges_are(queue: LabelQueue) -> None:
    seen = {"x": Range(-1.5, 1e300, 12_345), "other": Range(0.0, 0.0, 3)}
    ask(queue, named("silent", 0.5, asked_ms=NOW - 1), replace(named("talks", 0.9), seen=seen))
    talks, silent = (queue.leases.next_card(who, NOW) for who in ("ann", "bob"))
    assert talks is not None
    assert talks.seen == seen
    table = features_table(talks, {})
    assert "between -1.5 and 1e+300 (12,345 records)" in table
    assert '<circle cx="6.0"' in table, "the value is near the lowest one"
    assert "<caption>Ranges are from the 12,345 records that the model had answered before its" in table
    assert silent is not None
    assert silent.seen == {}
    table = features_table(silent, {})
    assert "the same in all 2 requests" in table
    assert "<caption>Ranges are from the requests of this model up to now, not from all" in table


def test_cards_are_of_the_named_models_alone() -> None:
    store = Store(":memory:")
    queue = LabelQueue(store, replace(TERMS, models=("shop <1>", "k2")))
    others = replace(named("i1", 0.9), key="k"), replace(named("sure", 0.0), key="k")
    ask(queue, *others, replace(named("i2", 0.5), key="shop <1>"))
    assert ids(queue, "ann", "bob") == ["i2", None]
    assert queue.leases.sure("bob", NOW, 5) == []
    store.close()
