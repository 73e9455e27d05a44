"""Label queue: order, leases, undo, what is refused and in which words; a store that is another's."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from streamapp.errors import StreamappError
from streamapp.web.audit_log import AuditLog
from streamapp.web.queue.cards import Attribute, Given, Label, Range, Refused, Request, Values
from streamapp.web.queue.closed_classes import ClassControl
from streamapp.web.queue.label_queue import LabelQueue
from streamapp.web.queue.outbox import Terms
from streamapp.web.store import Store
from streamapp.web.wording import features_table

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


def test_a_card_whose_lease_is_over_is_chosen_again_among_all(queue: LabelQueue) -> None:
    ask(queue, named("low", 0.1), named("lower", 0.05))
    card = queue.next_card("ann", NOW)
    ahead = queue.card_ahead("ann", NOW)
    assert card is not None
    assert ahead is not None
    assert (card.instance_id, ahead.instance_id) == ("low", "lower")
    ask(queue, named("high", 0.9))
    at_its_end = queue.next_card("ann", NOW + TERMS.lease_ms - 1)
    later = queue.next_card("ann", NOW + 3 * TERMS.lease_ms)
    assert at_its_end is not None
    assert later is not None
    assert (at_its_end.instance_id, later.instance_id) == ("low", "high"), "until then it is his"


def test_what_is_being_sent_stays_ours_though_somebody_else_labels_meanwhile(queue: LabelQueue) -> None:
    ask(queue, REQUEST)
    card = queue.next_card("ann", NOW)
    assert card is not None
    queue.answer("ann", card.number, "a", NOW)
    (going,) = queue.due(NOW + TERMS.undo_ms)
    queue.apply([], [Label("k", "i", "b", "oracle", NOW)], {}, NOW)
    counts = queue.counts(NOW)
    assert (counts.undoable, counts.sent, counts.overtaken) == (1, 0, 0), "the broker may have it"
    queue.not_sent([going])
    assert queue.in_doubt() == [going.number]
    queue.apply([], [Label("k", "i", "a", "ann", going.timestamp)], {}, NOW)
    counts = queue.counts(NOW)
    assert (counts.undoable, counts.sent, counts.overtaken) == (0, 1, 0)


@pytest.mark.parametrize("rounds", [40, pytest.param(1000, marks=pytest.mark.nightly)])
def test_a_thousand_leases_by_one_person_hold_up_nobody_else(rounds: int) -> None:
    store = Store(":memory:")
    queue = LabelQueue(store, replace(TERMS, open_max=10_000, sure_utility=1.0, lease_ms=10**9))
    ask(queue, *(named(f"i{n}", 0.5) for n in range(rounds)))
    for n in range(rounds):
        card = queue.next_card("greedy", NOW + n)
        queue.card_ahead("greedy", NOW + n)
        queue.sure("greedy", NOW + n, 20)
        if card is not None and n % 2:
            queue.skip("greedy", card.number, NOW + n)
    with store.reading() as db:
        (held,) = db.execute("SELECT count(*) FROM lease WHERE annotator = 'greedy'").fetchone()
    assert held <= 22, "a card, the next one, and a page of sure ones"
    others = [queue.next_card(f"p{n}", NOW + rounds) for n in range(rounds - 22)]
    assert None not in others
    assert len({card.number for card in others if card is not None}) == rounds - 22
    store.close()


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


CLOSED = ClassControl("k", "create", NOW - 9, has_schema=True, classes=("a", "b"))


def control(queue: LabelQueue, *controls: ClassControl) -> None:
    queue.apply([], [], {}, NOW, controls=controls)


def test_a_class_that_the_schema_shuts_out_is_refused_and_the_card_stays(queue: LabelQueue) -> None:
    ask(queue, REQUEST)
    control(queue, CLOSED)
    stray = Label("k", "z", "stray", "somebody else", NOW)  # which the worker puts aside
    queue.apply([], [stray], {}, NOW)
    card = queue.next_card("ann", NOW)
    assert card is not None
    assert card.classes == ("a", "b"), "there is no button for a class that the model would not learn"
    for label in ("stray", "new"):
        for new_class in (True, False):
            with pytest.raises(Refused, match=rf"'{label}' must be one of a, b: the schema of this model"):
                queue.answer("ann", card.number, label, NOW, new_class=new_class)
    assert queue.holds("ann", card.number)
    assert queue.counts(NOW).undoable == 0
    assert queue.due(NOW + 1_000) == []
    queue.answer("ann", card.number, "b", NOW, new_class=True)
    assert [each.label for each in queue.due(NOW + 1_000)] == ["b"]


def test_a_vote_and_a_confirmation_are_held_to_the_schema_too() -> None:
    store = Store(":memory:")
    queue = LabelQueue(store, replace(TERMS, agree=2, open_max=9))
    gone = replace(named("sure", 0.05), prediction="gone")  # the model knew that class before its reset
    ask(queue, REQUEST)
    control(queue, replace(CLOSED, at_ms=NOW + 1))
    card = queue.next_card("ann", NOW)
    ask(queue, gone)
    assert card is not None
    with pytest.raises(Refused, match="must be one of a, b"):
        queue.answer("ann", card.number, "new", NOW, new_class=True)
    (sure,) = queue.sure("bob", NOW, 9)
    assert queue.confirm("bob", [sure.number], [], NOW) == [
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
    card = queue.next_card("ann", NOW)
    assert card is not None
    if classes is None:
        queue.answer("ann", card.number, "new", NOW, new_class=True)
        return
    assert card.classes == classes
    with pytest.raises(Refused, match=f"must be one of {', '.join(classes)}:"):
        queue.answer("ann", card.number, "new", NOW, new_class=True)


def test_a_class_that_the_model_answers_later_shows_that_its_classes_are_open(queue: LabelQueue) -> None:
    control(queue, CLOSED)
    ask(queue, replace(REQUEST, shares={"a": 0.5, "mine": 0.5}))
    card = queue.next_card("ann", NOW)
    assert card is not None
    queue.answer("ann", card.number, "new", NOW, new_class=True)


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
        with store.transaction() as db:
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


# -- features ---------------------------------------------------------------------------------------------

WANTED = replace(REQUEST, request_id="q1", instance_id="loan", wanted=("age", "colour"), cost=2.0)


def given_by(name: str = "loan", **members: object) -> Values:
    return Values("k", name, Given(**members), NOW)  # type: ignore[arg-type]


def test_features_are_given_and_sent(queue: LabelQueue) -> None:
    ask(queue, WANTED)
    card = queue.next_card("ann", NOW)
    assert card is not None
    assert (card.wanted, card.cost) == (("age", "colour"), 2.0)
    with pytest.raises(Refused, match="asks for features"):
        queue.answer("ann", card.number, "a", NOW)
    with pytest.raises(Refused, match="colour is missing"):
        queue.give("ann", card.number, Given({"age": 4.0}), NOW)
    given = Given({"age": 4.0}, {"colour": "nobody looked"})
    queue.give("ann", card.number, given, NOW)
    (going,) = queue.due(NOW + 100)
    assert (going.given, going.instance_id) == (given, "loan")
    queue.sent([going], NOW + 100)
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
        (Given({"age": 1.0, "colour": "red", "size": 1.0}), "size is not asked for"),
        (Given({"age": 1.0}, {"colour": "x" * 2000}), "A reason must have"),
    ],
)
def test_values_that_no_worker_takes_are_refused(queue: LabelQueue, given: Given, said: str) -> None:
    declared = [Attribute("k", "age"), Attribute("k", "colour", "nominal", ("red", "blue"))]
    queue.apply([WANTED], [], {}, NOW, attributes=declared)
    card = queue.next_card("ann", NOW)
    assert card is not None
    with pytest.raises(Refused, match=said):
        queue.give("ann", card.number, given, NOW)
    assert queue.holds("ann", card.number)


@pytest.mark.parametrize("first", ["request", "values"])
def test_a_request_is_closed_when_nothing_is_left_to_be_given(queue: LabelQueue, first: str) -> None:
    values = [given_by(features={"age": 1.0}), given_by(unavailable={"colour": None})]
    if first == "request":
        ask(queue, WANTED)
        queue.apply([], [], {}, NOW, values=values[:1])
        card = queue.next_card("ann", NOW)
        assert card is not None
        assert card.wanted == ("colour",)
        queue.apply([], [], {}, NOW, values=values[1:])
    else:
        queue.apply([], [], {}, NOW, values=values)
        ask(queue, WANTED)
    assert queue.counts(NOW).open == 0


def test_the_next_question_about_an_instance_is_another_request(queue: LabelQueue) -> None:
    ask(queue, WANTED)
    card = queue.next_card("ann", NOW)
    assert card is not None
    queue.give("ann", card.number, Given({"age": 1.0, "colour": "red"}), NOW)
    flying = queue.due(NOW + 100)
    ask(queue, replace(WANTED, request_id="q2", wanted=("income",), asked_ms=NOW + 101))
    queue.sent(flying, NOW + 102)
    card = queue.next_card("ann", NOW + 103)
    assert card is not None
    assert card.wanted == ("income",)


def test_values_in_doubt_that_are_on_the_topic_were_sent(queue: LabelQueue) -> None:
    ask(queue, WANTED)
    card = queue.next_card("ann", NOW)
    assert card is not None
    queue.give("ann", card.number, Given(finish=True), NOW)
    queue.not_sent(queue.due(NOW + 100))
    queue.apply([], [], {}, NOW, values=[given_by(finish=True)])
    queue.caught_up(queue.in_doubt())
    assert (queue.counts(NOW).sent, queue.due(NOW + 200)) == (1, [])


# -- agreement --------------------------------------------------------------------------------------------


@pytest.fixture
def jury() -> Iterator[LabelQueue]:
    store = Store(":memory:")
    yield LabelQueue(store, replace(TERMS, agree=3, weighted=True))
    store.close()


def vote(jury: LabelQueue, **said: str | None) -> None:
    for who, label in said.items():
        card = jury.next_card(who, NOW)
        assert card is not None
        jury.answer(who, card.number, label, NOW, new_class=True)


def test_three_have_to_answer_and_most_of_them_win(jury: LabelQueue) -> None:
    ask(jury, REQUEST)
    vote(jury, ann="a", bob="b")
    assert ids(jury, "ann", "bob") == [None, None]
    assert jury.due(NOW + 100) == []
    vote(jury, cy="a")
    assert ids(jury, "dan") == [None]
    assert jury.due(NOW + 99) == [], "the last undo window is open"
    (going,) = jury.due(NOW + 100)
    assert (going.label, going.annotator, round(going.weight, 3)) == ("a", "ann+bob+cy", 0.667)


def test_a_tie_asks_one_more_and_is_declined_in_the_end(jury: LabelQueue) -> None:
    ask(jury, REQUEST)
    vote(jury, ann="a", bob="b", cy="c")
    for more, label in (("dan", "a"), ("eve", "b"), ("fay", "c")):
        if more == "eve":
            break
        assert jury.due(NOW + 100) == []
        vote(jury, **{more: label})
    assert [each.label for each in jury.due(NOW + 200)] == ["a"]
    ask(jury, named("tied"))
    vote(jury, ann="a", bob="b", cy="c")
    assert jury.due(NOW + 300) == []
    vote(jury, dan="d")
    assert jury.due(NOW + 400) == []
    vote(jury, eve="e")
    assert jury.due(NOW + 500) == []
    vote(jury, fay="f")
    assert [(each.label, each.weight) for each in jury.due(NOW + 600)] == [(None, 1.0)]


def test_a_vote_can_be_taken_back_and_is_given_once(jury: LabelQueue) -> None:
    ask(jury, REQUEST)
    card = jury.next_card("ann", NOW)
    assert card is not None
    jury.answer("ann", card.number, "a", NOW)
    with pytest.raises(Refused, match="ann has answered"):
        jury.answer("ann", card.number, "a", NOW)
    assert jury.undoable_ms("ann", NOW + 40) == 60
    assert jury.undo("ann", NOW + 50).number == card.number
    with pytest.raises(Refused, match="nothing to undo"):
        jury.undo("ann", NOW + 50)


# -- several at once ----------------------------------------------------------------------------------------


def test_sure_ones_are_of_one_model_and_one_class(queue: LabelQueue) -> None:
    ask(queue, named("sure", 0.01), named("also", 0.02), named("doubtful", 0.5))
    ask(queue, replace(named("other", 0.03), prediction="b"), named("silent"))
    assert [card.instance_id for card in queue.sure("ann", NOW, 10)] == ["sure", "also"]
    assert [card.instance_id for card in queue.sure("bob", NOW, 10)] == ["other"]
    assert ids(queue, "ann", "cy") == ["doubtful", "silent"]
    cards = queue.sure("ann", NOW, 10)
    assert queue.confirm("ann", [cards[0].number], [cards[1].number], NOW) == []
    assert [card.instance_id for card in queue.sure("cy", NOW, 10)] == ["also"]
    (refused,) = queue.confirm("bob", [cards[0].number], [], NOW)
    assert "ann has answered" in refused
    assert queue.undo("ann", NOW + 1).instance_id == "sure"


# -- audit --------------------------------------------------------------------------------------------------


def test_every_action_is_in_the_audit_log_once_and_refusals_are_not() -> None:
    store = Store(":memory:")
    queue, log = LabelQueue(store, TERMS), AuditLog(store)
    ask(queue, named("one", 0.9), named("two", 0.8), WANTED)
    for at, label in ((NOW, "a"), (NOW + 1, None)):
        card = queue.next_card("ann", NOW)
        assert card is not None
        queue.answer("ann", card.number, label, at)
        with pytest.raises(Refused):
            queue.answer("ann", card.number, label, at)
    queue.undo("ann", NOW)
    card = queue.next_card("bob", NOW)
    assert card is not None
    queue.skip("bob", card.number, NOW)
    queue.give("bob", card.number, Given(finish=True), NOW)
    found = log.waiting()
    assert [(each.user, each.action, each.instance_id, each.detail) for _, each in found][:4] == [
        ("ann", "label", "one", "a"),
        ("ann", "decline", "two", None),
        ("ann", "undo", "two", None),
        ("bob", "skip", "loan", None),
    ]
    assert found[-1][1].action == "features"
    assert len({each.id for _, each in found}) == len(found)
    log.sent([number for number, _ in found[:2]])
    assert log.waiting() == found[2:]
    store.close()


def test_a_card_says_of_what_its_ranges_are(queue: LabelQueue) -> None:
    seen = {"x": Range(-1.5, 1e300, 12_345), "other": Range(0.0, 0.0, 3)}
    ask(queue, named("silent", 0.5, asked_ms=NOW - 1), replace(named("talks", 0.9), seen=seen))
    talks, silent = (queue.next_card(who, NOW) for who in ("ann", "bob"))
    assert talks is not None
    assert talks.seen == seen
    table = features_table(talks, {})
    assert "from -1.5 to 1e+300 (12,345 records)" in table
    assert "<caption>Ranges are those of the records that the model had answered when it asked.<" in table
    assert silent is not None
    assert silent.seen == {}
    table = features_table(silent, {})
    assert "as in all 2 requests" in table
    assert "<caption>Ranges are those of the requests of this model up to now, not of all" in table


def test_the_card_that_comes_next_is_his_unless_somebody_has_none(queue: LabelQueue) -> None:
    ask(queue, named("first", 0.9), named("second", 0.8), named("third", 0.1))
    assert queue.card_ahead("ann", NOW) is None, "he has none before him"
    first = queue.next_card("ann", NOW)
    ahead = queue.card_ahead("ann", NOW)
    assert (first and first.instance_id, ahead and ahead.instance_id) == ("first", "second")
    assert queue.counts(NOW).leased == 1
    assert ids(queue, "bob", "cy") == ["third", "second"], "who has none gets what ann has for later"
    assert queue.card_ahead("ann", NOW) is None
    assert first is not None
    queue.skip("ann", first.number, NOW)
    assert ids(queue, "ann") == ["first"]


def test_an_action_brings_the_next_card_and_the_one_after_it(queue: LabelQueue) -> None:
    ask(queue, named("first", 0.9), named("second", 0.8), named("third", 0.1))
    card = queue.next_card("ann", NOW)
    assert card is not None
    turn = queue.act("ann", lambda: queue.answer("ann", card.number, "a", NOW), NOW)
    assert (turn.card and turn.card.instance_id, turn.ahead and turn.ahead.instance_id) == ("second", "third")
    assert (turn.refused, turn.undoable_ms) == ("", 100)
    again = queue.act("ann", lambda: queue.answer("ann", card.number, "a", NOW), NOW)
    assert again == turn._replace(refused="ann has answered this request already.")
    back = queue.act("ann", lambda: queue.undo("ann", NOW), NOW)
    assert (back.card and back.card.instance_id, back.ahead and back.ahead.instance_id) == ("first", "third")


def test_a_card_that_expired_while_it_was_to_come_does_not_come(queue: LabelQueue) -> None:
    ask(queue, named("first", 0.9), named("brief", 0.8, expires_ms=NOW + 50), named("third", 0.1))
    first = queue.next_card("ann", NOW)
    ahead = queue.card_ahead("ann", NOW)
    assert first is not None
    assert ahead is not None
    assert ahead.instance_id == "brief"
    turn = queue.act("ann", lambda: queue.answer("ann", first.number, None, NOW + 60), NOW + 60)
    assert turn.card is not None
    assert turn.card.instance_id == "third"


def test_sure_ones_may_be_what_was_to_come_for_him(queue: LabelQueue) -> None:
    sure = [replace(named(name, 0.05), prediction="a") for name in ("one", "two")]
    ask(queue, named("first", 0.9), *sure)
    assert ids(queue, "ann") == ["first"]
    assert queue.card_ahead("ann", NOW) is not None
    assert {card.instance_id for card in queue.sure("ann", NOW, 5)} == {"one", "two"}
    assert queue.card_ahead("ann", NOW) is None
