"""The learning curve in evaluations: its members, late labels, and the same after a restore."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamapp.tools.inspection.model_answers import curve_lines, learned
from streamapp.web.charts.accuracy_chart import MORE, forecast_chart
from streamapp.web.pages.model.measure_words import advice_in_words
from streamapp.worker.task.task import Task
from tests.topology.partition import ALWAYS, PARTITION, Partition, config

MEMBERS = [f"{name}{end}" for name in ("accuracy_forecast", "gain_forecast") for end in ("", "_low", "_high")]


def settings(**evaluation: Any) -> Any:
    return config(
        ALWAYS | {"evaluation": {"every": 300, "worth": 0.005, **evaluation}}, pending_ttl_ms=1_000_000
    )


def played(partition: Partition, n: int = 600, delay: int = 50, restored_at: int = -1) -> list[Any]:
    """Answer instances, send each label later, and return the evaluations sent."""
    draw = np.random.default_rng(1)
    x = draw.uniform(0, 10, n).round(2).tolist()
    for start in range(0, n, delay):
        part = range(start, min(start + delay, n))
        partition.instances(*({"features": {"x": x[i]}, "id": f"i{i}"} for i in part), at=start)
        if start == restored_at:
            units = list(partition.task.cut().units())
            partition.task = Task.from_units(PARTITION, settings(), None, units)
        partition.labels(*({"id": f"i{i}", "label": "ab"[x[i] > 5.0]} for i in part), at=start)
    return [record.json for record in partition.sent["evaluations"]]


def test_an_evaluation_has_the_curve_the_forecast_and_the_advice() -> None:
    partition = Partition(settings())
    first, second = played(partition)
    assert second["advice"] in ("stop", "go on")
    assert 0.0 <= second["gain_forecast_low"] <= second["gain_forecast"] <= second["gain_forecast_high"]
    assert second["accuracy_forecast_low"] < second["accuracy_forecast"] <= second["accuracy_forecast_high"]
    curve = second["learning_curve"]
    assert curve["labels"] == [[64 * i, 64 * (i + 1)] for i in range(9)]
    assert all(low <= value <= high for value, low, high in curve["accuracy"])
    assert first["learning_curve"]["labels"][0] == [32, 64]  # the first records were answered with no class
    found = learned(partition.model())
    assert found is not None
    assert {name: found[name] for name in MEMBERS} == {name: second[name] for name in MEMBERS}
    assert curve_lines(found)[0] == f"labels: {second['advice']}"
    assert "500 more labels" in curve_lines(found)[1]
    assert advice_in_words(second).endswith("the bands are of 90 %.")


def test_a_restored_partition_sends_the_same_curve() -> None:
    live, restored = Partition(settings()), Partition(settings())
    assert played(live) == played(restored, restored_at=250)
    assert live.task.digest() == restored.task.digest()


@pytest.mark.parametrize("worth", [0.0, 0.005])
def test_without_a_curve_or_with_few_labels_there_is_no_forecast(worth: float) -> None:
    (sent,) = played(Partition(settings(every=60, worth=worth)), n=60)
    assert {sent[name] for name in MEMBERS} == {None}
    kept = worth > 0.0
    assert sent["advice"] == ("go on" if kept else None)
    assert (sent["learning_curve"] is not None) == kept
    assert advice_in_words(sent).startswith("Go on" if kept else "No advice")
    assert f"forecast for {MORE} more labels" not in forecast_chart(sent).options["legend"]["data"]


def test_the_page_draws_the_curve_and_its_forecast() -> None:
    sent = played(Partition(settings()))[-1]
    drawing = forecast_chart(sent)
    known = [row for row in drawing.rows if row[1]]
    assert len(known) == len(sent["learning_curve"]["labels"])
    assert known[0][0] == "32"
    forecast = [100 * sent[f"accuracy_forecast{end}"] for end in ("", "_low", "_high")]
    ahead = "{:.1f} % ({:.1f} to {:.1f})".format(*forecast)
    assert drawing.rows[-1] == [f"{sent['labels'] + MORE:,}", "", ahead]
