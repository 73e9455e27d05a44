"""Backlog: records of partitions that have many batches waiting, kept unwritten so that they make large ones.

While a broker is away, each hand-over would else be a batch of its own, and a broker takes one batch of a
partition after the other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from topics.producing.batch_encoder import Run
from topics.producing.transaction_requests import Place


class Backlog:
    """Runs by partition, each of them of one partition, in buffers of their own: those of the fetched records
    may be many times larger.
    """

    def __init__(self) -> None:
        self._runs: dict[Place, list[Run]] = {}
        self.n_bytes = 0

    @property
    def n_runs(self) -> int:
        """Number of runs that are kept."""
        return sum(map(len, self._runs.values()))

    def has_others(self, crowded: Collection[Place]) -> bool:
        """Whether records are kept of a partition that is not one of these."""
        return not self._runs.keys() <= set(crowded)

    def to_write(self, runs: Mapping[str, list[Run]], crowded: Collection[Place]) -> dict[str, list[Run]]:
        """Return the runs to write by topic, records that were kept before first; keep those of `crowded`
        partitions.
        """
        ready: dict[str, list[Run]] = {}
        for place in [place for place in self._runs if place not in crowded]:
            own = self._runs.pop(place)
            ready.setdefault(place[0], []).extend(own)
            self.n_bytes -= sum(run.n_bytes for run in own)
        for topic, of_topic in runs.items():
            partitions = sorted(partition for name, partition in crowded if name == topic)
            for run in of_topic:
                if (rest := self._kept_back(topic, run, partitions)) is not None:
                    ready.setdefault(topic, []).append(rest)
        return ready

    def _kept_back(self, topic: str, run: Run, partitions: Sequence[int]) -> Run | None:
        """Keep the records of these partitions; return the others, None if there are none."""
        is_kept = np.isin(run.partitions, partitions)
        if not np.count_nonzero(is_kept):
            return run
        for partition in np.unique(run.partitions[is_kept]).tolist():
            own = run.where(np.flatnonzero(run.partitions == partition)).copied()
            self._runs.setdefault((topic, partition), []).append(own)
            self.n_bytes += own.n_bytes
        others = np.flatnonzero(~is_kept)
        return run.where(others) if len(others) else None
