"""Exported model: core's model file, and what the task knows besides."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from core.active.label_account import EXPIRED
from core.errors import SnapshotError
from core.model import file as model_file
from core.model.model import Model
from core.model.validate import check
from core.tree import layout as at
from streamapp.worker.task.models.changes import ModelRecord


@dataclass(frozen=True, slots=True)
class ExportedModel:
    """What a file holds, checked."""

    key: str  # that it had
    model: Model
    known_classes: int
    open: bool
    frozen: bool
    taken: dict[str, Any]  # where and when, for people


def write_exported(record: ModelRecord, taken: dict[str, Any]) -> bytes:
    """Return the file of a model; taken: topic prefix, partition and positions it was taken at."""
    model = Model(record.plan, record.ints)
    head = {
        "key": record.key,
        "known_classes": record.known_classes,
        "open": record.open,
        "frozen": record.frozen,
        "spec": model.spec.to_dict(),
        "schema": json.loads(model.schema.to_json()),
        "labels": model.summary().labels,
        "records": model.summary().records,
        "taken": taken,
    }
    return model_file.wrap(head, model.snapshot())


def read_exported(data: bytes) -> ExportedModel:
    """Return what a file holds; GroveError if it is none, or holds what no worker may get to see.

    Kernels trust the words of a model: every invariant is checked before it is let in.
    """
    found = model_file.unwrap(data)
    model = Model.restore(found.snapshot)
    head = found.head
    try:
        check(model)
        is_open = bool(head["open"])
        exported = ExportedModel(
            str(head["key"]),
            model,
            int(head["known_classes"]),
            is_open,
            bool(head["frozen"]),
            dict(head["taken"]),
        )
        if not fits(model, exported.known_classes, is_open=is_open):
            message = "exported model's head must fit its snapshot: it was put together wrongly"
            raise SnapshotError(message)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        message = f"exported model cannot be understood: {error!r}; export it again"
        raise SnapshotError(message) from error
    return exported


def fits(model: Model, known_classes: int, *, is_open: bool) -> bool:
    """Return whether what a task knows besides is true of a model: answers are named and widened by it."""
    schema = model.schema
    if is_open and not (model.takes_attributes and schema.open_attributes):
        return False
    return int(model.ints[at.MODEL_CLASSES]) <= known_classes <= schema.n_classes


def close_open_requests(model: Model) -> None:
    """Close the requests that are open: their labels go to where the model was."""
    outstanding = model.summary().outstanding
    if outstanding:
        model.close(EXPIRED, outstanding)
