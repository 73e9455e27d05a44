"""A real data set through the real worker: complete, in order, and what the trees say without Kafka."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from core.measures.named_measures import defined, named
from core.model.model import Model
from core.model_table import ModelTable
from core.schema.schema import Schema
from core.spec import Spec
from tests.broker.workers import Installation
from tests.conftest import Broker
from topics.clients.partitioner import partition_of
from topics.codecs import decode_predictions
from topics.columns.records import Format
from topics.readers import Dataset, open_dataset
from topics.replay import Replay, ReplayPlan

pytestmark = pytest.mark.broker

A9A = Path(__file__).parents[2] / "examples" / "data" / "a9a.gz"
ROWS = 4000
EVERY = 700  # not a divisor of any batch size on the way
PARTITIONS = 4
KEYS = ("north", "west")
SPEC = {
    "learner": {"name": "h-tree", "leaf_model": "nba", "grace_period": 100, "delta": 0.01, "tau": 0.1},
    "query": {"name": "never"},
    "drift": {"name": "ddm"},
    "evaluation": {"window": 300, "every": EVERY, "worth": 0.005},
}

Answer = tuple[str | None, int]  # class name, version


def rows_of(dataset: Dataset) -> Iterator[tuple[np.ndarray, str]]:
    """Yield (x float64[d], class name) of the first rows."""
    rows = (
        (x, code)
        for values, codes in dataset.batches(500)
        for x, code in zip(values, codes.tolist(), strict=True)
    )
    for x, code in itertools.islice(rows, ROWS):
        yield x, dataset.classes[code]


def offline(dataset: Dataset) -> tuple[list[Answer], list[dict[str, Any]], Model]:
    """Return answers, evaluations and model of a plain run, row by row, without Kafka and tasks.

    The schema follows the first record, and a class joins it with its first label.
    """
    spec, table = Spec.parse(SPEC), ModelTable()
    schema = Schema.infer(dataset.names, dataset.kinds, max_classes=spec.max_classes)
    index = table.add(Model.create(spec, schema))
    answers: list[Answer] = []
    evaluations: list[dict[str, Any]] = []
    seen: Counter[str] = Counter()
    for version, (x, name) in enumerate(rows_of(dataset)):
        known = schema.classes
        if name not in known:
            schema = schema.with_class(name)
            table.model(index).adopt(schema)
            table.refresh(index)
        label = np.array([schema.class_code(name)], dtype=np.int32)
        answer = table.answer(np.array([index]), x[np.newaxis], label, np.ones(1))
        assert answer.version.tolist() == [version], "every label is learned before the next row"
        code = int(answer.prediction[0])
        seen[name] += code >= 0  # what nothing was predicted for is judged by nobody
        answers.append((known[code] if code >= 0 else None, version))
        if (version + 1) % EVERY == 0:
            measures = table.model(index).evaluation().to_dict() | {"version": version + 1}
            members = {name: _as_json(value) for name, value in measures.items()}
            kept = table.model(index).measures()
            assert kept is not None
            most = sorted(
                (code for code, name in enumerate(known) if seen[name]), key=lambda c: -seen[known[c]]
            )
            members |= defined(named(kept, schema.classes, most))
            curve = table.model(index).learning_curve()
            assert curve is not None
            members |= defined(curve.to_dict()) | {"challenge": None}
            members |= dict.fromkeys(("coverage", "coverage_low", "coverage_high", "set_size"))
            evaluations.append(members | {"classes": dict(seen)})
    return answers, evaluations, table.model(index)


def _as_json(value: Any) -> Any:
    """Return a measure as it is in a record: what is not known yet (NaN) is null."""
    return None if isinstance(value, float) and math.isnan(value) else value


@pytest.mark.parametrize("form", ["json", "packed"])
def test_a_replayed_data_set_is_answered_as_without_kafka(
    broker: Broker, tmp_path: Path, form: Format
) -> None:
    place = Installation(
        broker.bootstrap_servers, "replayed.", PARTITIONS, tmp_path, module="streamapp worker"
    )
    homes = {key.encode(): partition_of(key.encode(), PARTITIONS) for key in KEYS}
    assert len(set(homes.values())) == len(KEYS), "keys of different partitions"
    dataset = open_dataset([A9A])
    answers, evaluations, model = offline(dataset)
    assert model.summary().splits > 3, "the comparison is about trees"
    with place.worker("w", GROVE_MODEL_SPEC=orjson.dumps(SPEC).decode()) as worker:
        plan = ReplayPlan(names=place.names, keys=KEYS, records=ROWS, format=form)
        report = Replay(dataset, plan, {"bootstrap.servers": place.servers}).run()
        worker.wait_until_ready()
        place.wait_for_lag_0(alive=[worker])
        assert worker.terminate() == 0
    assert report.instances == len(KEYS) * ROWS
    predictions = list(place.raw(place.names.predictions))
    assert len(predictions) == len(KEYS) * ROWS
    for key, home in homes.items():
        mine = [message for message in predictions if message.key() == key]
        assert {message.partition() for message in mine} == {home}
        answers_read = decode_predictions([message.value() for message in mine])
        assert answers_read.malformed == []
        assert answers_read.ids == [str(row) for row in range(ROWS)], "each once, in order"
        differing = (
            row
            for row, answer in enumerate(zip(answers_read.labels, answers_read.version.tolist(), strict=True))
            if answer != answers[row]
        )
        assert next(differing, None) is None
    reported = place.read(place.names.evaluations)
    for key, home in homes.items():
        mine = [report for report in reported if report["key"] == key]
        assert {report.pop("partition") for report in mine} == {home}
        assert [report["labels"] for report in mine] == list(range(EVERY, ROWS + 1, EVERY))
        assert mine == [{"key": key} | evaluation for evaluation in evaluations]
    assert list(place.raw(place.names.dead_letters)) == []
