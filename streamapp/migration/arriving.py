"""Migration, new place: the commands that import models there, and what they have led to."""

from __future__ import annotations

import secrets
from collections.abc import Iterable

import orjson

from core.spec import Spec
from streamapp.migration.fingerprints import Fingerprints, of_task
from streamapp.task.config import TaskConfig
from streamapp.task.models.importing import control_values
from streamapp.task.models.quota import ModelQuota
from streamapp.task.task import Task, TaskRun
from topics.records import RawRecords

REFUSALS_TOLD = 3


def import_of(data: bytes, piece_bytes: int) -> list[bytes]:
    """Return the values of the controls that make a file the model of a key, whatever it has now."""
    return control_values(data, secrets.token_hex(8), size=piece_bytes, replace=True)


def create_of(spec: Spec, *, anew: bool) -> list[bytes]:
    """Return those that let a key await its first instance; anew: something else is there."""
    create = {"command": "create", "spec": spec.to_dict()}
    return [orjson.dumps(each) for each in ([{"command": "delete"}] if anew else []) + [create]]


def in_effect(
    partition: int, controls: Iterable[RawRecords], config: TaskConfig, quota: ModelQuota
) -> tuple[Fingerprints, list[str]]:
    """Return what a worker will have of a partition once it has read its controls, and what it will refuse.

    Of the refusals the last few; `quota`: of all models of the worker.
    """
    task = Task(partition, config, quota)
    refused: list[str] = []
    for raw in controls:
        effects = task.process(TaskRun("controls", raw))
        refused += [letter.detail for letter in effects.dead_letters]
    return of_task(task), refused[-REFUSALS_TOLD:]
