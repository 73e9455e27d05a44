"""Feature selection beside appendix E of the paper in NumPy: subsets, estimates, steps and projections."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from core.learners.ufodt import words as w
from core.learners.ufodt.open_episode import OpenEpisode, hand_in
from core.learners.ufodt.selection import BEGIN
from core.numeric import rng
from core.schema.schema import Attribute, Schema
from core.spec import Spec
from tests.unit.core.builders import table_of

N, EPISODES = 6, 30
EPSILON, STEP = 0.3, 0.5
RANGE = (-2.0, 2.0)


class Perceptrons:
    """One for each class against the rest; of two classes only the second has one."""

    def __init__(self, classes: int, few: int, radius: float, seed: int) -> None:
        self.few, self.radius = few, radius
        self.weights: dict[int, Any] = {}
        stream = rng.stream_key(seed, rng.EXPLORATION)
        for c in range(1 if classes == 2 else 0, classes):
            key = np.uint64(rng.bits(stream, BEGIN + c))
            draws = [rng.uniform(key, i) for i in range(N)]
            self.weights[c] = np.where(np.argsort(np.argsort(draws)) < few, 0.01, 0.0)

    def support(self) -> Any:
        """bool[n]: the features with the largest weights, of equal ones the first, never one without any."""
        largest = np.abs(list(self.weights.values())).max(axis=0)
        first = np.lexsort((np.arange(N), -largest))[: self.few]
        return np.isin(np.arange(N), first) & (largest > 0.0)

    def learn(self, x: Any, bought: Any, exploited: Any, label: int) -> None:
        """x: float64[n], scaled; bought, exploited: bool[n]."""
        chance = self.few / N * EPSILON + exploited * (1.0 - EPSILON)
        estimate = np.where(bought, x / chance, 0.0)
        for c, weights in self.weights.items():
            y = 1.0 if c == label else -1.0
            if y * weights[bought] @ x[bought] > 1.0:
                continue
            moved = weights + STEP * y * estimate
            moved *= min(1.0, self.radius / np.sqrt((moved**2).sum()))
            kept = np.lexsort((np.arange(N), -np.abs(moved)))[: self.few]
            self.weights[c] = np.where(np.isin(np.arange(N), kept), moved, 0.0)


@pytest.mark.parametrize(
    ("classes", "selected", "radius"), [(2, 2, 10.0), (3, 3, 10.0), (3, 0, 0.6)], ids=str
)
def test_subsets_and_weights_are_those_of_the_appendix(classes: int, selected: int, radius: float) -> None:
    few = selected or 3
    learner = {
        "name": "ufodt",
        "criterion": "random",
        "feature_selection": True,
        "selected": selected,
        "exploration": EPSILON,
        "step": STEP,
        "radius": radius,
    }
    kinds = [
        Attribute(f"x{i}", range=RANGE)
        if i % 2
        else Attribute(f"x{i}", "nominal", tuple("012"[: 2 + i // 4]))
        for i in range(N)
    ]
    spec = Spec.parse({"learner": learner, "evaluation": {"every": 0}, "seed": 11})
    table = table_of(Schema.of(kinds, "abc"[:classes]), spec)
    model = table.model(0)
    twin, random = Perceptrons(classes, few, radius, 11), np.random.default_rng(4)
    explored = projected = 0
    for _ in range(EPISODES):
        x = np.array([random.uniform(*RANGE) if i % 2 else random.integers(0, 2 + i // 4) for i in range(N)])
        label = int(x[1] > 0) if classes == 2 else int(x[1] > 0) + int(x[0])
        episode = OpenEpisode.begin(model, np.full(N, np.nan))
        arrays = model.plan.blocks.episode_arrays(episode.words)
        exploited = twin.support()
        assert arrays["exploited"].astype(bool).tolist() == exploited.tolist()
        chosen = arrays["status"] != w.LEFT_OUT
        assert chosen.sum() == few
        explored += not np.array_equal(chosen, exploited)
        while (feature := episode.next_feature().feature) is not None:
            assert chosen[feature]
            episode.observe(feature, x[feature])
        bought = arrays["status"] == w.BOUGHT
        episode.finish(model)
        hand_in(model, episode)
        one, observed = np.zeros(1, dtype=np.int64), episode.observed().reshape(1, -1)
        labels, places = np.array([label], np.int32), np.array([-1], np.int32)
        table.learn(one, observed, labels, np.ones(1), places, np.zeros(1, bool))
        # A number from 0 to 1 within its range, -1 or 1 of a bit, codes evenly from -1 to 1.
        scaled = np.array(
            [(x[i] + 2.0) / 4.0 if i % 2 else 2.0 * x[i] / (1.0 + i // 4) - 1.0 for i in range(N)]
        )
        twin.learn(scaled, bought, exploited, label)
        block = model.plan.blocks.named(model.ints, model.first)
        for c, weights in twin.weights.items():
            assert block["weights"][c] == pytest.approx(weights, rel=1e-9, abs=1e-12)
            projected += bool(np.isclose(np.linalg.norm(weights), radius, rtol=1e-6))
    assert explored > 2, "some episodes ask at random"
    assert (projected > 0) == (radius < 1.0)
