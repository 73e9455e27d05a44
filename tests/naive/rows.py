"""Small streams: all kinds of attributes, missing values, unknown codes, weights, late classes."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from core.schema.schema import Attribute, Schema


@dataclass
class Stream:
    """Records in memory; ``attributes`` holds None for a numeric one, else the number of its values.

    Of attributes in ``open_values`` it is the number of those declared; their codes ascend as they appear.
    """

    x: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    attributes: tuple[int | None, ...]
    classes: int
    open_classes: bool = False
    open_values: tuple[int, ...] = ()

    def first(self, n):
        """Return the stream's beginning."""
        return replace(self, x=self.x[:n], y=self.y[:n], weight=self.weight[:n])

    def schema(self, known=None, rows=None, limits=None):
        """Return the schema; if open, that of ``known`` classes, of the values in the first ``rows``.

        limits: the range of numeric attributes, None: none is declared.
        """
        attributes = [
            Attribute(f"a{i}", range=limits)
            if values is None
            else Attribute(f"a{i}", "nominal", tuple(map(str, range(values))), i in self.open_values)
            for i, values in enumerate(self.attributes)
        ]
        names = tuple(map(str, range(self.classes)))
        schema = Schema.of(attributes) if self.open_classes else Schema.of(attributes, names)
        for i in self.open_values:
            declared = self.attributes[i]
            assert declared is not None, "it is nominal"
            most = int(np.nanmax(self.x[:rows, i], initial=declared - 1))
            for value in range(declared, most + 1):
                schema = schema.with_values([(i, str(value))])
        for name in names[:known] if self.open_classes else ():
            schema = schema.with_class(name)
        return schema


def numeric(n=4000, seed=1):
    """Three uniform attributes, the sum of two decides, one label in ten is flipped."""
    random = np.random.default_rng(seed)
    x = random.uniform(0.0, 10.0, (n, 3))
    y = (x[:, 0] + x[:, 1] > 8.0) ^ (random.random(n) < 0.1)
    return Stream(x, y.astype(np.int32), np.ones(n), (None, None, None), 2)


def mixed(n=5000, seed=2, missing=0.08):
    """Numbers between nominal attributes, three classes, missing values of both kinds, weights."""
    random = np.random.default_rng(seed)
    attributes = (4, None, 2, None, 3, 5)
    x = np.empty((n, 6))
    for i, values in enumerate(attributes):
        x[:, i] = random.normal(3.0, 2.0, n) if values is None else random.integers(0, values, n)
    score = x[:, 1] + 2.0 * (x[:, 0] == 2) - 1.5 * x[:, 4] + random.normal(0.0, 0.6, n)
    y = np.digitize(score, [0.5, 3.0]).astype(np.int32)
    holes = random.random(x.shape) < missing
    x[holes] = np.nan
    x[holes & (random.random(x.shape) < 0.5) & np.array([v is not None for v in attributes])] = -1.0
    return Stream(x, y, random.choice([0.5, 1.0, 2.0, 7.0], n), attributes, 3)


def two_classes(n=5000, seed=2):
    """The stream ``mixed``, the upper two of its classes as one."""
    stream = mixed(n, seed)
    return replace(stream, y=np.minimum(stream.y, 1), classes=2)


def unknown_codes(n=4000, seed=3):
    """Nominal attributes only; now and then a code that was never declared."""
    random = np.random.default_rng(seed)
    attributes = (3, 6, 2)
    x = np.column_stack([random.integers(0, values, n) for values in attributes]).astype(np.float64)
    y = ((x[:, 0] == 1) | ((x[:, 1] > 3) & (x[:, 2] == 0)) ^ (random.random(n) < 0.1)).astype(np.int32)
    strange = random.random(x.shape) < 0.05
    x[strange] = np.array(attributes, np.float64)[np.nonzero(strange)[1]] + random.integers(
        0, 2, strange.sum()
    )
    return Stream(x, y, np.ones(n), attributes, 2)


def late_classes(n=4000, seed=4):
    """Blobs of five classes, of which the last ones appear late; classes are open."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 5, n)
    first_at = np.array([0, 30, 30, 1200, 2500])
    y[np.arange(n) < first_at[y]] = 0
    centre = random.uniform(0.0, 5.0, (5, 4))
    x = centre[y] + random.normal(0.0, 1.0, (n, 4))
    return Stream(x, y.astype(np.int32), np.ones(n), (None,) * 4, 5, open_classes=True)


def degenerate(n=2500, seed=5):
    """A constant attribute, a copy of another one, one that is always missing, a pure beginning."""
    random = np.random.default_rng(seed)
    x = np.empty((n, 5))
    x[:, 0] = 7.0
    x[:, 1] = x[:, 2] = np.round(random.uniform(0.0, 4.0, n), 1)
    x[:, 3] = np.nan
    x[:, 4] = -1.0
    y = ((x[:, 1] > 2.0) ^ (random.random(n) < 0.05)).astype(np.int32)
    y[:300] = 1
    return Stream(x, y, np.ones(n), (None, None, None, None, 3), 2)


def open_values(n=2000, seed=11, missing=0.05):
    """Two nominal attributes whose values come one by one, late ones too; a number, and declared values."""
    random = np.random.default_rng(seed)
    x = np.empty((n, 4))
    for i, pace in ((0, 400), (2, 150)):
        met = random.integers(0, 3 + np.arange(n) // pace)
        _, first = np.unique(met, return_index=True)
        codes = np.empty(met.max() + 1)
        codes[met[np.sort(first)]] = np.arange(len(first))  # a value is coded when it first appears
        x[:, i] = codes[met]
    x[:, 1] = random.normal(0.0, 1.0, n)
    x[:, 3] = random.integers(0, 3, n)
    y = ((x[:, 0] % 2 == 1) ^ (x[:, 2] % 3 == 0) & (x[:, 1] > 0.3)) ^ (random.random(n) < 0.08)
    holes = random.random(x.shape) < missing
    holes[:, [0, 2]] &= (
        np.arange(n)[:, None] >= 300
    )  # codes of values that were never shown must not be skipped
    x[holes] = np.nan
    return Stream(x, y.astype(np.int32), np.ones(n), (0, None, 1, 3), 2, open_values=(0, 2))


def wide(n=900, seed=7, d=104):
    """More than a hundred attributes, numeric and nominal by turns, of which a dozen matter."""
    random = np.random.default_rng(seed)
    x = random.integers(0, 3, (n, d)).astype(np.float64)
    x[:, ::4] = random.normal(0.0, 1.0, x[:, ::4].shape)
    score = (
        (x[:, :40:4] > 0.2).sum(axis=1) + (x[:, 1] == 2) + 2 * (x[:, 51] == 1) + random.normal(0.0, 1.0, n)
    )
    attributes = tuple(None if i % 4 == 0 else 3 for i in range(d))
    return Stream(x, (score > 5.5).astype(np.int32), np.ones(n), attributes, 2)


def halves(n=700, seed=9):
    """Nominal attributes of two values each, now and then missing; three classes."""
    random = np.random.default_rng(seed)
    x = random.integers(0, 2, (n, 5)).astype(np.float64)
    y = (x[:, 0] + x[:, 1] * x[:, 2] + (random.random(n) < 0.1)).clip(0, 2).astype(np.int32)
    x[random.random(x.shape) < 0.05] = np.nan
    return Stream(x, y, np.ones(n), (2,) * 5, 3)


def extreme_weights(n=700, seed=22):
    """Weights of eighteen orders of magnitude, the heaviest a few records of each class."""
    random = np.random.default_rng(seed)
    stream = mixed(n, seed, missing=0.02)
    weight = 10.0 ** random.uniform(-9.0, 3.0, n)
    weight[random.integers(0, n, 12)] = 1e9
    return replace(stream, weight=weight)


STREAMS = {
    "numeric": numeric,
    "mixed": mixed,
    "two_classes": two_classes,
    "unknown_codes": unknown_codes,
    "late_classes": late_classes,
    "degenerate": degenerate,
}


OBSERVERS: list[dict[str, Any]] = [
    {"numeric_observer": "gaussian"},
    {"numeric_observer": "histogram", "warm_up": 20, "bins": 6},
    {"numeric_observer": "histogram", "edges": "range", "low": -8.0, "high": 8.0},
    {"numeric_observer": "exact", "capacity": 30},
    {"numeric_observer": "qda"},
]
"""Every numeric observer, small enough to fill up on short streams."""


def numbers(rows):
    """Return a stream with its numeric attributes alone."""
    kept = [i for i, values in enumerate(rows.attributes) if values is None]
    return replace(rows, x=np.ascontiguousarray(rows.x[:, kept]), attributes=(None,) * len(kept))
