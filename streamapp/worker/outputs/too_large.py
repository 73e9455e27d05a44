"""Outputs too large for their topic: dead letters of the records they are about replace them.

The task's work is not undone: the model keeps what it learned, and the record's further outputs are sent. An
answer is not divided: a block is answered by one block, row for row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamapp.worker.outputs.outgoing import OutputRecords
from streamapp.worker.outputs.record_sizes import ROW_BYTES, TIMES_INPUT, OutputLimits
from streamapp.worker.task import counters
from streamapp.worker.task.effects.effects import DeadLetter, Effects, Origin
from topics.codecs.prediction_row import DEAD
from topics.columns.records import RawRecords
from topics.errors import Reason

PREDICTION = "prediction"


class _Output(NamedTuple):
    """An output that is not sent."""

    record: int  # index in RawRecords
    kind: str
    why: str


class TooLarge:
    """The outputs of one run that are not sent."""

    def __init__(self, raw: RawRecords, limits: OutputLimits, effects: Effects, most: int) -> None:
        """`effects`: of the run; `most`: bytes that the value of an output may have for any record."""
        self._raw = raw
        self._limits = limits
        self._effects = effects
        self._most = most
        self._outputs: list[_Output] = []

    def add(self, record: int, kind: str, why: str) -> None:
        """Note an output that cannot be sent."""
        self._outputs.append(_Output(record, kind, why))

    def without(self, outgoing: OutputRecords) -> OutputRecords:
        """Return the records that fit their topic and are in proportion to their inputs; note the rest."""
        limit = self._limits.of(outgoing.topic)
        if outgoing.most_bytes <= min(limit, self._most):
            return outgoing
        outgoing = self._in_proportion(outgoing)
        if outgoing.most_bytes <= limit:
            return outgoing
        sizes = [outgoing.bytes_of(at) for at in range(len(outgoing))]
        for record, size in zip(outgoing.records.tolist(), sizes, strict=True):
            if size > limit:
                why = f"{size} bytes are more than {self._limits.rule(outgoing.topic)}"
                self.add(record, outgoing.kind, why)
        return outgoing.taken(np.flatnonzero(np.array(sizes) <= limit))

    def _in_proportion(self, outgoing: OutputRecords) -> OutputRecords:
        """Return the records that are not too large for the records they are about; note the rest.

        An answer repeats the names of all classes, and a request may name all features: an input of a few
        bytes must not lead to megabytes of output.
        """
        if outgoing.values.longest <= self._most:
            return outgoing
        given = self._raw.spans.values.lengths[outgoing.records]
        rows = np.ones(len(self._raw), dtype=np.int64)
        for answers in self._effects.answers:
            if answers.block:
                rows[answers.record[0]] = len(answers.predictions)
        share = np.maximum(TIMES_INPUT * given, ROW_BYTES * rows[outgoing.records])
        allowed = np.maximum(self._most, share)
        lengths = outgoing.values.lengths
        for at in np.flatnonzero(lengths > allowed).tolist():
            why = (
                f"{lengths[at]} bytes are more than {allowed[at]}, which a record of {given[at]} bytes may "
                f"lead to: max.output.bytes={self._most}, or {TIMES_INPUT} times its bytes"
            )
            self.add(int(outgoing.records[at]), outgoing.kind, why)
        return outgoing.taken(np.flatnonzero(lengths <= allowed))

    def write(self, effects: Effects) -> None:
        """Add the noted outputs to the effects: a dead letter for each record, and the counts."""
        if not self._outputs:
            return
        by_record: dict[int, list[_Output]] = {}
        for output in self._outputs:
            by_record.setdefault(output.record, []).append(output)
        effects.dead_letters += [
            self._letter(record, outputs, effects) for record, outputs in by_record.items()
        ]
        effects.dead_letters.sort(key=lambda letter: letter.record)
        effects.count(counters.OUTPUTS_TOO_LARGE, len(self._outputs))
        unanswered = {output.record for output in self._outputs if output.kind == PREDICTION}
        rows = sum(_rows(effects, record) for record in unanswered)
        effects.count(counters.ANSWERED, -rows)
        effects.count(counters.INSTANCES_DEAD, rows)

    def _letter(self, record: int, outputs: list[_Output], effects: Effects) -> DeadLetter:
        first, others = outputs[0], len(outputs) - 1
        also = f" (and {others} more of its outputs)" if others else ""
        fewer = "send fewer rows in a block, or " if _is_block(effects, record) else ""
        detail = (
            f"its {first.kind.replace('-', ' ')} cannot be sent: {first.why}{also}; "
            f"{fewer}raise the limit and start the worker again, or send smaller records"
        )
        origin = Origin.of(self._raw, record)
        return DeadLetter(origin, Reason.OUTPUT_TOO_LARGE, detail, exception="RecordTooLarge", record=record)


def _rows(effects: Effects, record: int) -> int:
    """Return how many rows of a record were answered."""
    return sum(
        int(np.count_nonzero((answers.record == record) & (answers.predictions.version != DEAD)))
        for answers in effects.answers
    )


def _is_block(effects: Effects, record: int) -> bool:
    return any(answers.block and answers.record[0] == record for answers in effects.answers)
