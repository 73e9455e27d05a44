"""Model creation by the first record of a key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.errors import SchemaError
from core.schema.schema import Schema
from streamapp.worker.task import counters
from streamapp.worker.task.effects.effects import Effects, Notice
from streamapp.worker.task.models.model_keys import NO_MODEL
from streamapp.worker.task.models.schemas.schema_inference import given_width, infer_schema
from streamapp.worker.task.partition_state import PartitionState
from topics.columns.records import Features
from topics.errors import Reason


class RefusedModelError(Exception):
    """Why a model was not created."""

    def __init__(self, reason: Reason, detail: str, schema: Schema | None = None) -> None:
        """schema: of the model, if the record has one."""
        super().__init__(detail)
        self.reason = reason
        self.detail = detail
        self.schema = schema


def make_model(
    state: PartitionState, key: str, groups: Sequence[Features], row: int, offset: int, effects: Effects
) -> int:
    """Make the model of a key from its first record, `row` of the batch at `offset`, and return its slot.

    Raise RefusedModelError if models are not created automatically, or if there is no room for more.
    """
    store = state.store
    if not comes_into_being(state, key):
        detail = f"model {key!r} is unknown; create it by a control, or set models.auto.create=true"
        raise RefusedModelError(Reason.UNKNOWN_MODEL, detail)
    spec = state.awaited.get(key, state.default_spec)
    schema = _infer(groups, row, spec.max_classes, state.config.models_max_attributes)
    try:
        spec.learner.check_schema(schema)
        slot = store.create(key, spec, schema)
    except SchemaError as error:
        raise RefusedModelError(Reason.WRONG_SCHEMA, str(error), schema) from error
    if slot == NO_MODEL:
        raise RefusedModelError(Reason.TOO_MANY_MODELS, no_room(state, key, offset, effects), schema)
    state.awaited.discard(key)
    effects.count(counters.MODELS_CREATED)
    return slot


def comes_into_being(state: PartitionState, key: str) -> bool:
    """Return whether the first record of a key would make its model."""
    return state.config.models_auto_create or key in state.awaited


def no_room(state: PartitionState, key: str, offset: int, effects: Effects) -> str:
    """Return why there is no room for a model; report it to the operator, once until there is room again."""
    quota = state.store.keys.quota
    text = f"models.max.count={quota.limit} models are in this worker; raise it, or delete models by controls"
    if not quota.reported:
        quota.reported = True
        effects.notices.append(Notice("error", f"no room for model {key!r}: {text}", key, offset))
    return text


def _infer(groups: Sequence[Features], row: int, max_classes: int, max_attributes: int) -> Schema:
    for group in groups:
        at = int(np.searchsorted(group.rows, row))
        if at < len(group) and group.rows[at] == row and group.values.shape[1]:
            width = given_width(group, at)
            if width > max_attributes:
                text = f"{width:,} features of a first record; models.max.attributes={max_attributes:,}"
                raise RefusedModelError(Reason.TOO_MANY_FEATURES, text)
            return infer_schema(group, at, max_classes)
    raise RefusedModelError(Reason.WRONG_SCHEMA, "the first record of a model must have at least one feature")
