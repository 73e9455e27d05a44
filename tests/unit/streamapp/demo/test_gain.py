"""The demo's table without a broker: the trees learn, and labels of unsure answers are worth more."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from core.kernels import jit
from core.model.model import Model
from core.model_table import ModelTable
from core.spec import Spec
from streamapp.demo.demo_models import MODELS
from streamapp.demo.demo_plan import DemoPlan
from streamapp.demo.demo_run import read_truth
from streamapp.demo.tally import Truth
from streamapp.lab.datasets import FollowingSchema, open_data

pytestmark = pytest.mark.skipif(jit.DISABLED, reason="400,000 records are for compiled code")

ALL, UNSURE, RANDOM = (model.spec for model in MODELS)
LATE = 300
"""Rows until a label has come back, about as many as in the demo: answers and labels take turns."""

Answers = npt.NDArray[np.bool_]


@cache
def rows() -> tuple[npt.NDArray[np.float64], Truth, FollowingSchema]:
    plan = DemoPlan()
    dataset = open_data(plan.address)
    following = FollowingSchema(dataset, 64)
    x = []
    for batch in dataset.batches():
        following.follow(batch)
        x.append(batch[0])
    return np.concatenate(x), read_truth(plan), following


def right(spec: Mapping[str, Any], late: int = LATE) -> tuple[Answers, int]:
    """Return which rows a model answers rightly, and the number of labels that it requests.

    late: rows from one return of labels to the next.
    """
    x, truth, following = rows()
    y = truth.codes
    table = ModelTable()
    index = table.add(Model.create(Spec.parse(dict(spec)), following.current))
    found = np.empty(len(y), np.bool_)
    labels = 0
    for begin in range(0, len(y), late):
        part = slice(begin, begin + late)
        n = len(y[part])
        which, none = np.full(n, index), np.full(n, -1, np.int32)
        answers = table.answer(which, x[part], none, np.ones(n))
        found[part] = answers.prediction == y[part]
        asked = answers.asked
        labels += int(asked.sum())
        table.learn(
            which[asked],
            x[part][asked],
            y[part][asked],
            np.ones(n)[asked],
            answers.prediction[asked],
            asked[asked],
            answers.sampled[asked],
        )
    return found, labels


def fifths(found: Answers) -> tuple[float, float]:
    """Accuracy over the first and over the last fifth of the stream."""
    fifth = rows()[1].fifth
    return float(found[:fifth].mean()), float(found[-fifth:].mean())


def test_the_three_are_one_tree_and_one_budget() -> None:
    assert ALL["learner"] == UNSURE["learner"] == RANDOM["learner"]
    assert UNSURE["budget"] == RANDOM["budget"] == {"name": "count", "limit": 0.1}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.key)
def test_the_accuracy_rises_above_the_commonest_class(model: Any) -> None:
    """The mean of three draws: a split that comes late in one of them costs its last fifth some points."""
    draws = [fifths(right({**model.spec, "seed": seed})[0]) for seed in (1, 2, 3)]
    first, last = np.mean(draws, axis=0)
    truth = rows()[1]
    assert last > first + 0.01
    assert last > truth.base_rate(slice(-truth.fifth, None)) + 0.03


@pytest.mark.parametrize("late", [100, 1500])
def test_a_tenth_where_unsure_is_worth_more_than_any_tenth_at_random(late: int) -> None:
    """Three draws of each, with labels that come back at once, or as late as the replay lets them."""
    asked = [right({**UNSURE, "seed": seed}, late) for seed in (1, 2, 3)]
    drawn = [right({**RANDOM, "seed": seed}, late) for seed in (1, 2, 3)]
    assert min(found.mean() for found, _ in asked) > max(found.mean() for found, _ in drawn)
    assert all(abs(n / (0.1 * len(found)) - 1) < 0.03 for found, n in asked + drawn)
