"""Runs of JSON, packed records and Arrow blocks: a worker makes of them what the codecs do."""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property import test_columnar, test_packed_forms
from tests.property.test_columnar import KEYS, Both, compare_many
from tests.tiers import examples
from tests.unit.topics.codecs.samples import stream

COLUMNS: dict[str, list[Any]] = {
    "a": [1.5, float("nan"), None, -0.0],
    "b": [1.0, 2.0, float("inf"), 3.0],
    "é": ["red", None, "blü", "red"],
    "id": ["x", "y", "z", "é"],
    "label": ["yes", "no", None, "yes"],
    "weight": [1.0, 2.5, None, 0.0],
    "annotator": ["ann", None, "bob", "ann"],
    "declined": [False, None, True, False],
}


class Producer:
    """Writes blocks with the same columns, now and then with an odd cell, a wrong byte or cut off."""

    def __init__(self, rng: random.Random, oddness: float) -> None:
        self._rng, self._oddness = rng, oddness
        self._names = rng.sample(list(COLUMNS), rng.randint(1, len(COLUMNS)))
        self._coded = rng.random() < 0.5

    def record(self) -> bytes:
        rng = self._rng
        rows = rng.randint(1, 5)
        columns = {name: self._column(name, rows) for name in self._names}
        value = bytearray(stream(pa.table(columns).combine_chunks()))
        if rng.random() < self._oddness:
            at = rng.randrange(len(value))
            value[at : at + rng.randint(0, 2)] = rng.randbytes(rng.randint(0, 2))
        return bytes(value[: rng.randrange(len(value))] if rng.random() < self._oddness / 4 else value)

    def _column(self, name: str, rows: int) -> pa.Array:
        cells = COLUMNS[name] if self._rng.random() < self._oddness else COLUMNS[name][:1]
        column = pa.array([self._rng.choice(cells) for _ in range(rows)])
        return column.dictionary_encode() if self._coded and pa.types.is_string(column.type) else column


def runs(seed: int, n_runs: int, rows: int) -> Iterator[list[bytes | None]]:
    """Yield the values of runs by a few producers of any format that take turns."""
    rng = random.Random(seed)
    kinds = (test_columnar.Producer, test_packed_forms.Producer, Producer)
    producers = [rng.choice(kinds)(rng, rng.choice([0.0, 0.02, 0.3])) for _ in range(rng.choice([1, 2, 5]))]
    for _ in range(n_runs):
        yield [rng.choice(producers).record() for _ in range(rng.randint(1, rows))]


@settings(max_examples=examples(100))
@given(st.integers(0, 2**63))
def test_both_ways_lead_to_the_same(seed: int) -> None:
    both, rng = Both(), random.Random(seed)
    for values in runs(seed, 3, 30):
        both.compare(values, rng.choices(KEYS[:4], k=len(values)))


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_a_million_records_lead_to_the_same() -> None:
    compare_many(runs, 1_000_000, 500)


def test_blocks_stay_together_among_other_records() -> None:
    """What the comparison above is about has to come about."""
    table = pa.table({"a": np.arange(3.0), "label": ["0", "1", "0"]})
    packed = test_packed_forms.Producer(random.Random(1), 0.0)
    values: list[bytes | None] = []
    for number in range(10):
        values += [stream(table), b'{"features":[%d]}' % number, packed.record()]
    Both().compare(values)
