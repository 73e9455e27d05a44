"""Runs of raw records, and outcomes in a form that is easy to compare."""

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from topics.codecs import decode_instances, decode_labels
from topics.columns.records import Features, Headers, Instances, Labels, RawRecords

FIRST_OFFSET = 100
PARTITION = 3


def run_of(
    values: Sequence[bytes | None],
    *,
    keys: Sequence[bytes | None] | None = None,
    headers: Sequence[Headers] | None = None,
) -> RawRecords:
    """Return a run of partition 3 that begins at offset 100."""
    n = len(values)
    return RawRecords(
        topic="grove.instances",
        partition=PARTITION,
        offsets=list(range(FIRST_OFFSET, FIRST_OFFSET + n)),
        timestamps=[1_800_000_000_000] * n,
        keys=list(keys) if keys is not None else [b"m"] * n,
        values=list(values),
        headers=list(headers) if headers is not None else [()] * n,
    )


def stream(table: pa.Table | pa.RecordBatch, **options: Any) -> bytes:
    """Return the Arrow IPC stream of a table."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write(table)
    return sink.getvalue()


def instance(value: bytes) -> Instances:
    """Return the decoded single record."""
    return decode_instances(run_of([value]))


def label(value: bytes) -> Labels:
    """Return the decoded single record."""
    return decode_labels(run_of([value]))


def reasons(decoded: Any) -> dict[int, str]:
    """Return the reason of each malformed record."""
    return {malformed.record: str(malformed.reason) for malformed in decoded.malformed}


def only_flaw(decoded: Any) -> tuple[str, str]:
    """Return reason and detail of a run that is one bad record."""
    assert len(decoded) == 0
    (flawed,) = decoded.malformed
    assert flawed.record == 0
    return str(flawed.reason), flawed.detail


def classes(decoded: Instances | Labels) -> list[str | None]:
    """Return the class name of each row."""
    return [None if code < 0 else decoded.label_values[code] for code in decoded.label.tolist()]


def keys_of(decoded: Instances | Labels) -> list[str]:
    """Return the key of each row."""
    return [decoded.keys[code] for code in decoded.key.tolist()]


def cells(decoded: Instances | Labels) -> list[dict[str | int, float | str | None] | None]:
    """Return the features of each row: a string, a number, or None where missing; by name or position."""
    cells_of_rows: list[dict[str | int, float | str | None] | None] = [None] * len(decoded)
    for group in decoded.features:
        assert group.values.dtype == np.float64
        assert group.values.flags.c_contiguous
        assert group.values.shape == (len(group.rows), group.values.shape[1])
        assert (np.diff(group.rows) > 0).all()
        for place, row in enumerate(group.rows.tolist()):
            assert cells_of_rows[row] is None, "a row is in one group only"
            cells_of_rows[row] = _row(group, place)
    return cells_of_rows


def _row(group: Features, place: int) -> dict[str | int, float | str | None]:
    names: Sequence[str | int] = range(group.values.shape[1]) if group.names is None else group.names
    row: dict[str | int, float | str | None] = {}
    for column, name in enumerate(names):
        number = float(group.values[place, column])
        text = group.strings[column][place] if column in group.strings else None
        assert text is None or np.isnan(number), "a cell is a number or a string"
        row[name] = text if text is not None else None if np.isnan(number) else number
    return row
