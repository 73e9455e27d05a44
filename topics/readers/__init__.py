"""Data set readers: ARFF, LIBSVM, CSV, Parquet and Arrow files as batches of columns in constant memory."""

from topics.readers.dataset import Batch, Dataset, DatasetAttribute, DatasetDescription, FileDataset, Kind
from topics.readers.opening import open_dataset
from topics.readers.sniffing import FORMATS, FileFormat
from topics.readers.vocabulary import canonical_label

__all__ = [
    "FORMATS",
    "Batch",
    "Dataset",
    "DatasetAttribute",
    "DatasetDescription",
    "FileDataset",
    "FileFormat",
    "Kind",
    "canonical_label",
    "open_dataset",
]
