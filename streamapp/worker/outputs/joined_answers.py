"""Joined answers: the answers to small runs of several partitions, written in one call.

The cost of writing the answers to a run hardly depends on their number. So the answers of all small runs
whose models have the same classes are written together, and each run gets its part.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamapp.worker.outputs.outgoing import OutputRecords
from streamapp.worker.outputs.record_sizes import RECORD_BYTES
from streamapp.worker.task.effects.effects import Effects
from topics.codecs.compiled.encode import encode_answers
from topics.codecs.compiled.encode_avro import avro_answers
from topics.codecs.compiled.small_runs import joinable
from topics.codecs.content_types import uniform_wire
from topics.columns.members import given
from topics.columns.records import Ints64, RawRecords
from topics.columns.row_cuts import joined
from topics.columns.spans import Spans, any_headers


def joined_answers(
    runs: Sequence[tuple[RawRecords, Effects]], topic: str, schema_id: int | None = None
) -> list[OutputRecords | None]:
    """Return the answers of each run with minimal headers; None: the encoder has to write them.

    They are JSON, or in Avro if `schema_id` is the id of the schema of predictions.
    """
    answers: list[OutputRecords | None] = [None] * len(runs)
    alike: dict[tuple[str, ...], list[int]] = {}
    for number in joinable([raw for raw, _ in runs]):
        raw, effects = runs[number]
        if _is_plain(raw, effects, schema_id):
            alike.setdefault(effects.answers[0].predictions.classes, []).append(number)
    for numbers in alike.values():
        if len(numbers) > 1:
            written = _written([runs[number] for number in numbers], topic, schema_id)
            for number, records in zip(numbers, written, strict=False):
                answers[number] = records
    return answers


def _is_plain(raw: RawRecords, effects: Effects, schema_id: int | None) -> bool:
    """Return whether a run without headers leads to one answer of the same format for each record."""
    if len(effects.answers) != 1 or any_headers(raw.headers):
        return False
    if schema_id is None and uniform_wire(raw.values, ()) != "json":
        return False
    answers = effects.answers[0]
    is_single = not answers.block and answers.key is None and len(answers.record) == len(raw)
    return is_single and not any(given(answers.predictions))


def _written(
    runs: Sequence[tuple[RawRecords, Effects]], topic: str, schema_id: int | None
) -> list[OutputRecords]:
    """Return the answers to each run; an empty list if some are not in the order of the records."""
    answers = [effects.answers[0] for _, effects in runs]
    lengths = [len(raw) for raw, _ in runs]
    ends = np.cumsum([0, *lengths])
    about = np.arange(ends[-1]) - np.repeat(ends[:-1], lengths)
    if np.count_nonzero(np.concatenate([group.record for group in answers]) != about):
        return []
    predictions = joined([group.predictions for group in answers])
    if schema_id is None:
        values = encode_answers(predictions, "json")
    else:
        values = avro_answers(predictions, schema_id)
    keys = [Spans.of(raw.keys) for raw, _ in runs]
    most_bytes = RECORD_BYTES + _longest(values.lengths, ends)
    most_bytes += _longest(np.concatenate([column.lengths for column in keys]), ends)
    first = values.starts[ends[:-1]]
    starts, begins = values.starts - np.repeat(first, lengths), ends.tolist()
    bounds = [*first.tolist(), len(values.buffer)]
    written = []
    for number, (raw, _) in enumerate(runs):
        rows = slice(begins[number], begins[number + 1])
        # Bytes are copied for each run: a run whose outputs are held keeps no other run's in memory.
        own = values.buffer[bounds[number] : bounds[number + 1]]
        columns = (Spans(own, starts[rows], values.lengths[rows]), keys[number], raw.spans.timestamps)
        most = int(most_bytes[number])
        written.append(OutputRecords(topic, "prediction", *columns, None, about[rows], most))
    return written


def _longest(lengths: Ints64, ends: Ints64) -> Ints64:
    """Return int64[runs]: the bytes of the longest text of each, none of which is empty."""
    longest: Ints64 = np.maximum(np.maximum.reduceat(lengths, ends[:-1]), 0)
    return longest
