"""Records of the topic of model events: splits, drifts, controls, new models.

They are small for any model: the record of a split lists the heaviest classes, a specification is given by
the names of its parts.
"""

from __future__ import annotations

from typing import Any, Final

from core.events import Drift, Event, GrowthStopped, InputsChanged, NodeTest, Pruned, Split, ThresholdsSet
from core.schema.schema import Schema
from core.spec import Spec
from streamapp.worker.task.effects.effects import Happened
from streamapp.worker.task.models.model_keys import NO_MODEL
from streamapp.worker.task.models.model_store import ModelStore
from topics.columns.records import LifeEvent, ModelEvent, RawRecords

CLASSES_MAX: Final = 64
"""Most classes of a split whose weight is listed; the weights of further classes are summed up."""


def happened(
    what: LifeEvent,
    store: ModelStore,
    slot: int,
    raw: RawRecords,
    record: int,
    *,
    instance_id: str | None = None,
    more: dict[str, Any] | None = None,
) -> Happened:
    """Return that a record (index in raw) made, changed or ended the model in a slot.

    slot: NO_MODEL, if the key only has a spec yet, or its model was deleted; more: added to the detail.
    """
    version = records = 0
    detail: dict[str, Any] = {}
    if slot != NO_MODEL:
        summary = store.cache.peek(slot).summary()
        version, records = summary.version, summary.records
        schema = store.traits.schema(slot)
        detail = parts_of(store.cache.plan(slot).spec) | {
            "attributes": len(schema.attributes),
            "classes": len(schema.classes),
        }
    detail |= more or {}
    offset, timestamp = raw.offsets[record], raw.timestamps[record]
    event = ModelEvent(what, raw.topic, offset, timestamp, version, records, instance_id, detail)
    return Happened(record, event)


def grown(
    event: Event, schema: Schema, raw: RawRecords, record: int, instance_id: str, version: int, records: int
) -> Happened | None:
    """Return the record of a kernel's event; None: the event has no consequence for a tree.

    version, records: labels learned and records answered when it happened.
    """
    if isinstance(event, Split):
        what: Any = "split" if event.action == "split" else "revised"
        detail = _split(event, schema)
    elif isinstance(event, Pruned):
        what = "pruned"
        detail = {
            "node": event.node,
            "depth": event.depth,
            "member": event.member,
            "former": _test(event.former, schema),
            "merits": list(event.merits),
            "gap": event.merits[0] - event.merits[1],
            "bound": event.bound,
            "reason": event.reason,
            "labels": event.n,
        }
    elif isinstance(event, Drift) and (event.level == "drift" or event.action != "none"):
        what = "drift"
        detail = {
            "level": event.level,
            "detector": event.detector,
            "error_rate": event.error_rate,
            "action": event.action,
            "node": event.node,
            "depth": event.depth,
            "pair": _pair(event, schema),
            "member": event.member,
        }
    elif isinstance(event, InputsChanged):
        what = "drift"
        detail = {
            "level": "input",
            "detector": event.detector,
            "action": action_of(event),
            "inputs": moved_inputs(event, schema),
            "moved": event.moved_count,
        }
    elif isinstance(event, GrowthStopped):
        what, detail = "growth-stopped", {"leaves": event.leaves}
    elif isinstance(event, ThresholdsSet):
        what, detail = "thresholds-set", {"attributes": event.attributes, "left": event.left}
    else:
        return None
    offset, timestamp = raw.offsets[record], raw.timestamps[record]
    return Happened(
        record, ModelEvent(what, raw.topic, offset, timestamp, version, records, instance_id, detail)
    )


def action_of(event: InputsChanged) -> str:
    """Return the effect of changed inputs: label requests, or none."""
    return f"label budget open for {event.open_records} records" if event.open_records else "none"


def moved_inputs(event: InputsChanged, schema: Schema) -> list[dict[str, Any]]:
    """Return the inputs that moved with their names and distances, for records."""
    return [
        {
            "kind": moved.kind,
            "feature": schema.attributes[moved.attribute].name if moved.kind == "feature" else None,
            "ks": moved.ks,
            "psi": moved.psi,
            "hellinger": moved.hellinger,
            "p": moved.p,
            "missing": list(moved.missing),
            "unseen": moved.unseen,
        }
        for moved in event.moved
    ]


def parts_of(spec: Spec) -> dict[str, Any]:
    """Return the names of a specification's parts."""
    detectors = [detector.name for detector in (spec.drift, spec.inputs) if detector.name != "none"]
    return {
        "learner": spec.learner.spelled,
        "query": spec.query.name,
        "budget": spec.budget.name,
        "drift": " + ".join(detectors) or "none",
    }


def _split(event: Split, schema: Schema) -> dict[str, Any]:
    best, second = event.merits
    counts, others = _counts(event.masses, schema)
    return {
        "action": event.action,
        "node": event.node,
        "depth": event.depth,
        "pair": _pair(event, schema),
        "member": event.member,
        **_test(NodeTest(event.attribute, event.test, event.value), schema),
        "former": None if event.former is None else _test(event.former, schema),
        "merits": [best, second],
        "gap": best - second,
        "bound": event.bound,
        "reason": event.reason,
        "labels": event.n,
        "counts": counts,
        "counts_of_others": others,
    }


def _test(test: NodeTest, schema: Schema) -> dict[str, Any]:
    attribute = schema.attributes[test.attribute]
    is_category = test.test == "category"
    return {
        "attribute": attribute.name,
        "test": test.test,
        "threshold": test.value if test.test == "numeric" else None,
        "category": attribute.values[int(test.value)] if is_category else None,
    }


def _counts(masses: tuple[float, ...], schema: Schema) -> tuple[dict[str, float], float]:
    """Return the weight of the heaviest classes, by name, and the sum of the remaining weights."""
    named = [(mass, code) for code, mass in enumerate(masses) if mass > 0.0]
    named.sort(key=lambda item: (-item[0], item[1]))
    kept = named[:CLASSES_MAX]
    return {schema.classes[code]: mass for mass, code in kept}, sum(mass for mass, _ in named[CLASSES_MAX:])


def _pair(event: Drift | Split, schema: Schema) -> list[str] | None:
    return None if event.pair is None else [schema.classes[code] for code in event.pair]
