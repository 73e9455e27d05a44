"""The schema of the demo's data set: ranges are for learners that do not do without."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from streamapp.demo.models import read_models
from streamapp.demo.run import DemoPlan, read_truth
from streamapp.demo.schema import extent_of, schema_for, schema_of
from tests.unit.topics.memory_dataset import MemoryDataset

NAN = np.nan


def test_ranges_are_those_of_all_batches() -> None:
    first = extent_of(None, np.array([[1.0, NAN, 3.0, NAN], [2.0, NAN, 3.0, 5.0]]))
    low, high = extent_of(first, np.array([[-4.0, NAN, 3.0, NAN]]))
    dataset = MemoryDataset(np.zeros((1, 4)), [0], values=((), (), (), ("a", "b")))
    attributes = schema_of(dataset, (low, high))["attributes"]
    ranges = [attribute.get("range") for attribute in attributes]
    assert ranges == [[-4.0, 2.0], [0.0, 1.0], [3.0, 4.0], None]
    assert all("range" not in attribute for attribute in schema_of(dataset)["attributes"])


def test_only_a_learner_that_needs_ranges_gets_them(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("x,y,class\n1,2,no\n5,2,yes\n3,2,no\n", encoding="ascii")
    truth = read_truth(DemoPlan(data=str(path), target="class", features=True))
    asks, path_buyer = read_models(['asks={"learner": "ufodt"}', 'path={"acquire": "path"}'], features=True)
    assert schema_for(path_buyer.spec, truth.schema, truth.ranged_schema) is truth.schema
    ranged = schema_for(asks.spec, truth.schema, truth.ranged_schema)
    assert [each["range"] for each in ranged["attributes"]] == [[1.0, 5.0], [2.0, 3.0]]
    assert asks.asks == "by utility"
