"""Read progress: what the driver reports of its reading: lag, parts of snapshots, positions sought back."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from faust.types import TP

from streamapp.worker.observability.health import Health
from streamapp.worker.observability.metrics import Metrics
from streamapp.worker.processing.partition import Partition
from streamapp.worker.task.sources import SourceName

logger = logging.getLogger(__name__)


class ReadProgress:
    """Reading progress of live and stopped partitions. Belongs to the event loop; any thread may read it."""

    def __init__(
        self,
        partitions: Mapping[int, Partition],
        sources: Mapping[str, SourceName],
        metrics: Metrics,
        health: Health,
    ) -> None:
        """`partitions`: those here, a mapping that changes; `sources`: by their topics."""
        self._partitions = partitions
        self._sources = sources
        self._metrics = metrics
        self._health = health
        self._live_ends: Mapping[TP, int] | None = None  # as reported last
        self._log_ends: dict[TP, int] = {}  # of live and stopped partitions, when the broker last answered

    def lag(self, log_ends: Mapping[TP, int], unserved: Mapping[TP, str]) -> None:
        """Note where the logs of the live partitions end, and which partitions the broker does not serve.

        The last known end of a stopped partition is kept. `unserved` holds the reasons. The same mapping as
        in the last call has nothing new.
        """
        if log_ends is self._live_ends and not unserved and self._health.is_at_rest:
            return
        self._live_ends = log_ends
        stopped = {number for number, state in self._partitions.items() if state.stopped is not None}
        kept = {tp: end for tp, end in self._log_ends.items() if tp.partition in stopped} if stopped else {}
        self._log_ends = kept | dict(log_ends)
        # A restart would stop a partition again, and bring no leader back: lag there does not make the worker
        # dead.
        left_out = stopped | {tp.partition for tp in unserved}
        self._note_unserved({f"{tp.topic}-{tp.partition}": why for tp, why in sorted(unserved.items())})
        lags = self.lags()
        self._health.lags(sum([lag for tp, lag in lags.items() if tp.partition not in left_out]))

    def lags(self) -> dict[TP, int]:
        """Return how many offsets of each partition, live or stopped, are not committed."""
        lags, partitions, sources = {}, dict(self._partitions), self._sources
        for tp, end in self._log_ends.items():  # without calls: a turn looks at each topic of each partition
            if tp.partition in partitions:
                lag = end - partitions[tp.partition].committed[sources[tp.topic]]
                lags[tp] = lag if lag > 0 else 0
        return lags

    def read_changelog(self, records: int, size: int, *, standby: bool, left: int) -> None:
        """Note that parts of snapshots were read: by a standby, or for a partition that is to go live."""
        self._metrics.read_changelog("standby" if standby else "active", records, size)
        if not standby:
            self._health.reading = f"reading parts of snapshots, {left:,} offsets left"

    def sought_back(self, partitions: Iterable[TP]) -> None:
        """Count partitions whose fetch position was not the driver's; it seeks back, so nothing is lost."""
        for tp in partitions:
            self._metrics.sought_back.inc()
            logger.warning("topic %s partition %d: fetch position was not ours, sought back", *tp)

    def _note_unserved(self, unserved: Mapping[str, str]) -> None:
        before, self._health.unserved = self._health.unserved, unserved
        if unserved and not before:
            logger.warning("%s: their records wait, all others go on", self._health.not_served())
        elif before and not unserved:
            logger.info("the broker serves all partitions again")
