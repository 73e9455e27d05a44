"""The queue of label requests: whatever comes between, nothing is asked, answered or sent twice, or lost."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from streamapp.web.annotation_terms import Terms
from streamapp.web.queue.cards import Given, Label, Outgoing, Refused, Request, Values
from streamapp.web.queue.label_queue import LabelQueue
from streamapp.web.store import Store
from tests.tiers import examples

REQUESTS, LABELS = "requests", "labels"
IDS = st.integers(0, 3)
PEOPLE = st.sampled_from(["ann", "bob"])
TERMS = Terms(lease_ms=300, undo_ms=100)
BEGIN = 1_000_000


class Queue(RuleBasedStateMachine):
    """Two annotators, somebody else who labels too, a writer and a reader that may stop anywhere."""

    def __init__(self) -> None:
        super().__init__()
        self.store = Store(":memory:")  # outlives the processes, as a file does
        self.now = BEGIN
        self.log: dict[str, list[Request | Label]] = {REQUESTS: [], LABELS: []}  # what the broker has
        self.labels_of_ours: Counter[str] = Counter()
        self.said: dict[str, str | None] = {}  # what was answered last and not undone
        self.flying: list[Outgoing] = []  # given to the client, not confirmed
        self.open()

    def open(self) -> None:
        self.queue = LabelQueue(self.store, TERMS)
        self.flying = []

    def teardown(self) -> None:
        try:
            self.everything_is_answered_in_the_end()
        finally:
            self.store.close()

    @initialize()
    def something_is_asked(self) -> None:
        for number in range(3):
            self.a_model_asks(number, 0.5)
        self.read(REQUESTS, 2)

    # -- the world

    @rule(seconds=st.sampled_from([1, 60, 101, 301]))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds

    @rule(number=IDS, utility=st.sampled_from([math.nan, 0.1, 0.9]))
    def a_model_asks(self, number: int, utility: float) -> None:
        """The same request may stand on the topic several times: a worker sends at least once."""
        name = f"i{number}"
        request = Request(0, "k", f"r{number}", name, BEGIN, -1, utility, "a", "s", {"x": 1.0})
        self.log[REQUESTS].append(request)

    @rule(number=IDS)
    def somebody_else_labels(self, number: int) -> None:
        self.log[LABELS].append(Label("k", f"i{number}", "b", "oracle", self.now))

    # -- the process

    def read(self, topic: str, most: int) -> int:
        begin = self.queue.topics.positions(topic).get(0, 0)
        found = self.log[topic][begin : begin + most]
        if found:
            requests = [each for each in found if isinstance(each, Request)]
            labels = [each for each in found if isinstance(each, Label)]
            self.queue.topics.apply(requests, labels, {(topic, 0): begin + len(found)}, self.now)
        return len(found)

    @rule(topic=st.sampled_from([REQUESTS, LABELS]), most=st.integers(1, 3))
    def the_reader_reads(self, topic: str, most: int) -> None:
        self.read(topic, most)

    @rule()
    def the_reader_catches_up(self) -> None:
        doubts = self.queue.outbox.in_doubt()
        while self.read(LABELS, 10):
            pass
        self.queue.outbox.caught_up(doubts)

    @precondition(lambda self: not self.flying)
    @rule(later=st.sampled_from([0, TERMS.undo_ms]), arrives=st.booleans(), confirmed=st.booleans())
    def the_writer_sends(self, later: int, arrives: bool, confirmed: bool) -> None:
        self.now += later
        self.flying = self.queue.outbox.due(self.now)
        if arrives or confirmed:
            for each in self.flying:
                self.log[LABELS].append(
                    Label(each.key, each.instance_id, each.label, each.annotator, each.timestamp)
                )
                self.labels_of_ours[each.instance_id] += 1
                assert each.label == self.said[each.instance_id], "what was undone is not sent"
        if confirmed:
            self.queue.outbox.sent(self.flying, self.now)
            self.flying = []

    @precondition(lambda self: self.flying)
    @rule()
    def the_client_fails(self) -> None:
        self.queue.outbox.not_sent(self.flying)
        self.flying = []

    @rule()
    def the_process_dies_and_another_begins(self) -> None:
        self.open()

    # -- the people

    @rule(who=PEOPLE, label=st.sampled_from(["a", "b", None]), late=st.sampled_from([0, 301]))
    def answers(self, who: str, label: str | None, late: int) -> None:
        card = self.queue.leases.next_card(who, self.now)
        if card is None:
            return
        self.now += late
        known = label is None or label in card.classes
        try:
            self.queue.actions.answer(who, card.number, label, self.now)
        except Refused:
            assert not known
            return
        self.said[card.instance_id] = label
        for other in ("ann", "bob"):  # whoever comes late with the same card is told so
            try:
                self.queue.actions.answer(other, card.number, "a", self.now)
            except Refused:
                continue
            raise AssertionError(other)

    @rule(who=PEOPLE)
    def looks_ahead(self, who: str) -> None:
        card = self.queue.leases.next_card(who, self.now)
        ahead = self.queue.leases.card_ahead(who, self.now)
        assert ahead is None or (card is not None and ahead.number != card.number)
        if ahead is not None:
            assert self.queue.leases.card_ahead(who, self.now) == ahead
            self.queue.actions.skip(who, card.number, self.now)  # type: ignore[union-attr]
            assert self.queue.leases.next_card(who, self.now) == ahead

    @rule(who=PEOPLE)
    def skips(self, who: str) -> None:
        card = self.queue.leases.next_card(who, self.now)
        if card is not None:
            self.queue.actions.skip(who, card.number, self.now)
            assert not self.queue.leases.holds(who, card.number)

    @rule(who=PEOPLE)
    def undoes(self, who: str) -> None:
        left = self.queue.actions.undoable_ms(who, self.now)
        try:
            card = self.queue.actions.undo(who, self.now)
        except Refused:
            assert left == 0
            return
        assert left > 0
        assert self.queue.leases.holds(who, card.number)
        del self.said[card.instance_id]

    @rule()
    def tidies(self) -> None:
        self.queue.topics.tidy(self.now)

    # -- what always holds

    @invariant()
    def no_two_have_the_same_card(self) -> None:
        ann, bob = self.queue.leases.next_card("ann", self.now), self.queue.leases.next_card("bob", self.now)
        assert ann is None or bob is None or ann.instance_id != bob.instance_id

    @invariant()
    def nothing_is_asked_of_which_the_label_is_read(self) -> None:
        read = self.queue.topics.positions(LABELS).get(0, 0)
        settled = {each.instance_id for each in self.log[LABELS][:read]}
        for who in ("ann", "bob"):
            card = self.queue.leases.next_card(who, self.now)
            assert card is None or card.instance_id not in settled

    @invariant()
    def nothing_is_sent_twice(self) -> None:
        assert max(self.labels_of_ours.values(), default=0) <= 1

    def everything_is_answered_in_the_end(self) -> None:
        if self.flying:
            self.queue.outbox.not_sent(self.flying)
        while self.read(REQUESTS, 10):
            pass
        self.the_reader_catches_up()
        self.now += TERMS.lease_ms + TERMS.undo_ms + 1
        while (card := self.queue.leases.next_card("ann", self.now)) is not None:
            self.queue.actions.answer("ann", card.number, None, self.now)
            self.said[card.instance_id] = None
        self.now += TERMS.undo_ms
        self.flying = []
        self.the_writer_sends(0, True, True)
        labelled = {each.instance_id for each in self.log[LABELS]}
        assert {each.instance_id for each in self.log[REQUESTS]} <= labelled
        self.nothing_is_sent_twice()
        counts = self.queue.counts(self.now)
        assert (counts.open, counts.undoable) == (0, 0)


TestQueue = Queue.TestCase
TestQueue.settings = settings(max_examples=examples(150), stateful_step_count=40, deadline=None)


# -- several annotators for a label, several labels at once, and features --------------------------------

JURY = ("ann", "bob", "cy", "dan")
JURORS = st.sampled_from(JURY)
AGREED = Terms(lease_ms=300, undo_ms=100, agree=2, sure_utility=0.3)
WANTED = ("x", "y")


class Said(NamedTuple):
    """What somebody said and has not taken back."""

    who: str
    subject: str  # an instance that is labelled, or a request for features
    label: str | None
    at: int


class Jury(RuleBasedStateMachine):
    """Four annotators of whom two have to agree, and requests for features, which one answers."""

    def __init__(self) -> None:
        super().__init__()
        self.store = Store(":memory:")
        self.now = BEGIN
        self.asked: set[str] = set()
        self.said: list[Said] = []
        self.sent: dict[str, Outgoing] = {}
        self.answers: list[Outgoing] = []  # in the order of the topics
        self.read = 0
        self.flying: list[Outgoing] = []
        self.queue = LabelQueue(self.store, AGREED)

    def teardown(self) -> None:
        try:
            self.everything_is_answered_in_the_end()
        finally:
            self.store.close()

    @initialize()
    def something_is_asked(self) -> None:
        for number in range(3):
            self.a_model_asks(number, wants_features=False)
        self.a_model_asks(0, wants_features=True)

    # -- the world

    @rule(seconds=st.sampled_from([1, 60, 101, 301]))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds

    @rule(number=IDS, wants_features=st.booleans())
    def a_model_asks(self, number: int, wants_features: bool) -> None:
        name = f"{'q' if wants_features else 'i'}{number}"
        asked = Request(0, "k", name, name, BEGIN, -1, number / 10, "a", "s", {"z": 1.0})
        if wants_features:
            asked = replace(asked, wanted=WANTED, prediction=None)
        self.asked.add(name)
        self.queue.topics.apply([asked], [], {}, self.now, [("k", "b")])

    # -- the process

    @precondition(lambda self: not self.flying)
    @rule(later=st.sampled_from([0, AGREED.undo_ms]), fate=st.sampled_from(["confirmed", "arrived", "lost"]))
    def the_writer_sends(self, later: int, fate: str) -> None:
        self.now += later
        self.flying = self.queue.outbox.due(self.now)
        for each in self.flying:
            self.is_what_was_said(each)
            if fate != "lost":
                assert each.instance_id not in self.sent, "nothing is sent twice"
                self.sent[each.instance_id] = each
                self.answers.append(each)
        if fate == "confirmed":
            self.queue.outbox.sent(self.flying, self.now)
            self.flying = []

    def is_what_was_said(self, going: Outgoing) -> None:
        said = [each for each in self.said if each.subject == going.instance_id]
        assert all(each.at + AGREED.undo_ms <= self.now for each in said if each.who in going.annotator)
        if going.given is not None:
            (one,) = said
            assert (one.who, set(WANTED)) == (going.annotator, set(going.given.features))
            return
        over = sorted(each for each in said if each.at + AGREED.undo_ms <= self.now)
        votes = {each.who: each.label for each in over}
        assert len(votes) == len(over) >= AGREED.agree, "nobody votes twice"
        if going.annotator == "+".join(sorted(votes)):
            counts = Counter(votes.values())
            most = [label for label, n in counts.items() if n == max(counts.values())]
            assert going.label == (most[0] if len(most) == 1 else None)
            assert len(most) == 1 or len(votes) == 2 * AGREED.agree, "a tie asks one more"

    @precondition(lambda self: self.flying)
    @rule(dies=st.booleans())
    def the_client_or_the_process_fails(self, dies: bool) -> None:
        if dies:
            self.queue = LabelQueue(self.store, AGREED)
        else:
            self.queue.outbox.not_sent(self.flying)
        self.flying = []

    @rule()
    def the_reader_catches_up(self) -> None:
        doubts = self.queue.outbox.in_doubt()
        for each in self.answers[self.read :]:
            about = (each.key, each.instance_id)
            if each.given is None:
                label = Label(*about, each.label, each.annotator, each.timestamp)
                self.queue.topics.apply([], [label], {}, self.now)
            else:
                self.queue.topics.apply(
                    [], [], {}, self.now, values=[Values(*about, each.given, each.timestamp)]
                )
        self.read = len(self.answers)
        self.queue.outbox.caught_up(doubts)

    # -- the people

    @rule(who=JURORS, label=st.sampled_from(["a", "b", None]), late=st.sampled_from([0, 301]))
    def answers_a_card(self, who: str, label: str | None, late: int) -> None:
        card = self.queue.leases.next_card(who, self.now)
        if card is None:
            return
        self.now += late
        if card.wanted:
            given = Given(dict.fromkeys(card.wanted, 1.0))
            self.queue.actions.give(who, card.number, given, self.now)
        else:
            self.queue.actions.answer(who, card.number, label, self.now)
        self.said.append(Said(who, card.instance_id, None if card.wanted else label, self.now))
        with pytest.raises(Refused):
            self.queue.actions.answer(who, card.number, label, self.now)

    @rule(who=JURORS, most=st.integers(1, 3), right=st.integers(0, 3))
    def confirms_sure_ones(self, who: str, most: int, right: int) -> None:
        cards = self.queue.leases.sure(who, self.now, most)
        assert len(cards) <= most
        assert {card.prediction for card in cards} <= {"a"}
        numbers = [card.number for card in cards]
        assert self.queue.actions.confirm(who, numbers[:right], numbers[right:], self.now) == []
        self.said += [Said(who, card.instance_id, "a", self.now) for card in cards[:right]]

    @rule(who=JURORS)
    def looks_ahead(self, who: str) -> None:
        card = self.queue.leases.next_card(who, self.now)
        ahead = self.queue.leases.card_ahead(who, self.now)
        assert ahead is None or (card is not None and ahead.number != card.number)
        if ahead is not None:
            assert self.queue.leases.card_ahead(who, self.now) == ahead
            self.queue.actions.skip(who, card.number, self.now)  # type: ignore[union-attr]
            assert self.queue.leases.next_card(who, self.now) == ahead

    @rule(who=JURORS)
    def skips(self, who: str) -> None:
        card = self.queue.leases.next_card(who, self.now)
        if card is not None:
            self.queue.actions.skip(who, card.number, self.now)

    @rule(who=JURORS)
    def undoes(self, who: str) -> None:
        mine = [each for each in self.said if each.who == who and each.at + AGREED.undo_ms > self.now]
        mine = [each for each in mine if each.subject not in {going.instance_id for going in self.flying}]
        try:
            card = self.queue.actions.undo(who, self.now)
        except Refused:
            assert mine == []
            return
        latest = max(each.at for each in mine)
        gone = [each for each in mine if each.at == latest]
        assert card.instance_id in {each.subject for each in gone}
        self.said = [each for each in self.said if each not in gone]

    @rule()
    def tidies(self) -> None:
        self.queue.topics.tidy(self.now)

    # -- what always holds

    @invariant()
    def no_two_have_the_same_card(self) -> None:
        cards = [self.queue.leases.next_card(who, self.now) for who in JURY]
        numbers = [card.number for card in cards if card is not None]
        assert len(numbers) == len(set(numbers))

    @invariant()
    def nobody_is_asked_what_he_has_answered(self) -> None:
        for who in JURY:
            card = self.queue.leases.next_card(who, self.now)
            said = {each.subject for each in self.said if each.who == who}
            assert card is None or card.instance_id not in said

    def everything_is_answered_in_the_end(self) -> None:
        if self.flying:
            self.queue.outbox.not_sent(self.flying)
        self.flying = []
        for _ in range(2 * AGREED.agree + 1):
            self.now += AGREED.lease_ms + AGREED.undo_ms + 1
            for who in JURY:
                for _ in self.asked:
                    self.answers_a_card(who, None, 0)
            self.now += AGREED.undo_ms
            self.the_reader_catches_up()
            self.the_writer_sends(0, "confirmed")
        assert set(self.sent) == self.asked
        counts = self.queue.counts(self.now)
        assert (counts.open, counts.undoable) == (0, 0)


TestJury = Jury.TestCase
TestJury.settings = settings(max_examples=examples(100), stateful_step_count=40, deadline=None)
