"""A log under another spec: what is equal, what differs, which labels exist, and how accurate it would be."""

from __future__ import annotations

import random
from typing import Any

import pytest

from core.errors import GroveError
from streamapp.tools.offline.errors import OfflineError
from streamapp.tools.whatif.whatif_report import as_text
from streamapp.worker.task.task import Task
from tests.property.test_task_cuts import SPECS, TTL, story
from tests.topology.partition import QUICK, config
from tests.unit.streamapp.tools.offline.archive import Archive
from tests.unit.streamapp.tools.whatif.past import Past, Stream, past, spec

RANDOM: dict[str, Any] = {"query": "random", "budget": {"limit": 0.4}, "drift": "ddm"}
ALL: dict[str, Any] = {"query": "always", "budget": {"limit": 1.0}}
OTHER_LEARNER = spec(**RANDOM) | {"learner": "naive-bayes"}


def model_bytes(task: Task, key: str = "m") -> bytes:
    return bytes(task.models.cache.model(task.models.keys.slot(key)).snapshot())


# -- the same spec -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["asks-again", "counts-classes", "repeats-labels"])
def test_the_same_spec_gives_the_same_answers_whatever_is_in_the_log(kind: str) -> None:
    given = {"learner": QUICK} | SPECS[kind]
    archive = Archive(config(given, models_max_classes=6, pending_ttl_ms=TTL))
    draw = random.Random(7)
    for record in story(7, 600):
        if b"configure" not in (record.value or b""):
            archive.feed(record)
        if draw.random() < 0.1:
            archive.commit()
    archive.commit()
    for piece in (1, 1000):
        found = Past(archive, piece).under(given, key="b")
        n = found["records"]
        assert n > 30
        assert (found["answers_equal"], found["classes_equal"], found["first_difference"]) == (n, n, None)
        assert found["reproduced"] == {"equal": n, "different": 0, "not_found": 0}
        assert (found["exact"], found["controls_overridden"]) == (True, 0)
        labels = found["labels"]
        assert labels["spent"] == labels["wanted"] == labels["exist"]
        assert found["accuracy"]["difference"] == 0.0


def test_the_same_spec_leads_to_the_same_state() -> None:
    stored = past(RANDOM)
    assert stored.second(spec(**RANDOM)).digest() == stored.archive.task.digest()
    found = stored.under(spec(**RANDOM))
    assert (found["records"], found["answers_equal"], found["labels"]["share"]) == (400, 400, 1.0)
    evaluation = stored.archive.model().evaluation()
    assert found["accuracy"]["was"] == evaluation.accuracy
    of_all = found["accuracy_of_all"]
    assert of_all["was"] == pytest.approx(evaluation.accuracy_unbiased, rel=1e-12)
    assert of_all["interval"] == pytest.approx(
        [evaluation.accuracy_unbiased_low, evaluation.accuracy_unbiased_high], rel=1e-12
    )


# -- another learner -----------------------------------------------------------------------------------------


def test_another_learner_is_the_one_that_a_worker_would_have_had() -> None:
    """`random` requests the same labels for every learner: the other model can really be run."""
    was, really = past(RANDOM), past(OTHER_LEARNER)
    assert model_bytes(was.second(OTHER_LEARNER)) == model_bytes(really.archive.task)
    found = was.under(OTHER_LEARNER)
    assert found["exact"]
    evaluation = really.archive.model().evaluation()
    assert found["accuracy"]["would_be"] == evaluation.accuracy
    assert found["accuracy"]["by"] == "same-labels"
    assert found["accuracy_of_all"]["would_be"] == pytest.approx(evaluation.accuracy_unbiased, rel=1e-12)
    answers = [
        [each.json["label"] for each in stored.archive.sent["predictions"] if each.key == b"m"]
        for stored in (was, really)
    ]
    unequal = [at for at, (one, other) in enumerate(zip(*answers, strict=True)) if one != other]
    assert found["classes_equal"] == 400 - len(unequal)
    first = found["first_other_class"]
    assert (first["id"], first["partition"], first["offset"]) == (f"i{unequal[0]}", 3, 2 * unequal[0])
    assert (first["was"]["label"], first["would_be"]["label"]) == tuple(said[unequal[0]] for said in answers)


def test_labels_are_given_though_the_other_learner_would_not_have_requested_them() -> None:
    given = {"query": {"name": "rate", "explore": 0.2}, "budget": {"limit": 0.3}}
    stored = past(given)
    other = spec(**given) | {"learner": "majority-class"}
    found = stored.under(other)
    learned = stored.archive.model().summary().labels
    assert stored.second(other).models.cache.model(0).summary().labels == learned
    assert found["labels"]["spent"] > found["labels"]["exist"]
    assert found["exact"]


# -- another strategy ----------------------------------------------------------------------------------------


def test_where_all_labels_exist_another_strategy_is_the_one_that_a_worker_would_have_had() -> None:
    other = spec(query="variable_uncertainty", budget={"limit": 0.3})
    was, really = past(ALL, lost=0.0), past(other, lost=0.0)
    found = was.under(other)
    assert model_bytes(was.second(other)) == model_bytes(really.archive.task)
    labels = found["labels"]
    assert (labels["spent"], labels["share"]) == (400, 1.0)
    assert labels["wanted"] == labels["exist"] == really.archive.model().summary().requests < 130
    assert (found["exact"], found["labelling"]) == (False, "wanted-labels")
    accuracy = found["accuracy"]
    assert accuracy["by"] == "chances"
    assert accuracy["labels"] == 400 - 15 - 16, "without the last labels, and before any class was known"
    assert accuracy["interval"][0] < accuracy["would_be"] <= accuracy["interval"][1]


def test_of_another_strategy_only_labels_that_were_requested_exist() -> None:
    stored = past(RANDOM)
    other = spec(**RANDOM | {"query": "always"})
    found = stored.under(other)
    labels, accuracy = found["labels"], found["accuracy"]
    assert labels["wanted"] == 160
    assert labels["exist"] < labels["spent"]
    assert labels["share"] == labels["exist"] / 160
    assert stored.second(other).models.cache.model(0).summary().labels == labels["came"]
    assert accuracy["by"] == "chances"
    assert accuracy == found["accuracy_of_all"]
    text = as_text(found)
    assert f"of these exist {labels['exist']} ({labels['share']:.1%})" in text
    assert "a wanted label is learned only if it was requested in the log" in text


def test_the_reserved_share_stands_for_all_records() -> None:
    stored = past({"query": "conf_tree", "budget": {"limit": 0.5}, "evaluation": {"share": 0.2}})
    found = stored.under(spec(query="never", budget={"limit": 0.5}, evaluation={"share": 0.2}))
    evaluation = stored.archive.model().evaluation()
    assert found["accuracy"]["by"] == "reserve"
    assert found["accuracy"]["was"] == evaluation.accuracy_unbiased
    assert found["labels"]["share"] == 1.0, "the same records are reserved"


def test_without_known_chances_nothing_is_guessed() -> None:
    stored = past({"query": "variable_uncertainty", "budget": {"limit": 0.3}})
    found = stored.under(spec(**RANDOM))
    assert found["accuracy"] == {
        **dict.fromkeys(("was", "would_be", "interval", "difference", "difference_interval")),
        "labels": 0,
        "by": None,
    }
    assert "not known: the strategy of the log has no known chances" in as_text(found)


def test_labels_that_nobody_requested_are_for_both() -> None:
    stream = Stream(Archive(config(RANDOM)), lost=0.0)
    stream.send(60, labelled=True)
    stream.archive.labels({"id": "early", "label": "low"}, at=60_000)
    stream.archive.instances({"id": "early", "features": {"x": 1, "y": 1}}, at=61_000)
    stored = stream.end()
    other = spec(query="never")
    found = stored.under(other)
    assert (found["labels"]["own"], found["labels"]["wanted"], found["labels"]["share"]) == (61, 0, None)
    assert model_bytes(stored.second(other))[:8] == model_bytes(stored.archive.task)[:8]
    assert stored.second(other).models.cache.model(0).summary().labels == 61
    assert found["answers_equal"] == 61


def test_with_pending_keep_all_unrequested_labels_are_for_both() -> None:
    archive = Archive(config({"query": "never"}, pending_keep="all"))
    for n in range(20):
        archive.instances({"id": f"i{n}", "features": {"x": n % 4}}, at=n)
    archive.labels(*({"id": f"i{n}", "label": "low" if n % 4 else "high"} for n in range(15)), at=30)
    archive.instances({"id": "z", "features": {"x": 1}}, at=40)
    archive.commit()
    stored = Past(archive)
    other = spec(query="always", learner="majority-class")
    found = stored.under(other)
    assert (found["labels"]["unasked"], found["labels"]["wanted"], found["labels"]["exist"]) == (15, 21, 0)
    assert stored.second(other).models.cache.model(0).summary().labels == 15


# -- from a time on ------------------------------------------------------------------------------------------


def continued(given: dict[str, Any], command: str, body: dict[str, Any]) -> tuple[Past, Past]:
    """Return a past, and the same past in which a control came in the middle."""
    stored = []
    for with_control in (False, True):
        stream = Stream(Archive(config(given)))
        stream.send(200)
        if with_control:
            stream.archive.control(command, spec=body, at=199_000)
        stream.send(200)
        stored.append(stream.end())
    return stored[0], stored[1]


def test_since_a_time_another_learner_begins_as_after_a_reset() -> None:
    given = ALL | {"drift": "ddm"}
    other = spec(**given) | {"learner": "naive-bayes"}
    was, really = continued(given, "reset", other)
    assert model_bytes(was.second(other, 200_000)) == model_bytes(really.archive.task)
    found = was.under(other, 200_000)
    assert (found["records"], found["model"], found["base"]) == (200, "new", "beginning")
    assert found["from"]["instances"] == 400
    assert found["since"] == "2023-11-14T22:16:40.000+00:00"
    assert found["reproduced"] == {"equal": 200, "different": 0, "not_found": 0}


def test_since_a_time_another_budget_begins_as_after_a_configure() -> None:
    given = spec(**RANDOM | {"budget": {"limit": 0.1}})
    was, really = continued(RANDOM, "configure", {"budget": {"limit": 0.1}})
    found = was.under(given, 200_000)
    assert (found["records"], found["model"]) == (200, "continued")
    if found["labels"]["share"] == 1.0:
        assert model_bytes(was.second(given, 200_000)) == model_bytes(really.archive.task)
    wanted = really.archive.model().summary().requests - was_requests(was, 200_000)
    assert found["labels"]["wanted"] == wanted


def was_requests(stored: Past, since: int) -> int:
    """Return how many labels of the model had been requested before a time."""
    asked = [each for each in stored.archive.sent["label-requests"] if each.key == b"m"]
    return sum(int(each.json["instance_id"][1:]) * 1000 < since for each in asked)


def test_the_state_before_may_be_a_snapshots() -> None:
    stream = Stream(Archive(config(RANDOM)))
    stream.send(100)
    manifest = stream.archive.snapshot()
    stream.archive.journal.add(manifest)
    stream.send(100)
    stored = stream.end()
    stored.archive.trim(manifest.start)
    found = stored.under(spec(**RANDOM))
    assert (found["base"], found["records"], found["answers_equal"]) == ("snapshot", 100, 100)
    assert found["from"] == {"controls": 0, "instances": 200, "labels": manifest.positions["labels"]}
    with pytest.raises(
        OfflineError, match=r"--since 2023-.* instances 3:20: .* reach from 200 to 399; choose"
    ):
        stored.under(spec(**RANDOM), 10_000)


def test_controls_of_the_log_do_not_change_the_spec() -> None:
    stream = Stream(Archive(config(RANDOM)))
    stream.archive.control("create", spec=spec(**ALL), schema={"attributes": [{"name": "x"}, {"name": "y"}]})
    stream.send(50)
    stream.archive.control("configure", spec={"budget": {"limit": 0.2}}, at=50_000)
    stream.send(50)
    stream.archive.control("reset", spec=spec(**RANDOM), at=100_000)
    stream.archive.control("delete", key="other", at=100_000)
    stream.send(50)
    stored = stream.end()
    second = stored.second(OTHER_LEARNER)
    model = second.models.cache.model(second.models.keys.slot("m"))
    assert (model.spec.learner.spelled, model.spec.budget.limit) == ("naive-bayes", 0.4)
    assert model.summary().records == 50, "the reset holds"
    found = stored.under(OTHER_LEARNER)
    assert (found["controls_overridden"], found["records"]) == (3, 150)
    assert found["was_spec"]["budget"]["limit"] == 1.0
    assert "3 of the log set another spec" in as_text(found)


# -- sent answers --------------------------------------------------------------------------------------------


def test_sent_answers_may_be_gone_changed_or_repeated() -> None:
    stored = past(RANDOM, n=100)
    values = stored.predictions
    stored.predictions = values[60:]
    assert stored.under(spec(**RANDOM))["reproduced"] == {"equal": 70, "different": 0, "not_found": 30}
    stored.predictions = [(k, v.replace(b'"i70"', b'"i71"') if v else v) for k, v in values]
    assert stored.under(spec(**RANDOM))["reproduced"] == {"equal": 99, "different": 0, "not_found": 1}
    stored.predictions = [
        (k, v.replace(b'"i70","label":', b'"i70","label":null,"was":') if v else v) for k, v in values
    ]
    found = stored.under(spec(**RANDOM))
    assert found["reproduced"] == {"equal": 99, "different": 1, "not_found": 0}
    assert "reproduces 99 of 100 sent answers, 1 differ" in as_text(found)
    stored.predictions = [*values[:40], *values[20:]]
    assert stored.under(spec(**RANDOM))["reproduced"] == {"equal": 100, "different": 0, "not_found": 0}


# -- what cannot be ------------------------------------------------------------------------------------------


def test_a_key_without_records_is_named() -> None:
    stored = past(RANDOM, n=20)
    with pytest.raises(OfflineError, match="no record of the model 'x' was answered in this part of the log"):
        stored.under(spec(**RANDOM), key="x")
    with pytest.raises(
        OfflineError, match=r"--since 2023-.* instances 3:40: .* was not processed yet; .*choose"
    ):
        stored.under(spec(**RANDOM), 99_000)
    with pytest.raises(OfflineError, match="partition 3: nothing was processed yet"):
        Past(Archive(config(RANDOM))).under(spec(**RANDOM))


def test_a_model_that_buys_features_is_refused() -> None:
    stored = past(RANDOM, n=20)
    with pytest.raises(OfflineError, match='the spec buys features .*compare specs with "acquire": "none"'):
        stored.under({"learner": "ufodt"})
    with pytest.raises(GroveError, match="unknown learner 'nonsense'"):
        stored.under("nonsense")


def test_a_learner_that_refuses_a_record_has_no_answer() -> None:
    archive = Archive(config(ALL))
    for n in range(12):
        archive.instances({"id": f"i{n}", "features": {"x": n}, "label": "low", "weight": 1 + n // 11})
    archive.commit()
    found = Past(archive).under({"learner": "boct"} | ALL)
    assert (found["records"], found["first_difference"] is not None) == (12, True)
    first = found["first_other_class"]
    assert (first["id"], first["would_be"]) == ("i11", None)
    assert "(i11): low 1.0000, would be no answer" in as_text(found)
