"""With ``compat="cdt"`` our trees are those of the published code of Confidence Decision Trees.

C-Tree and H-Tree are compared with what that code was seen to do on whole streams: accuracy, leaves, depth.
The others are MOA's tree with some options, and a criterion; a golden file holds MOA's side.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.datasets import MissingDatasetError, load
from benchmarks.parity import first_difference, in_words
from core.events import Split
from core.model.model import Model
from core.model_table import ModelTable
from core.spec import Spec
from tests.golden.renew import RECORDS

TREES = json.loads((Path(__file__).parents[1] / "golden" / "cdt_trees.json").read_text(encoding="utf-8"))
SETTING = {"compat": "cdt", "grace_period": 100, "tau": 0.0, "binary_splits": True, "leaf_model": "mc"}
C_TREE = {"name": "c-tree", "compat": "cdt", "freeze_null": True}
SEA = "gen:sea?balanced=true&rng=java"
H_TREE = {"name": "h-tree", "criterion": "gini"} | SETTING


def rows_of(stream, records=None):
    try:
        return load(stream, records)
    except MissingDatasetError as error:
        pytest.skip(str(error))


def grown(rows, learner):
    """Return how many records are answered right before they are learned, the summary, and the splits."""
    table = ModelTable()
    spec = {"learner": learner, "evaluation": {"every": 0}}
    index = table.add(Model.create(Spec.parse(spec), rows.schema))
    right, splits = 0, []
    for first in range(0, len(rows.y), 2000):
        x, y = rows.x[first : first + 2000], rows.y[first : first + 2000]
        answers = table.answer(np.full(len(y), index), x, y, np.ones(len(y)))
        right += int((np.maximum(answers.prediction, 0) == y).sum())  # before any label CDT's code says 0
        splits += [(first + event.row, event) for event in answers.events if isinstance(event, Split)]
    return right, table.model(index).summary(), splits


@pytest.mark.parametrize(
    ("stream", "learner", "accuracy", "leaves", "depth"),
    [
        ("electricity", C_TREE | {"c": 0.005}, 75.287, 44, 19),
        ("electricity", C_TREE | {"c": 0.05}, 75.726, 25, 15),
        ("electricity", C_TREE | {"c": 0.5}, 73.810, 13, 7),
        ("electricity", H_TREE | {"delta": 1e-7}, 74.642, 8, 5),
        ("electricity", H_TREE | {"delta": 1e-2}, 76.150, 22, 7),
        ("electricity", {"name": "mcdiarmid-tree", "compat": "cdt", "delta": 1e-7}, 57.539, 1, 0),
        (SEA, C_TREE | {"c": 0.005}, 87.778, 74, 14),
        (SEA, C_TREE | {"c": 0.05}, 85.997, 17, 7),
        (SEA, {"name": "mcdiarmid-tree", "compat": "cdt", "delta": 1e-7}, 49.998, 1, 0),
    ],
)
def test_the_trees_of_the_published_code(stream, learner, accuracy, leaves, depth):
    rows = rows_of(stream, 100_000)
    right, summary, _ = grown(rows, learner)
    assert round(100.0 * right / len(rows.y), 3) == accuracy
    assert (summary.leaves, summary.depth) == (leaves, depth)


@pytest.mark.parametrize(("name", "stream"), [(name, stream) for name in TREES for stream in TREES[name]])
def test_the_trees_that_are_those_of_moa_with_other_options(name, stream):
    for golden in TREES[name][stream]:
        settings = {"name": name, "delta": golden["delta"]} | SETTING
        learner = settings | ({"criterion": "gini"} if name == "h-tree" else {})
        _, summary, splits = grown(rows_of(stream, RECORDS), learner)
        theirs = [tuple(split) for split in golden["splits"]]
        assert first_difference([in_words(record, split) for record, split in splits], theirs) == ""
        assert (summary.leaves, summary.depth) == (golden["leaves"], golden["depth"])
