"""A challenger beside the model of a key: answers, requests, labels, and how the comparison ends."""

from __future__ import annotations

import random
from typing import Any

import orjson
import pytest

from core.evaluation import section_of
from streamapp.tools.inspection.model_answers import challenge_lines
from streamapp.tools.offline.listing import exported
from streamapp.tools.offline.time_travel import Arrived
from streamapp.web.formatting import challenge_in_words, event_in_words
from streamapp.worker.task.models.files.exported import ExportedModel, read_exported
from streamapp.worker.task.sources import positions_of
from streamapp.worker.task.task import TaskRun
from tests.topology.partition import ALWAYS, PARTITION, QUICK, Partition, config
from topics.columns.records import RawRecords

HALF: dict[str, Any] = {"query": "random", "budget": {"name": "count", "limit": 0.5}}
MAJORITY: dict[str, Any] = {"learner": "majority-class"}
TREE: dict[str, Any] = {"learner": QUICK}
STEP = 1000  # ms of event time after which a decision takes effect


def document(draw: random.Random, number: int, *, labelled: bool = False) -> dict[str, Any]:
    """Return an instance whose class is whether x is above 5, in nine of ten."""
    x = round(draw.uniform(0, 10), 2)
    features = {"id": f"n{number}", "features": {"x": x, "y": round(draw.uniform(0, 10), 2)}}
    return features | ({"label": label_of(features)} if labelled else {})


def label_of(instance: dict[str, Any]) -> str:
    return "high" if instance["features"]["x"] > 5 else "low"


class Story:
    """A partition whose requests are all answered after each run."""

    def __init__(self, champion: dict[str, Any], **settings: Any) -> None:
        self.partition = Partition(config(champion, **settings))
        self.draw = random.Random(1)
        self.number = self.answered = self.clock = 0
        self.labels: dict[str, str] = {}

    def play(self, n: int, *, labelled: bool = False, run: int = 20) -> None:
        for _ in range(n // run):
            self.clock += 100
            documents = [document(self.draw, self.number + at, labelled=labelled) for at in range(run)]
            self.number += run
            self.labels |= {each["id"]: label_of(each) for each in documents}
            self.partition.instances(*documents, at=self.clock)
            asked = self.requests[self.answered :]
            self.answered += len(asked)
            if asked:
                names = [request["instance_id"] for request in asked]
                self.partition.labels(
                    *({"id": name, "label": self.labels[name]} for name in names), at=self.clock
                )

    @property
    def requests(self) -> list[Any]:
        return [sent.json for sent in self.partition.sent["label-requests"]]

    @property
    def events(self) -> list[Any]:
        return [sent.json for sent in self.partition.sent["model-events"]]

    def file(self) -> ExportedModel:
        task = self.partition.task
        return read_exported(exported(Arrived(task, positions_of(task.next), 0), "m", "t."))

    def ended(self) -> list[Any]:
        return [event for event in self.events if event["event"] in ("promoted", "dropped", "undecided")]

    def challenge(self, **body: Any) -> None:
        effects = self.partition.control("challenge", at=self.clock, **{"warm_up": 10} | body)
        assert not effects.dead_letters, effects.dead_letters[0].detail


def test_a_better_challenger_answers_beside_its_champion_and_is_promoted() -> None:
    story = Story(MAJORITY | HALF)
    story.play(100)
    story.challenge(spec=TREE)
    story.play(2000)
    (end,) = story.ended()
    assert end["event"] == "promoted" and end["detail"]["by"] == "rule"
    compared = end["detail"]["challenge"]
    assert compared["low"] > 0.0 and compared["labels"] <= compared["drawn"]
    assert story.partition.model().spec.learner.name == "h_tree"
    beside = [answer for answer in story.partition.predictions if "challenger" in answer]
    assert beside and any(answer["challenger"] != answer["label"] for answer in beside)
    last = story.partition.predictions[-1]
    assert "challenger" not in last
    assert len(story.partition.task.models.keys) == 1


@pytest.mark.parametrize("decide", ["rule", "person"])
def test_a_decision_is_sent_under_the_key_of_the_challenge(decide: str) -> None:
    """It takes effect with a later record, which may be of another key."""
    story = Story(MAJORITY | {"query": "never"})
    story.play(100, labelled=True)
    story.challenge(spec=TREE, decide=decide)
    for _ in range(20):
        story.play(20, labelled=True)
        story.partition.instances({"features": {"x": 1.0}}, key="other", at=story.clock + 100)
    sent = [event for event in story.partition.sent["model-events"] if "challenge" in event.json["detail"]]
    assert [(event.key, event.json["event"]) for event in sent] == [
        (b"m", "promoted" if decide == "rule" else "decided")
    ]


def test_nothing_is_compared_before_the_challenger_has_learned_some_labels() -> None:
    story = Story(TREE | HALF)
    story.play(400)
    story.challenge(spec=MAJORITY, warm_up=60, decide="person")
    story.play(100)
    assert not any("reason" in request for request in story.requests)
    challenger = story.partition.task.models.keys.challenger("m")
    challenge = story.partition.task.models.traits.challenges[challenger]
    assert (challenge.compared().records, challenge.credits) == (0, 0)
    story.play(1000)
    assert any("reason" in request for request in story.requests)


def test_no_better_challenger_is_dropped() -> None:
    story = Story(TREE | HALF)
    story.play(400)
    story.challenge(spec=MAJORITY)
    story.play(2000)
    (end,) = story.ended()
    assert end["event"] == "dropped"
    assert story.partition.model().spec.learner.name == "h_tree"
    assert len(story.partition.task.models.keys) == 1


def test_requests_go_where_the_two_disagree_within_the_budget() -> None:
    limit = 0.1
    story = Story(TREE | {"query": "random", "budget": {"name": "count", "limit": limit}})
    story.play(1000)
    before = len(story.requests)
    story.challenge(spec=MAJORITY, decide="person", alpha=1e-9)
    story.play(2000)
    during = story.requests[before:]
    ours = [request for request in during if request.get("reason") == "disagreement"]
    assert 0.1 < len(ours) / len(during) < 0.6
    assert all(request["challenger"] != request["prediction"] for request in ours)
    assert len(story.requests) <= limit * story.number + 1
    evaluation = story.partition.model().evaluation()
    assert evaluation.asked == evaluation.answered + evaluation.declined + evaluation.expired + (
        evaluation.outstanding
    )
    assert 0 <= evaluation.outstanding <= 32


@pytest.mark.parametrize("labelled", [False, True])
def test_answers_stay_the_champions(labelled: bool) -> None:
    """With all labels requested, or at hand, a challenge changes no answer."""
    alone, beside = Story(TREE | ALWAYS), Story(TREE | ALWAYS)
    for story in (alone, beside):
        story.play(200, labelled=labelled)
    beside.challenge(spec=MAJORITY, share=1e-9, decide="person")
    for story in (alone, beside):
        story.play(600, labelled=labelled)
    answers = [sent.json for sent in beside.partition.sent["predictions"]]
    for answer in answers:
        answer.pop("challenger", None)
    assert answers == alone.partition.predictions


def test_labels_that_come_with_records_are_compared() -> None:
    story = Story(MAJORITY | {"query": "never"})
    story.play(100, labelled=True)
    story.challenge(spec=TREE)
    story.play(2000, labelled=True)
    (end,) = story.ended()
    assert end["event"] == "promoted"


def test_labels_used_up_leave_it_undecided() -> None:
    story = Story(TREE | ALWAYS)
    story.play(200)
    story.challenge(spec={"learner": QUICK | {"grace_period": 25}}, max_labels=3, worth=1e-6)
    story.play(3000)
    (end,) = story.ended()
    assert end["event"] == "undecided" and end["detail"]["challenge"]["labels"] == 3
    assert len(story.partition.task.models.keys) == 1


@pytest.mark.parametrize(("command", "learner"), [("promote", "majority_class"), ("drop", "h_tree")])
def test_a_person_decides(command: str, learner: str) -> None:
    story = Story(TREE | HALF)
    story.play(400)
    story.challenge(spec=MAJORITY, decide="person")
    story.play(1000)
    assert not story.ended()
    (decided,) = (event for event in story.events if event["event"] == "decided")
    assert decided["detail"]["challenge"]["decision"] == "dropped"
    story.partition.control(command, at=story.clock)
    (end,) = story.ended()
    assert end["detail"]["by"] == "person"
    assert story.partition.model().spec.learner.name == learner
    story.play(400)


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ({}, "spec is missing"),
        ({"spec": {"learner": "no-such"}}, "no-such"),
        ({"spec": TREE, "share": 0}, "share=0.0 must be above 0 and at most 0.9"),
        ({"spec": TREE, "share": "half"}, "share='half' must be a number"),
        ({"spec": TREE, "alpha": 2}, "alpha=2.0 must be"),
        ({"spec": TREE, "margin": 0.2, "worth": 0.1}, "worth=0.1 must be at least margin=0.2"),
        ({"spec": TREE, "max_labels": 0}, "max_labels=0 must be"),
        ({"spec": TREE, "warm_up": -1}, "warm_up=-1 must be from 0 to"),
        ({"spec": TREE, "warm_up": 0.5}, "warm_up=0.5 must be a whole number"),
        ({"spec": TREE, "decide": "coin"}, "decide='coin' must be one of rule, person"),
        ({"spec": TREE, "beta": 1}, "member 'beta' is unknown"),
        ({"spec": {"learner": "ufodt", "acquire": "utility"}}, "acquire="),
    ],
)
def test_terms_that_are_refused_change_nothing(body: dict[str, Any], rule: str) -> None:
    story = Story(TREE | HALF)
    story.play(100)
    before = story.partition.model().snapshot()
    effects = story.partition.control("challenge", **body)
    (letter,) = effects.dead_letters
    assert rule in letter.detail
    assert story.partition.model().snapshot() == before
    assert len(story.partition.task.models.keys) == 1


def test_commands_without_a_challenger_or_a_second_one_are_refused() -> None:
    story = Story(TREE | HALF)
    for command in ("challenge", "promote", "drop"):
        (letter,) = story.partition.control(command, spec=TREE).dead_letters
        assert "unknown" in letter.detail
    story.play(100)
    for command in ("promote", "drop"):
        (letter,) = story.partition.control(command).dead_letters
        assert "has no challenger; make one by 'challenge'" in letter.detail
    story.challenge(spec=TREE)
    (letter,) = story.partition.control("challenge", spec=TREE).dead_letters
    assert "has a challenger already; promote or drop it first" in letter.detail


@pytest.mark.parametrize("command", ["delete", "reset"])
def test_a_challenger_goes_with_its_champion(command: str) -> None:
    story = Story(TREE | HALF)
    story.play(100)
    story.challenge(spec=MAJORITY)
    story.play(100)
    story.partition.control(command, at=story.clock)
    (end,) = story.ended()
    assert end["event"] == "dropped"
    assert not story.partition.task.models.keys.has_challengers
    story.play(100)


def test_evaluations_hold_the_comparison() -> None:
    story = Story(TREE | ALWAYS | {"evaluation": {"every": 50}})
    story.play(200)
    story.challenge(spec=MAJORITY, decide="person")
    story.play(600)
    evaluations = [orjson.loads(sent.value or b"") for sent in story.partition.sent["evaluations"]]
    compared = [each["challenge"] for each in evaluations]
    assert compared[0] is None
    assert compared[-1]["learner"] == "majority-class"
    assert compared[-1]["high"] < 0.0


def test_new_classes_and_values_reach_both() -> None:
    story = Story(TREE | ALWAYS)
    story.play(100)
    story.challenge(spec=TREE, decide="person")
    story.partition.instances(
        {"id": "a", "features": {"x": 1, "y": 2}, "label": "third"},
        {"id": "b", "features": {"x": 1, "y": 2, "z": 3}, "label": "third"},
        at=story.clock,
    )
    keys = story.partition.task.models.keys
    cache = story.partition.task.models.cache
    both = [cache.model(keys.slot("m")), cache.model(keys.challenger("m"))]
    assert both[0].schema is both[1].schema
    assert "third" in both[0].schema.classes
    assert both[0].schema.n_attributes == 2


def test_people_see_the_comparison() -> None:
    story = Story(TREE | ALWAYS | {"evaluation": {"every": 50}})
    story.play(200)
    story.challenge(spec=MAJORITY, decide="person")
    story.play(400)
    file = story.file()
    (line,) = challenge_lines(file.challenge)
    assert line.startswith("challenger majority-class: ")
    assert line.endswith(", dropped")
    newest = orjson.loads(story.partition.sent["evaluations"][-1].value or b"")
    assert "labels compared, accuracy -" in challenge_in_words(newest["challenge"])
    assert challenge_in_words(None) == "no challenger"
    story.partition.control("drop", at=story.clock)
    begun, end = (event for event in story.events if event["event"] in ("challenged", "dropped"))
    assert event_in_words(begun) == "challenged by majority-class"
    assert event_in_words(end).startswith("the challenger was dropped (by person): majority-class: ")
    assert story.file().challenge is None


def test_a_model_exported_during_a_challenge_adds_new_features_elsewhere() -> None:
    story = Story({"learner": "naive-bayes"} | HALF)
    story.play(40)
    story.challenge(spec=MAJORITY, decide="person")
    assert story.file().open
    closed = Story(TREE | HALF)
    closed.play(400)
    assert closed.partition.model().summary().splits
    closed.challenge(spec=MAJORITY)
    assert not closed.file().open


def test_a_frozen_model_pauses_the_challenge() -> None:
    story = Story(TREE | HALF)
    story.play(200)
    (letter,) = _frozen_then_challenged(story)
    assert "is frozen: it learns nothing" in letter.detail
    story.challenge(spec=MAJORITY, decide="person")
    story.partition.control("freeze", at=story.clock)
    before = len(story.partition.predictions)
    story.play(100)
    assert not any("challenger" in answer for answer in story.partition.predictions[before:])
    story.partition.control("freeze", frozen=False, at=story.clock)
    story.play(100)
    assert "challenger" in story.partition.predictions[-1]


def _frozen_then_challenged(story: Story) -> list[Any]:
    story.partition.control("freeze", at=story.clock)
    letters = story.partition.control("challenge", spec=MAJORITY, at=story.clock).dead_letters
    story.partition.control("freeze", frozen=False, at=story.clock)
    return letters


def test_a_promoted_model_answers_like_one_that_learned_the_same_labels() -> None:
    """It continues the records and requests of the key, and none of the answers of its champion count."""
    story = Story(MAJORITY | HALF)
    story.play(100)
    story.challenge(spec=TREE | HALF, decide="person")
    story.play(600)
    before = story.partition.model().evaluation()
    story.partition.control("promote", at=story.clock)
    after = story.partition.model().evaluation()
    account = ("records", "asked", "answered", "declined", "expired")
    assert [getattr(after, name) for name in account] == [getattr(before, name) for name in account]
    assert story.partition.model().spec.query.name == "random"
    right = story.number
    story.play(400)
    answers = story.partition.predictions[right:]
    hits = sum(answer["label"] == story.labels[answer["id"]] for answer in answers)
    assert hits > 0.9 * len(answers)
    assert story.partition.model().evaluation().accuracy_unbiased > 0.9
    assert len(story.requests) <= 0.5 * story.number + 1


@pytest.mark.parametrize("late", [False, True])
def test_answers_of_the_replaced_model_do_not_count_for_the_promoted_one(late: bool) -> None:
    story = Story(MAJORITY | ALWAYS, pending_ttl_ms=1000)
    story.play(100)
    story.challenge(spec=TREE | ALWAYS, decide="person")
    story.play(100)
    instance = {"id": "waiting", "features": {"x": 1.0, "y": 2.0}}
    story.partition.instances(instance, at=story.clock)
    story.partition.control("promote", at=story.clock)
    before = story.partition.model()
    labels, judged = before.summary().labels, section_of(before.plan, before.ints).count
    story.partition.labels(instance | {"label": "low"}, at=story.clock + (1500 if late else 10))
    after = story.partition.model()
    assert after.summary().labels == labels + 1
    assert section_of(after.plan, after.ints).count == judged


@pytest.mark.parametrize("n_runs", [1, 2])
def test_a_run_goes_on_after_a_decision_in_its_middle(n_runs: int) -> None:
    """400 labelled records, ten in a step of event time: the rule promotes the challenger after some tens."""
    story = Story(MAJORITY | {"query": "never"})
    story.play(20, labelled=True)
    story.challenge(spec=TREE)
    documents = [orjson.dumps(document(story.draw, number, labelled=True)) for number in range(400)]
    outcomes = []
    for run in range(n_runs):
        offsets = [number for number in range(400) if number * n_runs // 400 == run]
        times = [story.clock + 10 * (number + 1) for number in offsets]
        n = len(offsets)
        values: list[bytes | None] = [documents[number] for number in offsets]
        offsets = [story.number + number for number in offsets]
        raw = RawRecords("t.instances", PARTITION, offsets, times, [b"m"] * n, values, [()] * n)
        effects = story.partition.task.process(TaskRun("instances", raw))
        outcomes += [happening.event.event for happening in effects.happened]
    assert outcomes.count("promoted") == 1
    assert story.partition.model().spec.learner.name == "h_tree"
    assert story.partition.model().evaluation().records == 420
