"""Answers of one model, as a task gave them, and the places of its label requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamapp.worker.task.effects.effects import Requests
from streamapp.worker.task.label_review import ReviewedRun
from streamapp.worker.task.task import Task
from topics.columns.records import RawRecords


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one instance."""

    place: str
    """`<partition>-<offset>`, in blocks followed by `-<row>`: the id of a request for its label."""
    offset: int
    id: str
    label: str | None  # None: the model knew no class
    probabilities: dict[str, float]
    chosen: bool
    """Whether the strategy chose it; a request follows unless its id was answered before."""
    sampled: int
    importance: float
    own_label: str | None
    """The label that came with it, or before it; None: none."""

    def same_as(self, other: Answer) -> bool:
        """Whether class and probabilities are equal, to the bit."""
        return self.label == other.label and self.probabilities == other.probabilities

    def to_dict(self) -> dict[str, Any]:
        return {"label": self.label, "probabilities": self.probabilities}


def answers_in(run: ReviewedRun, task: Task, key: str) -> Iterator[tuple[int, Answer]]:
    """Yield the rows of a run that the model of a key answered, with the answers."""
    batch, replies = run.batch, run.replies
    if key not in batch.keys:
        return
    rows = np.flatnonzero((batch.key == batch.keys.index(key)) & replies.answered).tolist()
    if not rows:
        return
    classes = task.models.traits.schema(int(run.model[rows[0]])).classes
    blocks = set(batch.blocks[:, 0].tolist())
    labelled, values = run.labelled, run.label_values
    for row in rows:
        record, code = int(batch.record[row]), int(replies.prediction[row])
        offset = run.raw.offsets[record]
        place = f"{run.raw.partition}-{offset}"
        known = int(replies.known[row])
        yield (
            row,
            Answer(
                place=f"{place}-{batch.row[row]}" if record in blocks else place,
                offset=int(offset),
                id=batch.ids[row],
                label=classes[code] if code >= 0 else None,
                probabilities=dict(
                    zip(classes[:known], replies.probability[row, :known].tolist(), strict=True)
                ),
                chosen=bool(replies.asked[row]),
                sampled=int(replies.sampled[row]),
                importance=float(replies.importance[row]),
                own_label=values[run.label[row]] if labelled[row] and run.label[row] >= 0 else None,
            ),
        )


def requested(requests: Iterable[Requests], raw: RawRecords, key: bytes) -> set[str]:
    """Return the places of a model's requests in a run."""
    return {
        place
        for group in requests
        for record, place in zip(group.record.tolist(), group.requests.request_ids, strict=True)
        if (raw.keys[record] if group.key is None else group.key) == key
    }
