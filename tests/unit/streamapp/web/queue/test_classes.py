"""Classes of an answer: those that are known, and those to which a schema closes a model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streamapp.web.queue.cards import Label, Refused
from streamapp.web.queue.closed_classes import ClassControl
from streamapp.web.queue.label_queue import LabelQueue
from streamapp.web.store import Store
from tests.unit.streamapp.web.queue.requests import NOW, REQUEST, TERMS, ask, named


def test_a_class_that_nobody_knows_has_to_be_said_to_be_new(queue: LabelQueue) -> None:
    ask(queue, REQUEST)
    card = queue.leases.next_card("ann", NOW)
    assert card is not None
    assert card.classes == ("a",)
    with pytest.raises(Refused, match="This model has no class 'B'"):
        queue.actions.answer("ann", card.number, "B", NOW)
    for bad in ("", "x" * 1025, "a\nb"):
        with pytest.raises(Refused, match=r"1 to 1,024 bytes"):
            queue.actions.answer("ann", card.number, bad, NOW, new_class=True)
    queue.actions.answer("ann", card.number, "B", NOW, new_class=True)
    assert queue.actions.undo("ann", NOW).classes == ("B", "a")


def test_classes_come_from_labels_controls_and_predictions_of_the_same_key(queue: LabelQueue) -> None:
    label = Label("k", "z", "seen", None, NOW)
    queue.topics.apply([REQUEST], [label, replace(label, key="other", label="no")], {}, NOW, [("k", "named")])
    card = queue.leases.next_card("ann", NOW)
    assert card is not None
    assert card.classes == ("a", "named", "seen")


CLOSED = ClassControl("k", "create", NOW - 9, has_schema=True, classes=("a", "b"))


def control(queue: LabelQueue, *controls: ClassControl) -> None:
    queue.topics.apply([], [], {}, NOW, controls=controls)


def test_a_class_that_the_schema_shuts_out_is_refused_and_the_card_stays(queue: LabelQueue) -> None:
    ask(queue, REQUEST)
    control(queue, CLOSED)
    stray = Label("k", "z", "stray", "somebody else", NOW)  # which the worker puts aside
    queue.topics.apply([], [stray], {}, NOW)
    card = queue.leases.next_card("ann", NOW)
    assert card is not None
    assert card.classes == ("a", "b"), "there is no button for a class that the model would not learn"
    for label in ("stray", "new"):
        for new_class in (True, False):
            with pytest.raises(Refused, match=rf"'{label}' must be one of a, b: the schema of this model"):
                queue.actions.answer("ann", card.number, label, NOW, new_class=new_class)
    assert queue.leases.holds("ann", card.number)
    assert queue.counts(NOW).undoable == 0
    assert queue.outbox.due(NOW + 1_000) == []
    queue.actions.answer("ann", card.number, "b", NOW, new_class=True)
    assert [each.label for each in queue.outbox.due(NOW + 1_000)] == ["b"]


def test_a_vote_and_a_confirmation_are_held_to_the_schema_too() -> None:
    store = Store(":memory:")
    queue = LabelQueue(store, replace(TERMS, agree=2, open_max=9))
    gone = replace(named("sure", 0.05), prediction="gone")  # the model knew that class before its reset
    ask(queue, REQUEST)
    control(queue, replace(CLOSED, at_ms=NOW + 1))
    card = queue.leases.next_card("ann", NOW)
    ask(queue, gone)
    assert card is not None
    with pytest.raises(Refused, match="must be one of a, b"):
        queue.actions.answer("ann", card.number, "new", NOW, new_class=True)
    (sure,) = queue.leases.sure("bob", NOW, 9)
    assert queue.actions.confirm("bob", [sure.number], [], NOW) == [
        "'gone' must be one of a, b: the schema of this model closes its classes."
    ]
    store.close()


@pytest.mark.parametrize(
    ("later", "classes"),
    [
        ([replace(CLOSED, classes=None)], ("a", "b")),  # the worker refuses a second create
        ([ClassControl("k", "reset", NOW)], ("a", "b")),
        ([ClassControl("k", "reset", NOW, has_schema=True, classes=("a",))], ("a",)),
        ([ClassControl("k", "reset", NOW, has_schema=True)], None),
        ([ClassControl("k", "delete", NOW)], None),
        ([ClassControl("k", "delete", NOW), replace(CLOSED, classes=("c",), at_ms=NOW)], ("c",)),
        ([ClassControl("other", "delete", NOW)], ("a", "b")),
        ([ClassControl("k", "import", NOW, True, ("c",), True, "f", 1, 1)], ("c",)),
        ([ClassControl("k", "import", NOW, True, ("c",), False, "f", 1, 1)], ("a", "b")),
        ([ClassControl("k", "import", NOW, True, ("c",), True, "f", 1, 2)], ("a", "b")),
        (
            [ClassControl("k", "import", NOW, True, ("c",), True, "f", n, 3) for n in (1, 3)],
            ("a", "b"),
        ),
        (
            [ClassControl("k", "import", NOW, True, ("c",), True, "f", n, 3) for n in (1, 2, 3)],
            ("c",),
        ),
    ],
)
def test_controls_open_and_close_classes_in_their_order(
    queue: LabelQueue, later: list[ClassControl], classes: tuple[str, ...] | None
) -> None:
    ask(queue, REQUEST)
    control(queue, CLOSED)
    for each in later:
        control(queue, each)
    card = queue.leases.next_card("ann", NOW)
    assert card is not None
    if classes is None:
        queue.actions.answer("ann", card.number, "new", NOW, new_class=True)
        return
    assert card.classes == classes
    with pytest.raises(Refused, match=f"must be one of {', '.join(classes)}:"):
        queue.actions.answer("ann", card.number, "new", NOW, new_class=True)


def test_a_class_that_the_model_answers_later_shows_that_its_classes_are_open(queue: LabelQueue) -> None:
    control(queue, CLOSED)
    ask(queue, replace(REQUEST, shares={"a": 0.5, "mine": 0.5}))
    card = queue.leases.next_card("ann", NOW)
    assert card is not None
    queue.actions.answer("ann", card.number, "new", NOW, new_class=True)
