"""Outputs of a round: answers to runs that lead to nothing else, written in one call and sent together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from streamapp.worker.outputs.outgoing import OutputRecords
from streamapp.worker.outputs.record_sizes import RECORD_BYTES
from topics.codecs.compiled.encode import encode_answers
from topics.codecs.compiled.encode_avro import avro_answers
from topics.columns.records import Ints64
from topics.columns.spans import Numbers, Spans, between

if TYPE_CHECKING:
    from streamapp.worker.task.rounds.round_answers import RoundAnswers


@dataclass(frozen=True, slots=True, eq=False)
class RoundOutputs:
    """The answers to several runs of single records."""

    records: OutputRecords
    partitions: Ints64  # int64[n], of each record
    ends: Ints64  # int64[runs + 1]: the first answer to each run, and the end

    def __len__(self) -> int:
        """Return the number of runs."""
        return len(self.ends) - 1

    def size(self, run: int) -> int:
        """Return the bytes of the answers to a run."""
        starts = self.records.values.starts
        first, end = int(self.ends[run]), int(self.ends[run + 1])
        stop = len(self.records.values.buffer) if end == len(starts) else int(starts[end])
        return stop - int(starts[first])

    def part(self, run: int) -> OutputRecords:
        """Return the answers to a run.

        Bytes are copied: a run whose outputs are held keeps no other run's in memory.
        """
        whole, first, end = self.records, int(self.ends[run]), int(self.ends[run + 1])
        values, keys = whole.values[first:end], whole.keys[first:end]
        start = int(values.starts[0])
        own = whole.values.buffer[start : start + self.size(run)]
        return OutputRecords(
            whole.topic,
            whole.kind,
            Spans(own, values.starts - start, values.lengths),
            keys,
            Numbers(whole.timestamps.array[first:end]),
            None,
            np.arange(end - first),
            RECORD_BYTES + values.longest + keys.longest,
        )


def round_outputs(answers: RoundAnswers, topic: str, schema_id: int | None = None) -> RoundOutputs:
    """Return the records of answers to JSON without headers, one for each record.

    `schema_id`: id of the schema of predictions, which are then in Avro.
    """
    keys = answers.spans.keys
    if schema_id is None:
        values = encode_answers(answers.predictions, "json")
    else:
        values = avro_answers(answers.predictions, schema_id)
    most_bytes = RECORD_BYTES + values.longest + keys.longest
    about = np.arange(len(values)) - answers.ends[:-1].repeat(between(answers.ends))
    records = OutputRecords(
        topic, "prediction", values, keys, answers.spans.timestamps, None, about, most_bytes
    )
    return RoundOutputs(records, answers.partitions, answers.ends)
