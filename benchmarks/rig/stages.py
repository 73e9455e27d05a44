"""Where the microseconds of a record go: the stages of a worker, one after the other on the same bytes."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.rig.passes import Bench
from benchmarks.rig.stream import Rows


@dataclass(frozen=True)
class Stage:
    """CPU time of one stage, in microseconds per row."""

    name: str
    microseconds: float


def measure_stages(bench: Bench, rows: Rows, form: str, partitions: int) -> list[Stage]:
    raise NotImplementedError
