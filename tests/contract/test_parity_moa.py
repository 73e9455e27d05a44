"""Our tree with ``compat="moa"`` does what MOA's did, split by split and prediction by prediction.

The golden file holds the side of MOA, so that neither Java nor a network is needed. Whole streams are
compared with MOA itself by ``python -m benchmarks.parity``.
"""

import json
from pathlib import Path

import pytest

from benchmarks.datasets import GENERATED, REAL, MissingDatasetError, load
from benchmarks.parity import first_difference, in_words
from benchmarks.peers import grove_tree
from benchmarks.peers.result import Task
from tests.golden.renew import HAT_STREAMS, RECORDS, crc, curve, hat_rows

GOLDEN = Path(__file__).parents[1] / "golden"
TREES = json.loads((GOLDEN / "moa_trees.json").read_text(encoding="utf-8"))
EFDT = json.loads((GOLDEN / "moa_efdt.json").read_text(encoding="utf-8"))
HAT = json.loads((GOLDEN / "moa_hat.json").read_text(encoding="utf-8"))
CURVES = json.loads((GOLDEN / "curves.json").read_text(encoding="utf-8"))
STREAMS = (*GENERATED, *REAL)


def rows_of(stream):
    try:
        return load(stream, RECORDS)
    except MissingDatasetError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("leaf_model", ["mc", "nb", "nba"])
@pytest.mark.parametrize("stream", STREAMS)
def test_the_tree_of_moa(stream, leaf_model):
    golden = TREES[stream][leaf_model]
    model, trace = grove_tree.trace(rows_of(stream), Task(leaf_model=leaf_model, compat="moa"))
    ours = [in_words(record, split) for record, split in trace.splits]
    theirs = [tuple(split) for split in golden["splits"]]
    assert first_difference(ours, theirs) == ""
    assert crc(trace.predictions) == golden["predictions"]
    summary = model.summary()
    assert (summary.leaves, summary.depth) == (golden["leaves"], golden["depth"])


@pytest.mark.parametrize("stream", STREAMS)
def test_the_efdt_of_moa(stream):
    golden = EFDT[stream]
    task = Task(learner="efdt", leaf_model="nba", compat="moa")
    model, trace = grove_tree.trace(rows_of(stream), task)
    assert crc(trace.predictions) == golden["predictions"]
    summary = model.summary()
    assert (summary.splits, summary.leaves, summary.depth) == tuple(
        golden[k] for k in ("splits", "leaves", "depth")
    )


@pytest.mark.parametrize("leaf_model", ["mc", "nb", "nba"])
@pytest.mark.parametrize("stream", HAT_STREAMS)
def test_the_adaptive_tree_of_moa(stream, leaf_model):
    """Every prediction: what replaces what, when, and the random weights of records are MOA's."""
    try:
        rows = hat_rows(stream)
    except MissingDatasetError as error:
        pytest.skip(str(error))
    task = Task("hat", leaf_model, compat="moa", grace_period=50, delta=0.01)
    _, trace = grove_tree.trace(rows, task)
    assert crc(trace.predictions) == HAT[stream][leaf_model]


def test_the_golden_trees_are_worth_comparing():
    splits = {stream: len(TREES[stream]["mc"]["splits"]) for stream in STREAMS}
    assert sum(splits.values()) > 30
    assert sum(count > 0 for count in splits.values()) >= 6


@pytest.mark.parametrize("leaf_model", ["mc", "nb", "nba"])
@pytest.mark.parametrize("stream", STREAMS)
def test_the_learning_curve_is_the_one_it_was(stream, leaf_model):
    """Default mode; renewed with ``python -m tests.golden.renew curves`` when it was meant to change."""
    assert curve(rows_of(stream), leaf_model) == CURVES[stream][leaf_model]
