"""The worst records within `record.max.bytes`: what becomes of each, in how many steps, what stays."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.worst_records import KEY, WorstRecord, worst_records
from core.model.model import Model
from core.schema import shared
from streamapp.worker.task.models.schema_growth import SchemaGrowth
from streamapp.worker.task.models.schemas.feature_placement import Placement
from tests.topology.partition import Partition, Record, config
from topics.codecs import Limits

SIZE = 1 << 19
CONSTANT = 16 << 20
CORPUS = list(worst_records(SIZE))
STEPS = ((Placement, "parts"), (SchemaGrowth, "grow"), (SchemaGrowth, "adopt"), (Model, "adopt"))


def partition_for(worst: WorstRecord) -> Partition:
    partition = Partition(config(limits=Limits(record_max_bytes=SIZE)))
    if worst.before is not None:
        partition.feed(Record("instances", KEY, worst.before))
        partition.sent.clear()
    return partition


def feed(partition: Partition, worst: WorstRecord) -> None:
    partition.feed(Record(worst.source, KEY, worst.value, headers=worst.headers))


def held(partition: Partition) -> int:
    """Return the bytes a partition counts as held, those that models share included."""
    task = partition.task
    models = sum(scale.nbytes for _, scale in task.models.scales())
    imports = sum(incoming.size for incoming in task._state.imports.image().values())
    return models + imports + task.pending.bytes + task._state.early.bytes + shared.TALLY.bytes


@pytest.mark.parametrize("worst", CORPUS, ids=lambda worst: f"{worst.source}-{worst.form}-{worst.name}")
def test_a_record_has_one_outcome_and_costs_no_more_than_its_bytes(
    worst: WorstRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = partition_for(worst)
    before, steps = held(partition), count_steps(monkeypatch)
    feed(partition, worst)
    assert [letter.reason for letter in partition.dead_letters] == ([worst.reason] if worst.reason else [])
    answered = partition.counts.get("instances.answered", 0) - (worst.before is not None)
    assert answered == worst.answers
    assert len(partition.sent["predictions"]) == (1 if worst.answers else 0)
    assert held(partition) - before <= 10 * len(worst.value) + CONSTANT
    assert steps["grow"] <= 2 + 64  # two for features and values, one for each class of models.max.classes
    assert all(steps[name] <= 4 for name in ("parts", "adopt_grown", "adopt"))


def count_steps(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count how often rows are parted, schemas grow and models are laid out anew from now on."""
    counts: Counter[str] = Counter()

    def counted(owner: type, name: str) -> None:
        method = getattr(owner, name)

        def call(*arguments: object) -> object:
            counts[name] += 1
            return method(*arguments)

        monkeypatch.setattr(owner, name, call)

    for owner, name in STEPS:
        counted(owner, name)
    return counts


def test_the_corpus_has_all_inputs_and_formats_with_a_plain_record_of_each() -> None:
    inputs = {(worst.source, worst.form) for worst in CORPUS}
    assert {source for source, _ in inputs} == {"instances", "labels", "controls"}
    assert {form for _, form in inputs} == {"json", "packed", "arrow"}
    assert len([worst for worst in CORPUS if worst.plain]) >= 5
    assert all(len(worst.value) <= SIZE for worst in CORPUS)
