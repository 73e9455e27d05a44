"""Novelty: whether records look as if each of them brought something new, by a sample, before they are read.

A list of names that no record had before costs tens of microseconds to read, and a feature that is new to a
model hundreds; what is known costs less than one. Runs grow while they are cheap (`run_size.py`), so the
first run of strange records would be a large one: it is cut before it is handed out.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from topics.columns.spans import VALUE, RecordSpans

NOVEL_RECORDS: Final = 256
"""Records of a run that may be of as many kinds: computed in less than 100 ms."""

SAMPLE: Final = 32
KINDS: Final = 8
"""Different lists of names among them that the producers of a topic may well have."""

LOOKED_AT: Final = 512
"""Bytes of a record, its first ones."""

_NAME: Final = re.compile(rb'"((?:[^"\\]|\\.)*)"\s*:')


def look_novel(records: RecordSpans) -> bool:
    """Return whether records name their members in more ways than producers do."""
    chosen = np.unique(np.linspace(0, len(records) - 1, SAMPLE).astype(np.int64))
    starts, lengths = records.table[VALUE, chosen].tolist(), records.table[VALUE + 1, chosen].tolist()
    kinds = {
        tuple(_NAME.findall(records.buffer, start, start + min(length, LOOKED_AT)))
        for start, length in zip(starts, lengths, strict=True)
        if length > 0 and records.buffer[start] == ord("{")
    }
    return len(kinds) > KINDS
