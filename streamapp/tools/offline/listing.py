"""Model listing: the models of a task as rows for people and programs, and one of them as a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamapp.tools.offline.errors import OfflineError
from streamapp.tools.offline.time_travel import Arrived
from streamapp.worker.task.models.files.exported import write_exported
from streamapp.worker.task.models.model_keys import NO_MODEL
from streamapp.worker.task.sources import named
from streamapp.worker.task.task import Task

COLUMNS = (
    "key",
    "partition",
    "spec",
    "version",
    "records",
    "labels",
    "leaves",
    "bytes",
    "frozen",
    "challenger",
)


def rows(task: Task) -> Iterator[dict[str, Any]]:
    """Yield the row of each model in `grove models list`, in the order of keys."""
    for _, slot in task.models.keys.names():
        yield row(task, slot)


def row(task: Task, slot: int) -> dict[str, Any]:
    """Return the row of the model in a slot; `challenger`: the learner of its challenger, None: none."""
    model = task.models.cache.peek(slot)
    summary = model.summary()
    return {
        "key": task.models.keys[slot],
        "partition": task.partition,
        "spec": model.spec.learner.spelled,
        "version": summary.version,
        "records": summary.records,
        "labels": summary.labels,
        "leaves": summary.leaves,
        "bytes": model.nbytes,
        "frozen": bool(task.models.traits.frozen[slot]),
        "challenger": _challenger(task, task.models.keys[slot]),
    }


def _challenger(task: Task, key: str) -> str | None:
    """Return the learner of a key's challenger as specs write it, None: there is no challenger."""
    slot = task.models.keys.challenger(key)
    return None if slot == NO_MODEL else task.models.traits.challenges[slot].terms.spec.learner.spelled


def find(task: Task, key: str) -> int:
    """Return the slot of a key's model; OfflineError if there is none."""
    slot = task.models.keys.slot(key)
    if slot == NO_MODEL:
        awaited = key in task.awaited
        what = "is created by its first instance, which did not come yet" if awaited else "is not there"
        message = f"partition {task.partition}: the model of {key!r} {what}; 'grove models list' shows all"
        raise OfflineError(message)
    return slot


def exported(arrived: Arrived, key: str, prefix: str) -> bytes:
    """Return the file of a key's model; prefix: prefix of the topics of its origin."""
    origin = {
        "prefix": prefix,
        "partition": arrived.task.partition,
        "positions": named(arrived.positions),
    }
    models = arrived.task.models
    slot, challenger = find(arrived.task, key), models.keys.challenger(key)
    record = models.record(slot)
    if challenger == NO_MODEL:
        return write_exported(record, origin)
    challenge = models.traits.challenges[challenger]
    record = record._replace(open=models.is_open_alone(slot))
    return write_exported(record, origin, challenge.summary())
