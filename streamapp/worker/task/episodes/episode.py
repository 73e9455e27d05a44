"""Episode: one record on its way to the answer, and the features of it that are known so far.

An episode is never changed: a new episode replaces it. So an image of all episodes is a list of them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from core.schema.names import text_bytes
from core.schema.schema import Schema
from streamapp.worker.task.pending.name_columns import Name
from topics.columns.records import Features, Floats, Ints64

Statuses = npt.NDArray[np.int8]

UNKNOWN: Final = 0
KNOWN: Final = 1
"""The value came with the record: it is free."""
ASKED: Final = 2
BOUGHT: Final = 3
UNAVAILABLE: Final = 4
"""The value was requested and is unavailable: it costs nothing."""

EPISODE_BYTES: Final = 1200
"""Bytes of an episode without its features, words and long texts: objects, arrays, place in the table."""

TEXT_BYTES: Final = 128
"""Bytes of its name and place that `EPISODE_BYTES` includes; longer texts count in addition."""

FEATURE_BYTES: Final = 9
"""Bytes of a value and its status."""


class Episode(NamedTuple):
    """A record whose features are being bought; columns are those in the model's schema when it came."""

    name: Name  # model key and instance id
    serial: int  # number in the partition
    place: str  # of the record in the log: <partition>-<offset>, in blocks -<row> after it
    opened: int  # clock when it came
    deadline: int  # clock after which a value is too late
    weight: float  # of the record
    x: Floats  # float64[d], NaN where nothing is known
    status: Statuses  # int8[d]
    words: Ints64  # int64[w], the acquirer's
    bought: tuple[int, ...] = ()  # columns, in the order of arrival of their values
    cost: float = 0.0  # of the bought features
    questions: int = 0  # requests sent

    @property
    def size(self) -> int:
        """Return the bytes it takes."""
        text = text_bytes(self.name[0]) + text_bytes(self.name[1]) + len(self.place)
        arrays = FEATURE_BYTES * len(self.x) + 8 * (len(self.words) + len(self.bought))
        return EPISODE_BYTES + arrays + max(0, text - TEXT_BYTES)

    @property
    def waits(self) -> bool:
        """Whether a requested feature has not come yet."""
        return bool((self.status == ASKED).any())

    @property
    def unknown(self) -> npt.NDArray[np.bool_]:
        """bool[d]: the features that may be requested."""
        return np.asarray(self.status == UNKNOWN)

    def asking(self, columns: tuple[int, ...]) -> Episode:
        """Return the episode after a request."""
        status = self.status.copy()
        status[[*columns]] = ASKED
        return self._replace(status=status, questions=self.questions + 1)

    def widened(self, width: int) -> Episode:
        """Return the episode for a schema that has grown to `width` columns; new columns are unknown."""
        more = width - len(self.x)
        if more <= 0:
            return self
        x = np.concatenate((self.x, np.full(more, np.nan)))
        return self._replace(x=x, status=np.concatenate((self.status, np.zeros(more, dtype=np.int8))))


def known_features(schema: Schema, x: Floats) -> Features:
    """Return the known values of a record (float64[d]) with their names in a schema, which may be none."""
    names: list[str] = []
    values: list[float] = []
    strings: dict[int, list[str | None]] = {}
    for column in np.flatnonzero(~np.isnan(x)).tolist():
        attribute = schema.attributes[column]
        if attribute.kind == "nominal":
            strings[len(names)] = [attribute.values[int(x[column])]]
            values.append(np.nan)
        else:
            values.append(float(x[column]))
        names.append(attribute.name)
    return Features.of(names, np.array([values], dtype=np.float64).reshape(1, -1), strings)


def known_cells(schema: Schema, x: Floats) -> dict[str, float | str]:
    """Return the known values of a record in the form of a request."""
    cells: dict[str, float | str] = {}
    for attribute, value in zip(schema.attributes, x.tolist(), strict=False):
        if value == value:  # not NaN
            is_nominal = attribute.kind == "nominal"
            cells[attribute.name] = attribute.values[int(value)] if is_nominal else value
    return cells
