"""JSON: one record is one object (docs/records.md)."""

from topics.codecs.json.predictions import read_predictions, write_predictions
from topics.codecs.json.reader import read_instances, read_labels
from topics.codecs.json.writer import write_instances, write_labels

__all__ = [
    "read_instances",
    "read_labels",
    "read_predictions",
    "write_instances",
    "write_labels",
    "write_predictions",
]
