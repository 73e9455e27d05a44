"""Novelty: whether records look as if each of them brought something new, by a sample, before they are read.

A list of names that no record had before costs tens of microseconds to read; known names cost less than one.
Runs grow while they are cheap (`run_size.py`), so the first run of strange records would be large: it is cut
before it is read. When it is read, the task counts what it would add (`task/instances/leading_records.py`).
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from topics.columns.spans import VALUE, RecordSpans

NOVEL_RECORDS: Final = 256
"""Records of a run in which each may be of another kind: they are read in some 10 ms."""

SAMPLE: Final = 32
KINDS: Final = 8
"""Different lists of names in a sample that the producers of a topic are expected to have."""

LOOKED_AT: Final = 512
"""Bytes at the beginning of a record that are looked at."""

_NAME: Final = re.compile(rb'"((?:[^"\\]|\\.)*)"\s*:')


def look_novel(records: RecordSpans) -> bool:
    """Return whether records have more different lists of names than producers are expected to have."""
    chosen = np.unique(np.linspace(0, len(records) - 1, SAMPLE).astype(np.int64))
    starts, lengths = records.table[VALUE, chosen].tolist(), records.table[VALUE + 1, chosen].tolist()
    kinds = {
        tuple(_NAME.findall(records.buffer, start, start + min(length, LOOKED_AT)))
        for start, length in zip(starts, lengths, strict=True)
        if length > 0 and records.buffer[start] == ord("{")
    }
    return len(kinds) > KINDS
