"""The streams of the protocol, and any file: one stream for each seed.

A seed thins data in the order of time (80 % of the rows stay, in order), permutes data without an order, and
seeds generators with their concept. All strategies of a seed get the same rows, so that differences between
them are paired.
"""

from __future__ import annotations

import functools
from typing import Final

import numpy as np
import numpy.typing as npt

from benchmarks.datasets import Rows, load
from core.errors import GroveError
from streamapp.lab.experiments.probabilities.probability_streams import COMPONENTS, main_components

GENERATED_RECORDS: Final = 30_000
REAL_RECORDS: Final = 40_000
KEPT: Final = 0.8
"""Share of the rows that thinning keeps."""
READ: Final = 60_000
"""Rows of data in the order of time that are read before thinning."""
RARE_SHARE: Final = 0.05

IN_TIME: Final = {"elec": "electricity", "weather": "weather", "airlines": "airlines"}
WITHOUT_ORDER: Final = {"a9a": "a9a", "kdd99": "kdd99", "mnist20": "mnist20"}
GENERATED: Final = {
    "rbf": "gen:rbf?seed={seed}&model_seed={seed}",
    "random-tree": "gen:random_tree?seed={seed}&model_seed={seed}",
    "agrawal-2": "gen:agrawal?function=2&seed={seed}",
    "waveform": "gen:waveform?seed={seed}",
    "led": "gen:led?seed={seed}",
    "sea-drift": ("gen:drift?before=(sea?seed={seed})&after=(sea?function=3&seed={seed})&position=15000"),
    "agrawal-drift": (
        "gen:drift?before=(agrawal?function=1&seed={seed})&after=(agrawal?function=3&seed={seed})"
        "&position=15000&width=1000"
    ),
    "rbf-drift": "gen:rbf_drift?seed={seed}&model_seed={seed}&speed=0.0005",
}
STREAMS: Final = (*IN_TIME, *WITHOUT_ORDER, *GENERATED)
"""The fourteen streams of the protocol."""
RARE: Final = ("mnist-8", "rbf-imb", "agrawal-imb", "a9a-5")
"""Streams of two classes of which one is rare: the digit 8, or the rarer class thinned to 5 %."""
COMMITTED: Final = ("a9a", *GENERATED)
"""The nine streams that need no file outside of the repository."""


def open_stream(name: str, seed: int, records: int | None = None, *, permuted: bool = False) -> Rows:
    """Return the rows of a named stream, or of a file or generator address, for a seed.

    records: at most so many rows; None: as many as the protocol takes. permuted: the rows of a file have no
    order in time. Raises MissingDatasetError for a named
    stream whose file is not on this machine, GroveError for another name that cannot be read.
    """
    draws = np.random.default_rng(1000 + seed)
    if name in RARE:
        return _with_rare_class(name, seed, draws).first(records)
    if name in GENERATED or name.startswith("gen:"):
        return load(GENERATED.get(name, name).format(seed=seed), records or GENERATED_RECORDS)
    if name in WITHOUT_ORDER or permuted:
        whole = read(WITHOUT_ORDER.get(name, name), None)
        return taken(whole, draws.permutation(len(whole.y))[: records or REAL_RECORDS])
    return thinned(read(IN_TIME.get(name, name), READ), draws, records or REAL_RECORDS)


@functools.lru_cache(maxsize=2)
def read(name: str, records: int | None) -> Rows:
    """Return the first rows of a data set or file, without the rows that have no label."""
    rows = _digits() if name == "mnist20" else load(name, records)
    labelled = np.flatnonzero(rows.y >= 0)
    if not len(labelled):
        msg = f"{name} must have labels; give a file with a class column, or name the column in its header"
        raise GroveError(msg)
    return rows if len(labelled) == len(rows.y) else taken(rows, labelled)


def thinned(rows: Rows, draws: np.random.Generator, records: int) -> Rows:
    """Return 80 % of the rows in their order, drawn at random, at most ``records``."""
    return taken(rows, np.flatnonzero(draws.random(len(rows.y)) < KEPT)[:records])


def taken(rows: Rows, places: npt.NDArray[np.int64]) -> Rows:
    """Return the rows at the places (int64[n]), in this order."""
    return Rows(
        rows.name, np.ascontiguousarray(rows.x[places]), rows.y[places], rows.attributes, rows.classes
    )


def _digits() -> Rows:
    """Return MNIST by its twenty principal components of most variance."""
    digits = load("mnist")
    return Rows("mnist20", main_components(digits.x), digits.y, (None,) * COMPONENTS, digits.classes)


def _with_rare_class(name: str, seed: int, draws: np.random.Generator) -> Rows:
    """Return 30,000 rows at most of a stream with a rare class."""
    if name == "mnist-8":
        whole = read("mnist20", None)
        rows = taken(whole, draws.permutation(len(whole.y))[:GENERATED_RECORDS])
        return Rows(name, rows.x, (rows.y == 8).astype(np.int32), rows.attributes, 2)
    if name == "a9a-5":
        rows = read("a9a", None)
        rows = taken(rows, draws.permutation(len(rows.y)))
    else:
        address = GENERATED[{"rbf-imb": "rbf", "agrawal-imb": "agrawal-2"}[name]]
        rows = load(address.format(seed=seed), 70_000)
    counts = np.bincount(rows.y, minlength=2)
    rare = int(np.argmin(counts))
    kept = RARE_SHARE / (1 - RARE_SHARE) * counts[1 - rare] / counts[rare]
    places = np.flatnonzero((rows.y != rare) | (draws.random(len(rows.y)) < kept))
    return taken(rows, places[:GENERATED_RECORDS])
