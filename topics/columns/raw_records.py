"""Raw records: a run as it was consumed, before its values are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from topics.columns.headers import Headers
from topics.columns.spans import Ints64, RecordSpans
from topics.registry.registered_schema import RegisteredSchema, SchemaId

COLUMNS: Final = ("offsets", "timestamps", "keys", "values", "headers")
Schemas = Mapping[SchemaId, RegisteredSchema]


@dataclass(slots=True, eq=False)
class RawRecords:
    """Consumed records of one topic partition in offset order, as columns of equal length.

    Fetched records are spans over a buffer: a key, a value or headers become Python objects only on access.
    """

    topic: str
    partition: int
    offsets: Sequence[int]
    timestamps: Sequence[int]  # milliseconds since the epoch: the event time of the record
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Sequence[Headers]  # () if a record has none
    schemas: Schemas | None = field(default=None, kw_only=True)
    """The schemas that the values name, by id; None: no registry is in use, and a frame is left out."""
    spans: RecordSpans = field(init=False, repr=False)
    """The records as spans over one buffer."""

    @classmethod
    def over(
        cls, topic: str, partition: int, spans: RecordSpans, schemas: Schemas | None = None
    ) -> RawRecords:
        """Return the records that spans describe."""
        raw = cls.__new__(cls)  # without columns, which a small run hardly needs
        raw.topic, raw.partition, raw.schemas = topic, partition, schemas
        raw.spans = spans
        return raw

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return a column or the spans, which are made from each other when they are needed."""
            if name == "spans":
                column: Any = RecordSpans.of(
                    self.offsets, self.timestamps, self.keys, self.values, self.headers
                )
            elif name in COLUMNS:
                column = getattr(self.spans, name)
            else:
                raise AttributeError(name)
            setattr(self, name, column)
            return column

    def __len__(self) -> int:
        return int(self.spans.table.shape[1])

    def part(self, start: int, stop: int) -> RawRecords:
        """Return records `start` to before `stop`."""
        return RawRecords.over(self.topic, self.partition, self.spans.part(start, stop), self.schemas)

    def chosen(self, records: Sequence[int] | Ints64) -> RawRecords:
        """Return the records with these indices."""
        spans = self.spans
        chosen = RecordSpans(spans.buffer, spans.table.take(records, axis=1))
        return RawRecords.over(self.topic, self.partition, chosen, self.schemas)

    def read_by(self, schemas: Schemas) -> RawRecords:
        """Return the same records, whose values are to be read by schemas."""
        return RawRecords.over(self.topic, self.partition, self.spans, schemas)
