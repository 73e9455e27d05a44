"""Packed: fixed little-endian vectors after a header of 16 bytes (layout.py, docs/records.md)."""

from topics.codecs.packed.predictions import read_predictions, write_predictions
from topics.codecs.packed.reader import read_instances, read_labels
from topics.codecs.packed.writer import write_instances, write_labels

__all__ = [
    "read_instances",
    "read_labels",
    "read_predictions",
    "write_instances",
    "write_labels",
    "write_predictions",
]
