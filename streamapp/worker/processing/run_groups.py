"""Groups: which runs of a delivery are computed and handed over in one go.

The cost of a small run hardly depends on its number of records, so small runs take each stage together. A
large run is alone in its group: a thread computes it, and no other run waits for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streamapp.worker.transport.runs import Run
from topics.columns.records import Headers
from topics.columns.spans import header_counts

LARGE_RECORD: Final = 64 << 10
"""Bytes of a record that may take longer than other runs can wait: blocks take up to 1.4 µs a byte."""

MANY_HEADERS: Final = 1024
"""Headers of a record from which it is large; each of its answers may repeat them."""

MANY_IN_ALL: Final = 16 << 10
"""Headers of a run that may take longer than other runs can wait: some 2 µs each to read and pass on."""

LARGE_RUN: Final = 4 << 20
"""Bytes of a run from which it may take longer than other runs can wait, even if its records are small."""

GROUP_BYTES: Final = 256 << 10
"""Most bytes of the records of a group of several runs: they take a few milliseconds."""


def groups(delivered: Sequence[Run]) -> list[list[Run]]:
    """Return the runs in their order, in groups that are computed in one go."""
    spans = [run.raw.spans for run in delivered]
    size, header_bytes = sum([own.value_bytes + 1 for own in spans]), sum([own.header_bytes for own in spans])
    if spans and size <= LARGE_RECORD and not header_bytes:  # no record can be large
        return [[*delivered]]
    made: list[list[Run]] = []
    room = 0
    for run in delivered:
        size = run.raw.spans.value_bytes
        taken = GROUP_BYTES if _is_large(run, size) else max(1, size)
        if taken > room:
            made.append([])
            room = GROUP_BYTES
        made[-1].append(run)
        room -= taken
    return made


def is_large(run: Run) -> bool:
    """Return whether a run may take longer than other runs can wait."""
    return _is_large(run, run.raw.spans.value_bytes)


def _is_large(run: Run, size: int) -> bool:
    spans = run.raw.spans
    if size >= LARGE_RUN or (len(spans.buffer) >= LARGE_RECORD and spans.values.longest >= LARGE_RECORD):
        return True
    return spans.header_bytes > 0 and _has_many_headers(run.raw.headers)


def _has_many_headers(headers: Sequence[Headers]) -> bool:
    """Return whether the headers of a run may take long, from their counts: a batch may have millions."""
    counts = header_counts(headers)
    return bool(counts.max() >= MANY_HEADERS or counts.sum() >= MANY_IN_ALL)
