"""Rounds: the runs of several partitions, together up to the size of one run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamapp.worker.transport.runs import MAX_RUN_BYTES, Run


def together(runs: Sequence[Run], most: int) -> Iterator[list[Run]]:
    """Yield runs in their order, in groups of at most `most` records and MAX_RUN_BYTES bytes."""
    group: list[Run] = []
    records = size = 0
    for run in runs:
        n, bytes_ = len(run.raw), run.raw.spans.content_bytes
        if group and (records + n > most or size + bytes_ > MAX_RUN_BYTES):
            yield group
            group, records, size = [], 0, 0
        group.append(run)
        records += n
        size += bytes_
    if group:
        yield group
