"""Rounds: the runs of several partitions, together up to the size of one run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamapp.worker.transport.runs import MAX_RUN_BYTES, Run


def together(runs: Sequence[Run], most: int) -> Iterator[list[Run]]:
    """Yield runs in their order, in groups of at most `most` records and MAX_RUN_BYTES bytes."""
    start = records = size = 0
    for at, run in enumerate(runs):
        spans = run.raw.spans
        n, bytes_ = spans.table.shape[1], spans.content_bytes
        if at > start and (records + n > most or size + bytes_ > MAX_RUN_BYTES):
            yield [*runs[start:at]]
            start, records, size = at, 0, 0
        records += n
        size += bytes_
    if runs:
        yield [*runs[start:]]
