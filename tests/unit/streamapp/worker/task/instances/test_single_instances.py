"""Single instances are what a run of each record alone is decoded to."""

import random

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from streamapp.worker.task.instances.single import SingleInstances
from tests.property import test_mixed_formats
from tests.property.test_columnar import KEYS, LIMITS
from tests.tiers import examples
from tests.unit.topics.codecs.compiled.same import assert_same
from tests.unit.topics.codecs.samples import run_of, stream
from topics.codecs.compiled.decode import InstanceDecoder


@settings(max_examples=examples(50))
@given(st.integers(0, 2**63))
def test_each_is_what_its_record_is_alone(seed: int) -> None:
    rng, decode = random.Random(seed), InstanceDecoder()
    for values in test_mixed_formats.runs(seed, 2, 30):
        raw = run_of(values, keys=rng.choices(KEYS, k=len(values)))
        batch = decode(raw, LIMITS)
        single = SingleInstances(batch)
        left = {each.record for each in batch.malformed} | set(batch.blocks[:, 0].tolist())
        for record in range(len(values)):
            found = single.of(record)
            assert (found is None) == (record in left)
            if found is not None:
                assert_same(found, decode(raw.part(record, record + 1), LIMITS))


def test_texts_labels_and_ids_are_those_of_the_record() -> None:
    block = stream(pa.table({"a": np.arange(2.0)}))
    values = [
        b'{"features":{"a":"red","b":1},"label":"yes"}',
        b'{"features":{"a":2,"b":null},"label":"no"}',
        b"not JSON",
        block,
        b'{"id":"x","features":{"a":"blue","b":3},"weight":2}',
    ]
    single = SingleInstances(InstanceDecoder()(run_of([*values]), LIMITS))
    found = [single.of(record) for record in range(len(values) + 1)]
    assert [each is None for each in found] == [False, False, True, True, False, True]
    first, second, _, _, last, _ = found
    assert first is not None and second is not None and last is not None
    assert first.features[0].strings == {0: ["red"]}
    assert second.features[0].strings == {}
    assert (first.label_values, second.label_values, last.label_values) == (["yes"], ["no"], [])
    assert (first.ids[0], last.ids[0]) == ("3-100", "x")
    assert last.weight.tolist() == [2.0]
