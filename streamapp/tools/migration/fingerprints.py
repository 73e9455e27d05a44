"""Fingerprints: equal for equal models, so that a migration compares two places model by model."""

from __future__ import annotations

from hashlib import blake2b

from core.model.model import Model
from core.spec import Spec
from streamapp.worker.task.models.files.exported import close_open_requests, read_exported
from streamapp.worker.task.task import Task

Fingerprints = dict[str, bytes]  # model key -> fingerprint


def of_file(data: bytes) -> bytes:
    """Return the fingerprint that the model of a file will have once it is imported.

    Raise GroveError if the file holds no model.
    """
    exported = read_exported(data)
    close_open_requests(exported.model)
    return _of(exported.model, exported.known_classes, exported.open, exported.frozen)


def of_awaited(spec: Spec) -> bytes:
    """Return the fingerprint of a key that has a spec, and whose model awaits its first instance."""
    return blake2b(spec.to_json().encode(), digest_size=16, person=b"awaited").digest()


def of_task(task: Task) -> Fingerprints:
    """Return the fingerprints of a task's models, and of the keys whose model awaits its first instance."""
    store = task.models
    fingerprints = {key: of_awaited(spec) for key, spec in task.awaited.items()}
    for key, slot in store.keys.names():
        record = store.record(slot)
        model = Model(record.plan, record.ints)
        fingerprints[key] = _of(model, record.known_classes, record.open, record.frozen)
    return fingerprints


def _of(model: Model, known_classes: int, is_open: bool, frozen: bool) -> bytes:
    facts = f"{known_classes} {is_open} {frozen} ".encode()
    return blake2b(facts + model.snapshot(), digest_size=16).digest()
