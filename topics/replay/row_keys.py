"""Replay keys: the model key of a row, and the partition of that key."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from topics.clients.partitioner import partitions_of
from topics.draws import Draw, uniform
from topics.replay.replay_plan import ReplayPlan


class KeyRing:
    """The model keys of a replay."""

    def __init__(self, plan: ReplayPlan, partitions: int) -> None:
        self.encoded = [key.encode() for key in plan.keys]
        self.partitions = partitions_of(self.encoded, partitions)
        self._spread = plan.spread
        self._seed = plan.seed
        shares = np.arange(1, len(self.encoded) + 1, dtype=np.float64) ** -plan.zipf_exponent
        self._cumulated = np.cumsum(shares) / shares.sum()

    @property
    def each(self) -> bool:
        """Return whether every row goes to every key."""
        return self._spread == "each"

    def of(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Return the key of each of n rows if a row goes to one key: int32[n], indices into the keys."""
        if self._spread == "round-robin":
            return (rows % len(self.encoded)).astype(np.int32)
        draws = uniform(self._seed, Draw.MODEL_KEY, rows)
        key = np.searchsorted(self._cumulated, draws, side="right")
        return np.minimum(key, len(self.encoded) - 1).astype(np.int32)
