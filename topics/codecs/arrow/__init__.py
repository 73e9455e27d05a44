"""Arrow: one record is an Arrow IPC stream with many rows of one model key (docs/records.md)."""

from topics.codecs.arrow.predictions import read_predictions, write_predictions
from topics.codecs.arrow.reader import read_instances, read_labels
from topics.codecs.arrow.writer import write_instances, write_labels

__all__ = [
    "read_instances",
    "read_labels",
    "read_predictions",
    "write_instances",
    "write_labels",
    "write_predictions",
]
