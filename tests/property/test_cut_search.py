"""A search that is skipped would have found nothing: the same trees as with a search at every label."""

import numpy as np
import pytest

from core.events import Split
from core.model.model import Model
from core.model_table import ModelTable
from core.spec import Spec
from tests.tiers import examples
from tests.unit.core.builders import schema_of

PARTS = 16
STREAMS = 64
"""Streams of a part, where the gate has so many: two thousand of them."""


def spec_of(draw):
    """Return a learner at random: bounds, sizes, δ and how many rows a leaf keeps."""
    bound = draw.choice(["credible", "credible", "credible", "hoeffding", "three-interval"])
    kind = draw.choice(["entropy", "variance", "stddev"]) if bound == "credible" else "entropy"
    # Few values of δ: each has a table of bounds that is filled once.
    delta = draw.choice([0.01, 0.1, 0.3, 0.45]) if bound == "credible" else draw.choice([0.001, 0.3])
    return {
        "name": "boct",
        "bound": str(bound),
        "heterogeneity": str(kind),
        "delta": float(delta),
        "sizes": str(draw.choice(["stream", "pool", "labelled"])),
        "capacity": int(draw.choice([4, 12, 40, 2000])),
    }


def records_of(draw):
    """Return a schema and records: few or many values, some missing, labels from clear to mere noise."""
    n, d = int(draw.integers(30, 160)), int(draw.integers(1, 4))
    kinds = [int(draw.integers(2, 5)) if draw.random() < 0.3 else None for _ in range(d)]
    x = np.column_stack(
        [
            draw.random(n).round(int(draw.integers(1, 6))) if k is None else draw.integers(0, k, n)
            for k in kinds
        ]
    ).astype(np.float64)
    noise, share = draw.choice([0.0, 0.1, 0.5]), draw.choice([0.5, 0.9])
    y = (x[:, 0] > np.quantile(x[:, 0], share)) ^ (draw.random(n) < noise)
    if draw.random() < 0.2:
        y = draw.random(n) < 0.1
    if draw.random() < 0.4:
        x[draw.random(x.shape) < 0.15] = np.nan
    label = np.where(draw.random(n) < draw.choice([1.0, 0.4]), y, -1)
    return schema_of(*kinds), x, label.astype(np.int32)


def splits(learner, schema, x, label):
    spec = Spec.parse({"learner": learner, "query": "never", "evaluation": {"every": 0}})
    table = ModelTable()
    table.add(Model.create(spec, schema))
    zeros = np.zeros(len(x), dtype=np.int64)
    events = table.answer(zeros, x, label, np.ones(len(x))).events
    return [(e.row, e.node, e.attribute, e.test, e.value, e.merits) for e in events if isinstance(e, Split)]


@pytest.mark.parametrize("part", range(PARTS))
def test_skipped_searches_change_no_tree(part):
    n_events = 0
    for seed in range(examples(STREAMS)):
        draw = np.random.default_rng([part, seed])
        learner, rows = spec_of(draw), records_of(draw)
        one = splits(learner, *rows)
        other = splits({**learner, "exhaustive": True}, *rows)
        assert one == other, (part, seed)
        n_events += len(one)
    assert n_events > examples(STREAMS) // 4, "streams that never split show nothing"
