"""Rows: the same input for every system, with SEA's three attributes, seven columns of noise, two classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from topics.clients.partitioner import partition_of

N_ATTRIBUTES = 10
NAMES = tuple(f"a{number}" for number in range(1, N_ATTRIBUTES + 1))
THETA = 8.0  # SEA function 1: class 0 iff a1 + a2 <= 8
NOISE = 0.1  # share of inverted labels: no classifier is right more often than 90 %
DIGITS = 4  # decimals of a value, as a sensor or a feature store would send it


@dataclass(frozen=True, eq=False)
class Rows:
    """n labelled rows: x float64[n, 10], y int8[n], key int32[n] into `keys`."""

    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.int8]
    key: npt.NDArray[np.int32]
    keys: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.x)


def model_keys(count: int, partitions: int) -> tuple[str, ...]:
    """Return `count` keys; as many keys as partitions means exactly one key in each partition."""
    if count != partitions:
        return tuple(f"model-{number:02d}" for number in range(count))
    key_of: dict[int, str] = {}
    number = 0
    while len(key_of) < partitions:
        key = f"model-{number:02d}"
        key_of.setdefault(partition_of(key.encode(), partitions), key)
        number += 1
    return tuple(key_of[partition] for partition in range(partitions))


def generate(n: int, keys: tuple[str, ...], run_length: int = 1, seed: int = 1) -> Rows:
    """Return n rows, keys drawn uniformly for every `run_length` consecutive rows (a block has one key)."""
    rng = np.random.default_rng(seed)
    x = np.round(rng.random((n, N_ATTRIBUTES)) * 10.0, DIGITS)
    y = (x[:, 0] + x[:, 1] > THETA) ^ (rng.random(n) < NOISE)
    runs = -(-n // run_length)
    key = np.repeat(rng.integers(len(keys), size=runs, dtype=np.int32), run_length)[:n]
    return Rows(x, y.astype(np.int8), key, keys)
