"""Audit: the model that made a prediction, its explanation, and a comparison with the sent prediction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, Literal, NamedTuple, Protocol

from streamapp.tools.offline.explaining import Explanation, explain
from streamapp.tools.offline.listing import exported, row
from streamapp.tools.offline.place import Place
from streamapp.tools.offline.time_travel import Arrived
from streamapp.worker.task.models.model_keys import NO_MODEL
from streamapp.worker.task.sources import named
from topics.columns.records import RawRecords

Comparison = Literal["equal", "different", "not-found"]
SAID: dict[Comparison, str] = {
    "equal": "equal to the sent answer",
    "different": "another answer was sent: by another release or platform, or before a reset of offsets",
    "not-found": "not on the topic of predictions any more, or the record was not answered",
}


class Stored(Protocol):
    """A partition whose past can be rebuilt."""

    def at(self, offset: int, *, behind: bool = False) -> Arrived:
        """Return the task right before (`behind`: after) a record of instances."""

    def instance(self, offset: int) -> RawRecords | None:
        """Return the record; None if there is none."""

    def predictions_since(self, timestamp: int) -> Any:
        """Yield the predictions from a timestamp on."""


class Audit(NamedTuple):
    """The result of an audit."""

    document: dict[str, Any]  # for JSON
    file: bytes | None  # the model, for writing; None: there was no model yet


def audit(stored: Stored, key: str, place: Place, *, after: bool, prefix: str) -> Audit:
    """Rebuild the model of a key around a record, and explain the answer to the record."""
    arrived = stored.at(place.offset)
    rebuilt = stored.at(place.offset, behind=True) if after else arrived
    slot = rebuilt.task.models.keys.slot(key)
    document: dict[str, Any] = {
        "at": str(place),
        "state": "after" if after else "before",
        "positions": named(rebuilt.positions),
        "replayed": arrived.records,
        "model": None if slot == NO_MODEL else row(rebuilt.task, slot),
        "put_aside": arrived.dead_lettered,
        "prediction": None,
    }
    file = None if slot == NO_MODEL else exported(rebuilt, key, prefix)
    raw = stored.instance(place.offset)
    document["record"] = None if raw is None else (raw.keys[0] or b"").decode("utf-8", "replace")
    skipped = arrived.dead_lettered is not None and "processing-error" in arrived.dead_lettered
    if raw is not None and raw.keys[0] == key.encode() and not skipped:
        explanation = explain(arrived.task, raw)
        document["prediction"] = {
            "answers": [asdict(answer) for answer in explanation.answers],
            "refused": list(explanation.refused),
            "sent": compare(explanation, stored.predictions_since(raw.timestamps[0])),
        }
    return Audit(document, file)


def compare(explanation: Explanation, predictions: Iterable[RawRecords]) -> Comparison:
    """Return whether the explained answer is among the predictions of its partition.

    With at-least-once delivery an instance may have several answers: one equal answer is enough.
    """
    result: Comparison = "not-found"
    if not explanation.answers or explanation.key is None:
        return result
    key = explanation.key.encode()
    for raw in predictions:
        for of, value in zip(raw.keys, raw.values, strict=True):
            same = explanation.same_as(value) if of == key and value else None
            if same:
                return "equal"
            if same is False:
                result = "different"
    return result


def as_text(document: dict[str, Any]) -> str:
    """Return the result as lines of text."""
    model, prediction = document["model"], document["prediction"]
    where = ", ".join(f"{source} {at}" for source, at in document["positions"].items())
    lines = [f"state      right {document['state']} instances {document['at']} ({where})"]
    if model is None:
        lines.append("model      there was none")
    else:
        lines.append(
            f"model      {model['spec']}, version {model['version']:,}, {model['records']:,} records, "
            f"{model['labels']:,} labels, {model['leaves']:,} leaves"
        )
    if document["put_aside"]:
        lines.append(f"record     {document['put_aside']}")
    if document["record"] is None:
        lines.append("record     there is none at this offset (a marker, or compaction took it)")
    elif prediction is None and not document["put_aside"]:
        lines.append(f"record     of the model {document['record']!r}: the other model did not answer")
    if prediction is not None:
        lines += [f"refused    {detail}" for detail in prediction["refused"]]
        for answer in prediction["answers"]:
            lines += _answer(answer)
        lines.append(f"sent       {SAID[prediction['sent']]}")
    return "\n".join(lines)


def _answer(answer: dict[str, Any]) -> list[str]:
    shares = ", ".join(f"{name} {share:.4f}" for name, share in answer["probabilities"].items())
    return [
        f"answer     {answer['id']}: {answer['label'] or 'no class known yet'} ({shares})",
        f"because    {answer['path']}",
        f"label      {'requested' if answer['asked'] else 'not requested'}: {answer['why']}",
    ]
