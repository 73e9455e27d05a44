"""Model columns: the cells of a model in the lists of the pages."""

from __future__ import annotations

from typing import Final

from streamapp.web.formatting import cut, share
from streamapp.web.layout.data_table import Cell, Column, link_cell, number_cell, text_cell, time_cell
from streamapp.web.watch.model_words import accuracy_in_words
from streamapp.web.watch.sparkline import sparkline
from streamapp.web.watch.watched import ModelRow
from streamapp.web.watch.watching import Watching, model_link

KEY: Final = Column("Model", explained="model")
ACCURACY: Final = Column("Accuracy (95 % interval)", numeric=True, explained="accuracy")
COURSE: Final = Column("Accuracy over time", sortable=False)
LABELS: Final = Column("Labels", numeric=True, explained="label")
DRIFTS: Final = Column("Drift alarms", numeric=True, explained="drift")
LAST: Final = Column("Newest evaluation or event", short=True)


def key_cell(key: str) -> Cell:
    """Return the name of a model as a link to its page."""
    return link_cell(cut(key) or "(no name)", model_link(key))


def accuracy_cell(model: ModelRow) -> Cell:
    """Return an accuracy with its interval or, in a few words, why there is none; the title has all words."""
    value = model.accuracy if model.unbiased is None else model.unbiased
    whole = accuracy_in_words(model)
    if model.unbiased is not None:
        text = whole
    elif not model.labels:
        text = "no label yet"
    elif model.accuracy is None:
        text = "no evaluation yet"
    else:
        text = f"{share(model.accuracy)}, requested labels only"
    return Cell(text, value, title=whole)


def course_cell(watching: Watching, model: ModelRow) -> Cell:
    """Return the small picture of a model's accuracy over time."""
    return Cell("", svg=sparkline(watching.courses.of(watching.watched, model)))


def model_cells(watching: Watching, model: ModelRow, now: int) -> dict[str, Cell]:
    """Return all cells of a model, by the name of the order of `Watched.models` where there is one."""
    return {
        "key": key_cell(model.key),
        "accuracy": accuracy_cell(model),
        "course": course_cell(watching, model),
        "labels": number_cell(model.labels),
        "drifts": number_cell(model.drifts),
        "last_ms": time_cell(model.last_ms, now),
        "learner": text_cell(model.learner),
        "records": number_cell(model.records),
        "splits": number_cell(model.splits),
        "state": text_cell(model.state),
    }
