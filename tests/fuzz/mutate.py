"""Bytes of models that nobody's learner wrote: single words, several, splices, and aims at what matters."""

from __future__ import annotations

import struct
import zlib

import numpy as np

from core.layout.model import ModelHeader
from core.layout.tree import LEAF_FIELDS, Tree
from core.learners.hoeffding.learner import HoeffdingLearner
from core.model import snapshot
from core.model.model import Model

WORDS = (-1, 0, 1, 2, 3, 1 << 31, 1 << 40, (1 << 62) + 1, -(1 << 63), (1 << 63) - 1)
NUMBERS = (np.nan, np.inf, -np.inf, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 6.0, 1e12, 1e300, -1e300)
VALUES = np.array([*WORDS, *np.array(NUMBERS).view(np.int64).tolist()], dtype=np.int64)
"""What a word is set to, beside its neighbours and chance: int64 by their bits."""

Change = tuple[int, int]
"""A word and what it becomes."""


def words_of(model: Model) -> np.ndarray:
    """Return the words of a model's snapshot, int64[n]."""
    return np.array(snapshot.read(model.snapshot())[1])


def wrapped(model: Model, words: np.ndarray) -> bytes:
    """Return the snapshot that says that these are the words of a model, with the right checksum."""
    whole = model.snapshot()
    body = whole[: len(whole) - 4 - 8 * len(words)] + words.astype("<i8").tobytes()
    return body + struct.pack("<I", zlib.crc32(body))


def apply(words: np.ndarray, changes: list[Change]) -> np.ndarray:
    """Return the words with some of them changed."""
    changed = words.copy()
    for word, value in changes:
        changed[word] = value
    return changed


def value_for(draw: np.random.Generator, words: np.ndarray, word: int) -> int:
    """Return what a word becomes: a hard value, a neighbour's, near its own, another's, or chance."""
    how = draw.integers(6)
    if how == 0:
        return int(VALUES[draw.integers(len(VALUES))])
    if how == 1:
        return int(words[(word + draw.integers(-3, 4)) % len(words)])
    if how == 2:
        with np.errstate(over="ignore"):
            return int(words[word] + np.int64(draw.integers(-3, 4)))
    if how == 3:
        return int(words[draw.integers(len(words))])
    if how == 4:
        return int(draw.integers(0, len(words)))
    return int(words[word]) ^ (1 << int(draw.integers(63)))


def draw_changes(
    draw: np.random.Generator, model: Model, words: np.ndarray, other: np.ndarray
) -> list[Change]:
    """Return changes at random: one word, several, a splice of another model, or words that are indices."""
    how = draw.integers(4)
    n = len(words)
    if how == 0:
        chosen = [int(draw.integers(n))]
    elif how == 1:
        chosen = [int(draw.integers(n)) for _ in range(draw.integers(2, 8))]
    elif how == 2:
        size = int(draw.integers(1, 40))
        source, target = int(draw.integers(len(other))), int(draw.integers(n))
        size = min(size, n - target, len(other) - source)
        return [(target + i, int(other[source + i])) for i in range(size)]
    else:
        places = index_words(model, words)
        chosen = [places[int(draw.integers(len(places)))] for _ in range(draw.integers(1, 5))]
    return [(word, value_for(draw, words, word)) for word in chosen]


def index_words(model: Model, words: np.ndarray) -> list[int]:
    """Return the words of headers, nodes, and first words of leaf records: indices, most of them."""
    places = list(range(int(model.plan.record.blocks)))
    t = int(ModelHeader.over(words).first)
    if model.spec.learner.kernels != HoeffdingLearner.kernels:
        return [*places, *range(t, len(words))]
    tree = Tree(words, words.view(np.float64), t)
    places += range(t, t + int(tree.leaves_at))
    for slot in range(int(tree.slots)):
        leaf = int(tree.leaf(slot).start)
        places += range(leaf, leaf + LEAF_FIELDS)
    return places
