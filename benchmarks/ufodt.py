"""UFODT: episodes per second beside Algorithms 1 to 4 of its paper in NumPy, in the same run; JSON lines.

    python -m benchmarks.ufodt                      # every shape, ec2
    python -m benchmarks.ufodt --criterion ig

Times are CPU time of the process; pieces of both implementations alternate, so that other load on the machine
slows both down. The transcription keeps hypotheses as rows of an array, and uses one call of NumPy for an
operation over all of them. Its costs and its accuracy agree with ours up to chance: the output has both, for
the first records.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from core.learners.ufodt.account import feature_account
from core.model.model import Model
from core.model_table import LABELLED, ModelTable
from core.schema.schema import Attribute, Schema
from core.spec import Spec

NOISE: Final = 0.1
ATTEMPTS: Final = 64
COMPARED: Final = 400
"""Records whose costs and hits are compared before the measurement."""
PIECE: Final = 20
"""Episodes of the transcription between two of our pieces, which are forty times as large."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The bits, classes and hypotheses per class of the records: the sizes of the paper's data sets."""

    name: str
    bits: int
    classes: int
    hypotheses: int


SHAPES: Final = (
    Shape("Stagger", 4, 2, 12),
    Shape("LED", 7, 10, 95),
    Shape("Heart", 22, 2, 34),
    Shape("Zoo", 21, 7, 161),
    Shape("Compas", 12, 2, 500),
)


class Transcription:
    """Algorithms 1 to 4 for bits, with EC2, IG or US, as arrays."""

    def __init__(self, shape: Shape, criterion: str, seed: int) -> None:
        self.shape, self.criterion = shape, criterion
        self.random = np.random.default_rng(seed)
        self.alpha = np.ones((shape.classes, shape.bits))
        self.beta = np.ones((shape.classes, shape.bits))
        self.cost = 0
        self.hits = 0

    def hypotheses(self, theta: Any) -> Any:
        """Run Algorithm 4: draw distinct strings, each with a class drawn evenly (uint8[N, n])."""
        shape = self.shape
        distinct: dict[bytes, Any] = {}
        attempts_left = ATTEMPTS * shape.hypotheses
        for c in self.random.integers(0, shape.classes, shape.hypotheses):
            while attempts_left > 0:
                attempts_left -= 1
                h = (self.random.random(shape.bits) < theta[c]).astype(np.uint8)
                if h.tobytes() not in distinct:
                    distinct[h.tobytes()] = h
                    break
        return np.array(list(distinct.values()))

    def episode(self, x: Any, y: int) -> None:
        """Run Algorithms 1 to 3 for a record (uint8[n]) and its label."""
        shape = self.shape
        theta = self.random.beta(self.alpha, self.beta)
        strings = self.hypotheses(theta)
        joint = np.where(strings[:, None, :] == 1, theta, 1.0 - theta).prod(axis=2) / shape.classes
        region, weight = joint.argmax(axis=1), joint.sum(axis=1)
        rho = np.full(shape.classes, 1.0 / shape.classes)
        alive = np.ones(len(strings), dtype=bool)
        bought: list[int] = []
        while len(bought) < shape.bits:
            regions = region[alive]
            if len(regions) == 0 or (regions == regions[0]).all():
                break
            most = self.potential(alive, region, weight, rho)
            scores = np.full(shape.bits, -1.0)
            for feature in range(shape.bits):
                if feature in bought:
                    continue
                gain = 0.0
                for value in (0, 1):
                    likelihood = theta[:, feature] if value else 1.0 - theta[:, feature]
                    chance = float(rho @ likelihood)
                    rest = alive & (strings[:, feature] == value)
                    after = rho * likelihood / chance
                    gain += chance * (most - self.potential(rest, region, weight, after))
                scores[feature] = gain
            best = int(scores.argmax())
            bought.append(best)
            rho = rho * (theta[:, best] if x[best] else 1.0 - theta[:, best])
            rho /= rho.sum()
            alive &= strings[:, best] == x[best]
        self.hits += int(rho.argmax()) == y
        self.cost += len(bought)
        values = x[bought]
        self.alpha[y, bought] += values
        self.beta[y, bought] += 1 - values

    def potential(self, alive: Any, region: Any, weight: Any, rho: Any) -> float:
        """Return the weight of the edges, the entropy of the classes or the entropy of the hypotheses."""
        if self.criterion == "ec2":
            masses = np.bincount(region[alive], weight[alive], self.shape.classes)
            return float(masses.sum() ** 2 - (masses**2).sum()) / 2.0
        p = rho if self.criterion == "ig" else weight[alive] / max(float(weight[alive].sum()), 1e-300)
        p = p[p > 0.0]
        return float(-(p * np.log2(p)).sum())


def stream(shape: Shape, n: int, seed: int) -> tuple[Any, Any]:
    """Return x uint8[n, bits] and y int32[n]: a class has a pattern, of which one bit in ten is wrong."""
    random = np.random.default_rng(seed)
    patterns = random.integers(0, 2, (shape.classes, shape.bits))
    y = random.integers(0, shape.classes, n)
    x = patterns[y] ^ (random.random((n, shape.bits)) < NOISE)
    return x.astype(np.uint8), y.astype(np.int32)


def compared(shape: Shape, criterion: str, seconds: float) -> dict[str, object]:
    """Return episodes a second of both; the pieces of both alternate."""
    x, y = stream(shape, 400_000, 1)
    spec = {
        "learner": {
            "name": "ufodt",
            "criterion": criterion,
            "hypotheses": shape.hypotheses,
            "enumerate": False,
            "prediction": "bayes",
        },
        "evaluation": {"every": 0},
    }
    attributes = [Attribute(f"x{i}", "nominal", ("0", "1")) for i in range(shape.bits)]
    schema = Schema.of(attributes, tuple(map(str, range(shape.classes))))
    table, model = ModelTable(), Model.create(Spec.parse(spec), schema)
    table.add(model)
    twin = Transcription(shape, criterion, 1)
    cells, hits, ours, theirs = x.astype(np.float64), 0, 0.0, 0.0

    def run(first: int, n: int) -> float:
        """Return the CPU seconds of our episodes from a record on."""
        nonlocal hits
        rows = slice(first, first + n)
        began = time.process_time()
        answers = table.answer(np.zeros(n, dtype=np.int64), cells[rows], y[rows], np.ones(n), LABELLED)
        spent = time.process_time() - began
        hits += int((answers.prediction == y[rows]).sum())
        return spent

    def run_twin(first: int, n: int) -> float:
        began = time.process_time()
        for i in range(first, first + n):
            twin.episode(x[i], int(y[i]))
        return time.process_time() - began

    run(0, COMPARED)
    run_twin(0, COMPARED)
    agreement = {
        "cost": round(feature_account(model).cost / COMPARED, 3),
        "numpy_cost": round(twin.cost / COMPARED, 3),
        "accuracy": round(hits / COMPARED, 3),
        "numpy_accuracy": round(twin.hits / COMPARED, 3),
    }
    n_ours, slow = COMPARED, COMPARED
    while theirs < seconds and n_ours + 40 * PIECE <= len(y):
        ours += run(n_ours, 40 * PIECE)
        theirs += run_twin(slow, PIECE)
        n_ours += 40 * PIECE
        slow += PIECE
    n_ours, slow = n_ours - COMPARED, slow - COMPARED
    return {
        "shape": shape.name,
        "bits": shape.bits,
        "classes": shape.classes,
        "hypotheses": shape.hypotheses,
        "criterion": criterion,
        "episodes": n_ours,
        "episodes_per_second": round(n_ours / ours),
        "numpy_episodes": slow,
        "numpy_episodes_per_second": round(slow / theirs, 1),
        "ratio": round((n_ours / ours) / (slow / theirs), 1),
        **agreement,
    }


def lines(criterion: str, seconds: float) -> Iterator[dict[str, object]]:
    for shape in SHAPES:
        yield compared(shape, criterion, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--criterion", choices=("ec2", "ig", "us"), default="ec2")
    parser.add_argument("--seconds", type=float, default=8.0, help="CPU seconds of the transcription a shape")
    arguments = parser.parse_args()
    for line in lines(arguments.criterion, arguments.seconds):
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
