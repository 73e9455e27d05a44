"""Inference of a file's form: the decisions of a reader (header, classes, target), as one line."""

from __future__ import annotations

from topics.readers.csv.dataset import CsvDataset
from topics.readers.dataset import FileDataset

FIRST_ROWS = 1000
SHOWN_CLASSES = 6
SHOWN_GUESSES = 8


def inference(dataset: FileDataset, target_given: bool, header_given: bool) -> str:
    """Return format, header, target, features and classes; inferred values come with the option that
    overrides them.

    Reads the first rows for their classes; raises DatasetError for errors in them.
    """
    next(dataset.batches(FIRST_ROWS))  # a data set has the classes of the rows that were read
    parts = [f"{', '.join(str(path) for path in dataset.paths)}: {dataset.format.upper()}"]
    if isinstance(dataset, CsvDataset):
        otherwise = "" if header_given else f" (else --{'no-' if dataset.header else ''}header)"
        parts[0] += f" {'with' if dataset.header else 'without'} a header{otherwise}"
    if dataset.format != "libsvm":  # there the label comes first
        parts.append(f"target {dataset.target!r}{'' if target_given else ' (else --target)'}")
    parts += [_features(dataset), _classes(dataset)]
    return "; ".join(parts)


def inference_lines(dataset: FileDataset, target_given: bool, header_given: bool) -> list[str]:
    """Return the same line, and one line for each of the reader's first guesses."""
    lines = [inference(dataset, target_given, header_given), *dataset.guesses[:SHOWN_GUESSES]]
    more = len(dataset.guesses) - SHOWN_GUESSES
    return [*lines, f"and {more} more guesses of this kind"] if more > 0 else lines


def _features(dataset: FileDataset) -> str:
    n, numeric = len(dataset.kinds), dataset.kinds.count("numeric")
    if numeric in (0, n):
        return f"{n} {'numeric' if numeric else 'nominal'} feature{'' if n == 1 else 's'}"
    return f"{n} features ({numeric} numeric, {n - numeric} nominal)"


def _classes(dataset: FileDataset) -> str:
    classes = dataset.classes
    if not classes:
        return "no labels in the first rows"
    shown = ", ".join(classes[:SHOWN_CLASSES]) + (", …" if len(classes) > SHOWN_CLASSES else "")
    more = " in the first rows" if dataset.classes_open else ""
    return f"{len(classes)} class{'' if len(classes) == 1 else 'es'}{more}: {shown}"
