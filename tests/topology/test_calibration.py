"""Calibrated probabilities and conformal sets in a partition: answers, late labels, restores, formats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from core.publishing.published_answers import SHARES_COUNT
from streamapp.worker.task.task import Task
from tests.naive import calibration as naive
from tests.topology.partition import ALWAYS, PARTITION, Partition, Record, config
from topics.codecs import decode_predictions
from topics.codecs.content_types import wire_of_value

SPEC = ALWAYS | {
    "learner": {"name": "naive-bayes"},
    "calibration": "platt",
    "conformal": {"alpha": 0.2},
    "evaluation": {"every": 50},
}
SETTINGS = config(SPEC, pending_ttl_ms=1_000_000)


Rows = list[tuple[dict[str, Any], str]]


def rows(n: int, seed: int = 1) -> Rows:
    """Return instances and their labels; two features that say the same make naive Bayes too sure."""
    draw = np.random.default_rng(seed)
    label = draw.integers(0, 2, n)
    x = (label + draw.normal(0, 1.0, n)).round(2).tolist()
    return [
        ({"features": {"x": v, "y": v, "z": v}, "id": f"i{i}"}, "ab"[code])
        for i, (v, code) in enumerate(zip(x, label.tolist(), strict=True))
    ]


def fed(partition: Partition, given: Rows, delay: int, *, restored: bool = False) -> None:
    """Feed instances, and their labels after each `delay` of them."""
    for start in range(0, len(given), delay):
        part = given[start : start + delay]
        partition.instances(*(instance for instance, _ in part), at=start)
        if restored:
            partition.task = Task.from_units(PARTITION, SETTINGS, None, list(partition.task.cut().units()))
        partition.labels(*({"id": one["id"], "label": name} for one, name in part), at=start)


@pytest.mark.parametrize("delay", [1, 40])
def test_late_labels_teach_the_answer_of_then_also_after_a_restore(delay: int) -> None:
    given = [({"features": {"x": one["features"]["x"]}, "id": one["id"]}, name) for one, name in rows(160)]
    live, restored = Partition(SETTINGS), Partition(SETTINGS)
    fed(live, given, delay)
    fed(restored, given, delay, restored=True)
    assert restored.predictions == live.predictions
    assert restored.model().snapshot() == live.model().snapshot()
    twins = {name: naive.Platt() for name in "ab"}
    threshold, judged = naive.Threshold(alpha=0.2), 0
    for start in range(0, 160, delay):
        for answer in live.predictions[start : start + delay]:
            if "raw_probabilities" not in answer:
                continue
            probabilities = {
                name: (judged * twins[name].calibrated(share) + SHARES_COUNT * share)
                / (judged + SHARES_COUNT)
                for name, share in answer["raw_probabilities"].items()
            }
            total = sum(probabilities.values())
            if judged:
                expected = {name: share / total for name, share in probabilities.items()}
                assert answer["probabilities"] == pytest.approx(expected, abs=2e-3)
            assert answer["label"] == max(answer["probabilities"], key=answer["probabilities"].__getitem__)
        for answer, (_, label) in zip(
            live.predictions[start : start + delay], given[start : start + delay], strict=True
        ):
            if "raw_probabilities" not in answer:
                continue
            judged += 1
            for name, share in answer["raw_probabilities"].items():
                twins[name].learn(share, float(name == label))
            threshold.learn(answer["probabilities"].get(label, -1.0))
    state = live.model().coverage()
    assert state is not None
    assert state.labels == judged
    assert state.threshold == pytest.approx(threshold.value, abs=0.02)  # answers are sent rounded


@pytest.mark.parametrize("calibration", ["platt", "isotonic"])
def test_a_new_tree_answers_its_own_shares_until_a_label_of_its_own_answers(calibration: str) -> None:
    """Labels come after 40 instances, so that those after an alarm belong to answers of the earlier tree."""
    turned = [(instance, "ba"["ab".index(name)]) for instance, name in rows(160, seed=2)]
    given = rows(200) + [({**instance, "id": f"t{i}"}, name) for i, (instance, name) in enumerate(turned)]
    settings = config(
        SPEC | {"calibration": calibration, "drift": {"name": "hddm-a", "reaction": "reset"}},
        pending_ttl_ms=1_000_000,
    )
    live, restored = Partition(settings), Partition(settings)
    fed(restored, given, 40, restored=True)
    rebuilds, of_new_trees = 0, 0
    for start in range(0, len(given), 40):
        fed(live, given[start : start + 40], 40)
        answers = live.predictions[start : start + 40]
        own = [answer for answer in answers if "raw_probabilities" in answer]
        if rebuilds > of_new_trees:
            of_new_trees = rebuilds
            assert all(answer["probabilities"] == answer["raw_probabilities"] for answer in own)
        elif start > 200:
            assert any(answer["probabilities"] != answer["raw_probabilities"] for answer in own)
        rebuilds = live.model().summary().rebuilds
    assert of_new_trees > 0
    assert [answer["probabilities"] for answer in restored.predictions] == [
        answer["probabilities"] for answer in live.predictions
    ]
    assert restored.model().snapshot() == live.model().snapshot()


def test_the_set_and_its_coverage_are_those_of_the_answers() -> None:
    given, partition = rows(200), Partition(SETTINGS)
    fed(partition, given, 10)
    inside, sizes = [], []
    for answer, (_, label) in zip(partition.predictions, given, strict=True):
        assert ("set" in answer) == (answer["label"] is not None)
        if "set" in answer:
            inside.append(label in answer["set"])
            sizes.append(len(answer["set"]))
            assert set(answer["set"]) <= set(answer["probabilities"])
    evaluation = partition.sent["evaluations"][-1].json
    coverage = partition.model().coverage()
    assert coverage is not None
    assert coverage.coverage.value == pytest.approx(np.mean(inside))
    assert coverage.size == pytest.approx(np.mean(sizes))
    assert evaluation["coverage_low"] < evaluation["coverage"] < evaluation["coverage_high"]
    assert 0.0 <= evaluation["set_size"] <= 2.0


@pytest.mark.parametrize("form", ["json", "packed", "arrow"])
def test_every_format_has_the_set_and_the_raw_probabilities(form: str) -> None:
    partition = Partition(SETTINGS)
    fed(partition, rows(60), 5)
    x = [0.3, 0.3, 0.3]
    if form == "packed":
        from topics.codecs.packed.writer import write_instances
        from topics.columns.records import Features

        value = write_instances(Features.of(None, [x]), ["q"], None, None)[0]
        partition.feed(Record("instances", b"m", value, 100))
    elif form == "arrow":
        import pyarrow as pa

        batch = pa.record_batch({"id": ["q"], "x": [0.3], "y": [0.3], "z": [0.3]})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        partition.feed(Record("instances", b"m", sink.getvalue().to_pybytes(), 100))
    else:
        partition.instances({"features": dict(zip("xyz", x, strict=True)), "id": "q"}, at=100)
    assert partition.dead_letters == []
    sent = partition.sent["predictions"][-1].value
    assert sent is not None
    assert wire_of_value(sent) == form
    received = decode_predictions([sent])
    assert received.malformed == []
    assert received.ids == ["q"]
    raw, probabilities = received.raw_probabilities[0], received.probabilities[0]
    assert raw is not None
    assert sum(raw.values()) == pytest.approx(1.0, abs=1e-3)
    assert raw != probabilities
    threshold = partition.model().coverage().threshold
    assert received.sets[0] == naive.set_of(probabilities, threshold)


def test_a_model_without_the_option_answers_as_before() -> None:
    plain = Partition(config(ALWAYS | {"learner": {"name": "naive-bayes"}}, pending_ttl_ms=1_000_000))
    fed(plain, rows(40), 5)
    assert all("set" not in one and "raw_probabilities" not in one for one in plain.predictions)
    calibrated = Partition(SETTINGS)
    fed(calibrated, rows(40), 5)
    assert [one.get("raw_probabilities", {}) for one in calibrated.predictions] == [
        one["probabilities"] for one in plain.predictions
    ]


def test_configure_switches_the_options_on_and_off_between_answer_and_label() -> None:
    """A label that comes after the change is learned, whatever its answer was kept with."""
    partition, given = Partition(SETTINGS), rows(120)
    fed(partition, given[:40], 5)
    off = {"calibration": None, "conformal": None}
    for spec, part in ((off, given[40:80]), ({"calibration": "isotonic", "conformal": {}}, given[80:])):
        partition.instances(*(one for one, _ in part[:20]), at=50)
        partition.control("configure", spec=spec, at=50)
        partition.labels(*({"id": one["id"], "label": name} for one, name in part[:20]), at=50)
        fed(partition, part[20:], 5)
    assert partition.dead_letters == []
    assert partition.model().summary().labels == 120
    assert partition.predictions[70].keys() == {"id", "label", "probabilities", "version"}
    assert {"set", "raw_probabilities"} <= partition.predictions[-1].keys()


@pytest.mark.parametrize("calibration", ["platt", "isotonic"])
def test_labels_of_answers_before_the_first_label_teach_no_calibrator(calibration: str) -> None:
    """Declared classes are answered with shares of 0 at first; the labels of these answers come later."""
    spec = SPEC | {"calibration": calibration}
    declared, plain = (Partition(config(spec, pending_ttl_ms=1_000_000)) for _ in range(2))
    schema = {"attributes": [{"name": name, "kind": "numeric"} for name in "xyz"], "classes": ["a", "b"]}
    declared.control("create", schema=schema)
    given = rows(200)
    for partition in (declared, plain):
        fed(partition, given, 100)
    assert all(
        "set" not in answer and "raw_probabilities" not in answer for answer in declared.predictions[:100]
    )
    assert [answer["untrained"] for answer in declared.predictions[:100]] == [True] * 100
    of_declared, of_plain = (
        {one["id"]: (one["raw_probabilities"], one["probabilities"]) for one in partition.predictions[100:]}
        for partition in (declared, plain)
    )
    assert of_declared == of_plain
    assert declared.model().coverage().labels == 100


def test_another_alpha_keeps_the_threshold_and_measures_the_coverage_again() -> None:
    partition, given = Partition(SETTINGS), rows(90)
    fed(partition, given[:60], 5)
    before = partition.model().coverage()
    partition.control("configure", spec={"evaluation": {"every": 20}}, at=60)
    assert partition.model().coverage() == before
    partition.control("configure", spec={"conformal": {"alpha": 0.4}}, at=60)
    after = partition.model().coverage()
    assert (after.labels, after.threshold) == (0, before.threshold)
    fed(partition, given[60:], 5)
    judged = [
        label in answer["set"]
        for answer, (_, label) in zip(partition.predictions, given, strict=True)
        if "set" in answer
    ]
    coverage = partition.model().coverage()
    assert coverage.labels == 30
    assert coverage.coverage.value == pytest.approx(np.mean(judged[-30:]))


def test_set_size_asks_where_the_set_has_not_one_class() -> None:
    spec = {
        "learner": {"name": "naive-bayes"},
        "query": {"name": "set_size", "explore": 0.1},
        "budget": {"limit": 0.6},
    }
    partition = Partition(config(spec, pending_ttl_ms=1_000_000))
    given = rows(300)
    for start in range(0, 300, 10):
        part = given[start : start + 10]
        asked = len(partition.requests)
        partition.instances(*(one for one, _ in part), at=start)
        wanted = {request["instance_id"] for request in partition.requests[asked:]}
        partition.labels(
            *({"id": one["id"], "label": name} for one, name in part if one["id"] in wanted), at=start
        )
    sizes = {one["id"]: len(one["set"]) for one in partition.predictions if "set" in one}
    requested = {request["instance_id"] for request in partition.requests} & set(sizes)
    single = [one for one in sizes if sizes[one] == 1]
    assert single
    share = len(requested & set(single)) / len(single)
    assert 0.03 < share < 0.2, "of records with one class about a tenth is requested at random"
    others = [one for one in sizes if sizes[one] != 1]
    assert len(requested & set(others)) > 0.5 * len(others), "the others while the budget is open"
    assert partition.model().coverage().measured == "records"
