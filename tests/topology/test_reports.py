"""Drift alerts, evaluations and what the log hears of them."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from core.active.label_account import Account
from streamapp.worker.gauges import model_gauges
from tests.topology.partition import ALWAYS, NEVER, NOW, Partition, config, instance

DDM = NEVER | {"drift": "ddm"}


def turned(n: int, at: int) -> list[dict[str, object]]:
    """Return labelled instances whose concept turns round at row `at`."""
    x = np.random.default_rng(2).uniform(0, 10, n).round(2).tolist()
    return [{"features": {"x": v}, "label": "hi" if (v > 5) ^ (i >= at) else "lo"} for i, v in enumerate(x)]


def test_an_evaluation_comes_every_so_many_labels() -> None:
    partition = Partition(config(NEVER, evaluation_every=10))
    rows = turned(25, 99)
    partition.feed(*(instance(row, key="a", at=i) for i, row in enumerate(rows)))
    sent = partition.sent["evaluations"]
    assert [message.json["labels"] for message in sent] == [10, 20]
    assert [(message.key, message.timestamp) for message in sent] == [(b"a", NOW + 9), (b"a", NOW + 19)]
    assert sent[-1].json["version"] == 20
    labels = Counter(str(row["label"]) for row in rows[1:20])  # before the first no class was known
    assert list(sent[-1].json["classes"].items()) == labels.most_common()
    assert 0.5 < sent[-1].json["accuracy"] <= 1.0


def test_evaluations_count_labels_that_come_later_too() -> None:
    partition = Partition(config(ALWAYS, evaluation_every=4))
    partition.instances(*({"features": {"x": i}, "id": f"i{i}"} for i in range(6)))
    partition.labels(*({"id": f"i{i}", "label": "a"} for i in range(6)))
    (first,) = partition.sent["evaluations"]
    assert (first.json["labels"], first.json["accuracy"]) == (4, 0.0)  # answered when no class was known
    partition.instances(*({"features": {"x": i}, "id": f"j{i}"} for i in range(6)))
    partition.labels(*({"id": f"j{i}", "label": "a"} for i in range(6)), at=50)
    later = partition.sent["evaluations"][1:]
    assert [(message.json["labels"], message.json["accuracy"], message.timestamp) for message in later] == [
        (8, 1.0, NOW + 50),
        (12, 1.0, NOW + 50),
    ]


def test_a_turn_of_the_concept_raises_alerts_in_order() -> None:
    partition = Partition(config(DDM))
    rows = turned(900, 500)
    partition.feed(*(instance(row | {"id": f"i{i}"}, at=i) for i, row in enumerate(rows)))
    alerts = [message.json for message in partition.sent["drift-alerts"]]
    assert "drift" in [alert["level"] for alert in alerts]
    drift = next(alert for alert in alerts if alert["level"] == "drift")
    number = int(drift["instance_id"][1:])
    assert 500 <= number < 700
    assert drift["version"] == number  # every instance before it was labelled
    assert drift["detector"] == "ddm"
    times = [message.timestamp for message in partition.sent["drift-alerts"]]
    assert times == sorted(times)
    notices = [notice for notice in partition.notices if notice.text.startswith("ddm: ")]
    assert len(notices) == len(alerts)
    for alert, notice in zip(alerts, notices, strict=True):
        assert notice.level == ("info" if alert["level"] == "drift" else "debug"), "one line a drift"
    assert partition.predictions[-1]["version"] == 899


def test_an_alert_from_a_late_label_knows_the_version_of_its_moment() -> None:
    at_once, later = Partition(config(DDM)), Partition(config(DDM, pending_keep="all"))
    rows = turned(700, 300)
    at_once.instances(*(row | {"id": f"i{i}"} for i, row in enumerate(rows)))
    for i, row in enumerate(rows):
        later.instances({"features": row["features"], "id": f"i{i}"})
        later.labels({"id": f"i{i}", "label": row["label"]})
    alerts = [[message.json for message in each_.sent["drift-alerts"]] for each_ in (at_once, later)]
    assert alerts[0] == alerts[1] != []
    assert at_once.model().summary().leaves == later.model().summary().leaves


def test_splits_are_counted_and_said_once_each() -> None:
    partition = Partition(config(NEVER))
    effects = partition.instances(*turned(400, 999))
    splits = partition.model().summary().splits
    assert effects.splits.total() == splits
    assert effects.splits == Counter(
        re.search(r"\((\w+)\) after", notice.text)[1]  # type: ignore[index]
        for notice in partition.notices
        if "split on 'x'" in notice.text
    )
    assert partition.counts["models.splits"] == splits > 0
    notices = [notice for notice in partition.notices if "split on 'x'" in notice.text]
    assert len(notices) == splits
    assert {notice.level for notice in notices} == {"info"}


def gauges_of(partition: Partition) -> dict[tuple[str, ...], float]:
    samples = (s for family in model_gauges(partition.task.models.scales()) for s in family.samples)
    return {(sample.name, *sample.labels.values()): sample.value for sample in samples}


def test_gauges_sum_up_the_models_that_are_there() -> None:
    partition = Partition(config({"query": "random", "budget": {"name": "count", "limit": 0.3}}))
    assert gauges_of(partition) == {("grove_tree_nodes",): 0, ("grove_model_bytes",): 0}
    rows = turned(400, 999)
    partition.instances(*rows, key="a")
    partition.instances(*({"features": row["features"]} for row in rows[:200]), key="b")
    gauges = gauges_of(partition)
    models = [partition.model(key) for key in "ab"]
    assert models[0].summary().nodes > models[1].summary().nodes == 1
    assert gauges["grove_tree_nodes",] == sum(model.summary().nodes for model in models)
    assert gauges["grove_model_bytes",] == sum(model.nbytes for model in models)
    requests = models[1].summary().requests
    assert models[0].summary().requests == 0 < requests, "a has all its labels"
    assert gauges["grove_label_budget_ratio", "nominal"] == pytest.approx(0.3)
    assert gauges["grove_label_budget_ratio", "spent"] == requests / 600
    partition.control("delete", key="b")
    assert gauges_of(partition)["grove_label_budget_ratio", "spent"] == 0


def test_a_tree_that_may_not_grow_says_so() -> None:
    learner = {"name": "h-tree", "grace_period": 20, "delta": 0.1, "tau": 0.3, "max_leaves": 1}
    partition = Partition(config(NEVER | {"learner": learner, "evaluation": {"every": 5}}))
    partition.instances(*turned(400, 999))
    assert [notice.level for notice in partition.notices] == ["warning"]
    assert "1 leaves" in partition.notices[0].text
    assert partition.counts["models.growth-stopped"] == 1
    stopped = [message.json["growth_stopped"] for message in partition.sent["evaluations"]]
    assert (stopped[0], stopped[-1]) == (False, True)
    assert stopped == sorted(stopped)


def test_every_request_ends_once_and_labels_say_how_long_they_took() -> None:
    partition = Partition(config(ALWAYS, pending_ttl_ms=1_600))
    effects = [partition.instances(*({"features": {"x": i}, "id": f"i{i}"} for i in range(6)))]
    effects.append(partition.labels({"id": "i0", "label": "a"}, {"id": "i1", "label": "b"}, at=70))
    effects.append(partition.labels({"id": "i2", "declined": True}, {"id": "i0", "label": "a"}, at=80))
    assert partition.task.pending.outstanding == 3
    effects.append(partition.labels({"id": "i3", "label": "a"}, at=90))
    effects.append(partition.instances({"features": {"x": 1}, "id": "later"}, at=5_000))
    effects.append(partition.labels({"id": "i4", "label": "a"}, at=5_001))
    closed = sum((effect.closed for effect in effects), Counter[tuple[str, str]]())
    assert closed == {("always", "answered"): 3, ("always", "declined"): 1, ("always", "expired"): 2}
    assert partition.task.pending.outstanding == 1
    delays = [delay for effect in effects for delays in effect.label_delays for delay in delays.tolist()]
    assert delays == [70, 70, 90]
    account = Account.of(partition.model().ints)
    assert account.answered + account.declined + account.expired == closed.total()


def test_an_attribute_that_is_full_is_said_once_and_its_other_values_are_counted() -> None:
    """Whether values come with instances or with labels that bring their features."""
    partition = Partition(config(NEVER))
    partition.instances(*({"id": f"i{i}", "features": {"c": f"v{i}"}, "label": "a"} for i in range(1020)))
    for i in range(1020, 1030):
        partition.labels({"id": f"i{i}", "features": {"c": f"v{i}"}, "label": "b"})
    partition.instances({"id": "last", "features": {"c": "v1029"}, "label": "b"})
    notices = [notice for notice in partition.notices if "takes in no more" in notice.text]
    assert [(notice.level, "'c' has 1,024 values" in notice.text) for notice in notices] == [
        ("warning", True)
    ]
    assert partition.counts["features.unknown-values"] == 7
