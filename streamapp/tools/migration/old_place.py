"""Migration, old place: the models of one partition, and the state that is left behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from core.spec import Spec
from streamapp.tools.offline.listing import exported
from streamapp.tools.offline.time_travel import Arrived
from streamapp.worker.task.sources import Positions


class Stays(NamedTuple):
    """State that is not migrated, because it belongs to records on the old topics."""

    waiting: int = 0  # instances that wait for their label
    requests: int = 0  # the part of them whose label was requested and has not come
    early_labels: int = 0  # labels that wait for their instance
    imports: int = 0  # imports of which not all parts have come

    def and_also(self, other: Stays) -> Stays:
        return Stays(*(a + b for a, b in zip(self, other, strict=True)))


@dataclass(frozen=True, slots=True)
class Leaving:
    """The models of a partition at its committed offsets."""

    partition: int
    positions: Positions
    clock: int | None
    models: Mapping[str, bytes]  # key -> file
    awaited: Mapping[str, Spec]  # key -> spec of the model that its first instance will make
    stays: Stays


def leaving(arrived: Arrived, prefix: str) -> Leaving:
    """Return the models of a partition; prefix: prefix of its topics."""
    task = arrived.task
    stays = Stays(task.pending.waiting, task.pending.outstanding, task.early_labels, task.unfinished_imports)
    models = {key: exported(arrived, key, prefix) for key, _ in task.models.keys.names()}
    return Leaving(task.partition, arrived.positions, task.clock, models, dict(task.awaited), stays)
