"""Exported model: core's model file, and the task's data about the model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from core.active.label_account import EXPIRED
from core.errors import SnapshotError
from core.model import file as model_file
from core.model.model import Model
from core.model.snapshot import describe
from core.model.validate import check
from core.state_version import STATE_VERSION
from streamapp.worker.task.models.files.model_record import ModelRecord


@dataclass(frozen=True, slots=True)
class ExportedModel:
    """The checked contents of a file."""

    key: str  # its key at the export
    model: Model
    known_classes: int
    open: bool
    frozen: bool
    taken: dict[str, Any]  # place and time of the export, for people
    challenge: dict[str, Any] | None = None  # figures of a challenge at the export, for people


def write_exported(
    record: ModelRecord, origin: dict[str, Any], challenge: dict[str, Any] | None = None
) -> bytes:
    """Return the file of a model; origin: topic prefix, partition and positions of the export.

    challenge: figures of the comparison with its challenger, which the file leaves out.
    """
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
        "taken": origin,
    }
    if challenge is not None:
        head["challenge"] = challenge
    return model_file.wrap(head, model.snapshot())


def read_exported(data: bytes, newest: int = STATE_VERSION) -> ExportedModel:
    """Return the contents of a file; GroveError if it is not an exported model, or breaks an invariant.

    Kernels trust the words of a model: every invariant is checked before the model is accepted.
    `newest`: state version of the release whose rules apply; a file of a later version is refused.
    """
    contents = model_file.unwrap(data)
    version = describe(contents.snapshot).state
    if version > newest:
        message = f"state version={version} must be at most {newest}; export it with that release"
        raise SnapshotError(message)
    model = Model.restore(contents.snapshot)
    head = contents.head
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
            dict(head["challenge"]) if "challenge" in head else None,
        )
        if not fits(model, exported.known_classes, is_open=is_open):
            message = "exported model's head must fit its snapshot: it was put together wrongly"
            raise SnapshotError(message)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        message = f"exported model cannot be understood: {error!r}; export it again"
        raise SnapshotError(message) from error
    return exported


def fits(model: Model, known_classes: int, *, is_open: bool) -> bool:
    """Return whether the task's data about a model is consistent with it, because answers depend on it."""
    schema = model.schema
    if is_open and not (model.takes_attributes and schema.open_attributes):
        return False
    return int(model.header.classes) <= known_classes <= schema.n_classes


def close_open_requests(model: Model) -> None:
    """Close the open requests: their labels go to the place that the model came from."""
    outstanding = model.summary().outstanding
    if outstanding:
        model.close(EXPIRED, outstanding)
