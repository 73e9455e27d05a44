"""Values of features that a model asks for: given, refused, complete, sent."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from streamapp.web.queue.cards import Attribute, Given, Refused, Values
from streamapp.web.queue.label_queue import LabelQueue
from tests.unit.streamapp.web.queue.requests import NOW, WANTED, ask


def given_by(name: str = "loan", **members: object) -> Values:
    return Values("k", name, Given(**members), NOW)  # type: ignore[arg-type]


def test_features_are_given_and_sent(queue: LabelQueue) -> None:
    ask(queue, WANTED)
    card = queue.leases.next_card("ann", NOW)
    assert card is not None
    assert (card.wanted, card.cost) == (("age", "colour"), 2.0)
    with pytest.raises(Refused, match="needs features"):
        queue.actions.answer("ann", card.number, "a", NOW)
    with pytest.raises(Refused, match="colour is missing"):
        queue.actions.give("ann", card.number, Given({"age": 4.0}), NOW)
    given = Given({"age": 4.0}, {"colour": "nobody looked"})
    queue.actions.give("ann", card.number, given, NOW)
    (going,) = queue.outbox.due(NOW + 100)
    assert (going.given, going.instance_id) == (given, "loan")
    queue.outbox.sent([going], NOW + 100)
    ask(queue, WANTED)
    assert queue.counts(NOW).open == 0, "it stands on the topic again, and is answered"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (Given({"age": "old", "colour": "red"}), "'old' is no number"),
        (Given({"age": math.inf, "colour": "red"}), "no finite number"),
        (Given({"age": 1.0, "colour": 3.0}), "this feature has texts"),
        (Given({"age": 1.0, "colour": "green"}), "'green' is none of red, blue"),
        (Given({"age": 1.0, "colour": ""}), "1 to 1,024 bytes"),
        (Given({"age": 1.0, "colour": "red", "size": 1.0}), "size is not requested"),
        (Given({"age": 1.0}, {"colour": "x" * 2000}), "A reason must have"),
    ],
)
def test_values_that_no_worker_takes_are_refused(queue: LabelQueue, given: Given, said: str) -> None:
    declared = [Attribute("k", "age"), Attribute("k", "colour", "nominal", ("red", "blue"))]
    queue.topics.apply([WANTED], [], {}, NOW, attributes=declared)
    card = queue.leases.next_card("ann", NOW)
    assert card is not None
    with pytest.raises(Refused, match=said):
        queue.actions.give("ann", card.number, given, NOW)
    assert queue.leases.holds("ann", card.number)


@pytest.mark.parametrize("first", ["request", "values"])
def test_a_request_is_closed_when_nothing_is_left_to_be_given(queue: LabelQueue, first: str) -> None:
    values = [given_by(features={"age": 1.0}), given_by(unavailable={"colour": None})]
    if first == "request":
        ask(queue, WANTED)
        queue.topics.apply([], [], {}, NOW, values=values[:1])
        card = queue.leases.next_card("ann", NOW)
        assert card is not None
        assert card.wanted == ("colour",)
        queue.topics.apply([], [], {}, NOW, values=values[1:])
    else:
        queue.topics.apply([], [], {}, NOW, values=values)
        ask(queue, WANTED)
    assert queue.counts(NOW).open == 0


def test_the_next_question_about_an_instance_is_another_request(queue: LabelQueue) -> None:
    ask(queue, WANTED)
    card = queue.leases.next_card("ann", NOW)
    assert card is not None
    queue.actions.give("ann", card.number, Given({"age": 1.0, "colour": "red"}), NOW)
    flying = queue.outbox.due(NOW + 100)
    ask(queue, replace(WANTED, request_id="q2", wanted=("income",), asked_ms=NOW + 101))
    queue.outbox.sent(flying, NOW + 102)
    card = queue.leases.next_card("ann", NOW + 103)
    assert card is not None
    assert card.wanted == ("income",)


def test_values_in_doubt_that_are_on_the_topic_were_sent(queue: LabelQueue) -> None:
    ask(queue, WANTED)
    card = queue.leases.next_card("ann", NOW)
    assert card is not None
    queue.actions.give("ann", card.number, Given(finish=True), NOW)
    queue.outbox.not_sent(queue.outbox.due(NOW + 100))
    queue.topics.apply([], [], {}, NOW, values=[given_by(finish=True)])
    queue.outbox.caught_up(queue.outbox.in_doubt())
    assert (queue.counts(NOW).sent, queue.outbox.due(NOW + 200)) == (1, [])
