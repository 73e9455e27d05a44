"""Explanation of a prediction: the task that answered its record processes the record again.

The task is at the state right before the record. Its model gets `"explain": true` in its spec, which
changes neither answers nor what is learned. Then the record is processed, and its effects are read instead
of sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from core.active.label_account import Account
from core.spec import Spec
from core.state_version import STATE_VERSION
from streamapp.worker.task import counters
from streamapp.worker.task.effects.effects import Effects, PredictionGroup
from streamapp.worker.task.effects.replies import ROOT
from streamapp.worker.task.models.model_keys import NO_MODEL
from streamapp.worker.task.task import Task, TaskRun
from topics.codecs import decode_predictions, encode_predictions
from topics.codecs.content_types import wire_of_value
from topics.codecs.json.probabilities import as_written
from topics.columns.records import Format, Predictions, RawRecords


@dataclass(frozen=True, slots=True)
class Explained:
    """One answer, and its explanation."""

    id: str
    label: str | None
    probabilities: dict[str, float]
    version: int
    path: str
    """Rules that lead to the leaf; `all`: the tree is one leaf."""
    asked: bool
    """Whether the label was requested."""
    why: str
    """The reason for or against the request, in words."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The results of a record of instances."""

    key: str | None
    answers: tuple[Explained, ...]  # one for each row that was answered
    refused: tuple[str, ...]  # details of its dead letters
    predictions: tuple[Predictions, ...]  # as they were sent, except for the path

    def same_as(self, value: bytes) -> bool | None:
        """Whether a value of the topic `predictions` has the same answers; None: it answers another instance.

        They are compared with the precision of the format: JSON has four decimals, packed has single
        precision. JSON that was read from Avro has more decimals; they do not count.
        """
        ids = {answer.id for answer in self.answers}
        wire = wire_of_value(value)
        form: Format = wire if wire in ("packed", "arrow") else "json"
        rows = [row for row in _read([value], form) if row[0] in ids]
        if not rows:
            return None
        ours = [
            row
            for predictions in self.predictions
            for row in _read(encode_predictions(predictions, form), form)
        ]
        return all(row in ours for row in rows) and len(rows) >= len(ids)


def _read(values: list[bytes], form: Format) -> list[tuple[str | None, str | None, dict[str, float], int]]:
    predictions = decode_predictions(values)
    return [
        (
            predictions.ids[row],
            predictions.labels[row],
            {name: as_written(share) for name, share in predictions.probabilities[row].items()}
            if form == "json"
            else predictions.probabilities[row],
            int(predictions.version[row]),
        )
        for row in range(len(predictions))
    ]


def explain(task: Task, raw: RawRecords) -> Explanation:
    """Explain the answers to one record of instances; the task must be at the state right before it.

    Afterwards the task is at the state right after the record.
    """
    key = raw.keys[0]
    name = None if key is None else key.decode("utf-8", "replace")
    slot = NO_MODEL if name is None else task.models.keys.slot(name)
    before, plain = _account(task, name), None
    if slot != NO_MODEL:
        plain = task.models.cache.model(slot).spec
        task.models.configure(slot, _explaining(plain))
    effects = task.process(TaskRun("instances", raw))
    if name is not None and plain is not None:
        task.models.configure(task.models.keys.slot(name), plain)
    reason = _Reason(task, name, before, effects)
    asked = {id_ for group in effects.requests for id_ in group.requests.instance_ids}
    answers = tuple(
        Explained(row.id or "", row.label, row.probabilities, row.version, row.path, row.id in asked, "")
        for group in effects.answers
        for row in _rows(group)
    )
    return Explanation(
        name,
        tuple(
            Explained(a.id, a.label, a.probabilities, a.version, a.path, a.asked, reason.of(a, len(answers)))
            for a in answers
        ),
        tuple(f"{letter.reason}: {letter.detail}" for letter in effects.dead_letters),
        tuple(_plain(group.predictions) for group in effects.answers),
    )


@dataclass(frozen=True, slots=True)
class _Row:
    id: str | None
    label: str | None
    probabilities: dict[str, float]
    version: int
    path: str


def _rows(answers: PredictionGroup) -> Iterator[_Row]:
    predictions = answers.predictions
    for row, version in enumerate(predictions.version.tolist()):
        if version >= 0:
            code = int(predictions.prediction[row])
            shares = predictions.probability[row, : len(predictions.classes)].tolist()
            yield _Row(
                predictions.ids[row],
                predictions.classes[code] if code >= 0 else None,
                dict(zip(predictions.classes, shares, strict=True)),
                version,
                (predictions.explanation[row] if predictions.explanation else None) or ROOT,
            )


class _Reason:
    """The reason for label requests, as far as the accounts before and after the record show."""

    def __init__(self, task: Task, key: str | None, before: Account | None, effects: Effects) -> None:
        self._effects = effects
        self._before, self._after = before, _account(task, key)
        slot = NO_MODEL if key is None else task.models.keys.slot(key)
        self._frozen = slot != NO_MODEL and bool(task.models.traits.frozen[slot])
        self._spec = None if slot == NO_MODEL else task.models.cache.model(slot).spec
        self._records = 0 if slot == NO_MODEL else task.models.cache.model(slot).summary().records

    def of(self, answer: Explained, n: int) -> str:
        assert self._spec is not None
        assert self._after is not None
        strategy, counts = self._spec.query.name, self._effects.counts
        before = 0 if self._before is None else self._before.asked
        spent = (
            f"{before} of {self._records - n} records had been requested (limit {self._spec.budget.limit:g})"
        )
        if answer.asked:
            if n == 1 and self._after.reserved > (self._before.reserved if self._before else 0):
                return "drawn at random for the evaluation (evaluation.share)"
            return f"{strategy} requested it, and the budget was open: {spent}"
        if self._frozen:
            return "the model is frozen: it answers, but neither requests labels nor learns"
        if n > 1:
            return (
                f"{strategy} or the budget did not request it, or it came with its label (a row of a block)"
            )
        if counts[counters.LABELLED]:
            return "its label came with it"
        if counts[counters.REPEATED]:
            return "its id is remembered: the instance was answered before"
        if self._after.refused > (self._before.refused if self._before else 0):
            return f"the budget was closed: {spent}"
        return f"{strategy} did not request it: {spent}"


def _account(task: Task, key: str | None) -> Account | None:
    slot = NO_MODEL if key is None else task.models.keys.slot(key)
    return None if slot == NO_MODEL else Account.of(task.models.cache.model(slot).ints)


def _explaining(spec: Spec) -> Spec:
    return Spec.parse(spec.to_dict() | {"explain": True}, STATE_VERSION)


def _plain(predictions: Predictions) -> Predictions:
    columns = predictions.ids, predictions.prediction, predictions.probability, predictions.version
    return Predictions(predictions.classes, *columns)
