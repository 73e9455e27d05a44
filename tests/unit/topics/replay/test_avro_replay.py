"""Rows in Avro are decoded to what the same rows in JSON are decoded to."""

import json
from typing import Any

import numpy as np
import pytest

from tests.unit.topics.codecs.compiled.same import assert_same
from tests.unit.topics.memory_dataset import MemoryDataset
from topics.codecs.avro.avro_schema import AvroSchema
from topics.codecs.avro.reader import AvroReader
from topics.codecs.batch import Batch
from topics.codecs.frames.wire_format import PREFIX_BYTES, id_before_body
from topics.codecs.json.reader import read_instances, read_labels
from topics.codecs.limits import Limits
from topics.columns.spans import Spans
from topics.replay import ReplayPlan
from topics.replay.avro_writer import AvroWriter
from topics.replay.emission import RowEmitter, Rows
from topics.replay.owed import LabelRows
from topics.replay.row_keys import KeyRing

NAMES = ("amount", "2 days (€)", "colour", "2_days___")
LIMITS = Limits()


class Registered:
    def __init__(self) -> None:
        self.schemas: dict[int, tuple[str, str, str]] = {}

    def __call__(self, topic: str, record_name: str, text: str) -> int:
        self.schemas[len(self.schemas) + 1] = topic, record_name, text
        return len(self.schemas)

    def reader(self, value: bytes) -> AvroReader:
        schema_id = id_before_body(value)
        assert schema_id is not None
        return AvroReader(AvroSchema.of(self.schemas[schema_id][2]))


def dataset() -> MemoryDataset:
    x = np.array([[1.5, np.nan, 0.0, 3.0], [-0.0, 7.0, np.nan, np.nan], [2.0, 1e300, 1.0, 0.5]])
    return MemoryDataset(
        x,
        np.array([0, 1, 0]),
        names=NAMES,
        values=((), (), ("red", "blü"), ()),
        classes=("yes", "no"),
    )


def batch(values: list[bytes]) -> Batch:
    n = len(values)
    zeros = np.zeros(n, dtype=np.int32)
    return Batch(3, np.arange(n, dtype=np.int32), list(range(n)), Spans.of(values), ["m"], zeros)  # type: ignore[arg-type]


def sent(plan: ReplayPlan, writer: AvroWriter | None) -> tuple[list[bytes], list[bytes]]:
    data = dataset()
    ((x, y),) = data.batches(10)
    numbers = np.arange(len(y))
    codes = y.astype(np.int32)
    with_instance = codes if plan.labels == "with" else np.full_like(codes, -1)
    rows = Rows(numbers, x, with_instance, numbers.astype(np.float64), numbers)
    labels = (
        LabelRows(numbers.astype(np.float64) + np.float64(0.5), numbers, codes, numbers)
        if plan.labels == "apart"
        else None
    )
    none = np.empty(0)
    labels = labels or LabelRows(none, none.astype(np.int64), none.astype(np.int32), none.astype(np.int64))
    out = RowEmitter(plan, data, KeyRing(plan, 4), writer).emit(rows, labels)
    by_topic: dict[str, list[bytes]] = {plan.names.instances: [], plan.names.labels: []}
    for topic, value in zip(out.topics, out.values, strict=True):
        by_topic[topic].append(value)
    return by_topic[plan.names.instances], by_topic[plan.names.labels]


@pytest.mark.parametrize("by_name", [True, False])
@pytest.mark.parametrize("labels", ["with", "apart", "none"])
@pytest.mark.parametrize("ids", [True, False])
def test_rows_have_the_columns_of_json(by_name: bool, labels: str, ids: bool) -> None:
    if labels == "apart" and not ids:
        return
    options: dict[str, Any] = {"by_name": by_name, "labels": labels, "ids": ids}
    registered = Registered()
    plan = ReplayPlan(format="avro", **options)
    ours, our_labels = sent(plan, AvroWriter(plan, dataset(), registered))
    theirs, their_labels = sent(ReplayPlan(format="json", **options), None)
    reader = registered.reader(ours[0])
    bodies = [value[PREFIX_BYTES:] for value in ours]
    assert_same(reader.read_instances(batch(bodies), LIMITS), read_instances(batch(theirs), LIMITS))
    if labels == "apart":
        reader = registered.reader(our_labels[0])
        bodies = [value[PREFIX_BYTES:] for value in our_labels]
        assert_same(reader.read_labels(batch(bodies), LIMITS), read_labels(batch(their_labels), LIMITS))
    topics = [(topic, name) for topic, name, _ in registered.schemas.values()]
    expected = [("grove.instances", "Instance"), ("grove.labels", "Label")]
    assert topics == (expected if labels == "apart" else expected[:1])


def test_names_of_fields_are_different_and_allowed() -> None:
    registered = Registered()
    AvroWriter(ReplayPlan(format="avro"), dataset(), registered)
    fields = json.loads(registered.schemas[1][2])["fields"][1]["type"]["fields"]
    assert [field["name"] for field in fields] == ["amount", "_2_days____", "colour", "_2_days___"]
    assert [field.get("streamgrove.name") for field in fields] == [None, "2 days (€)", None, "2_days___"]
