"""Documents: the JSON objects of a batch."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import chain, compress
from typing import Any

import orjson

from topics.codecs.batch import Batch
from topics.codecs.crowding import SMALL, crowding
from topics.codecs.flaws import Flaw, Flaws, kind, outcomes
from topics.columns.records import Malformed
from topics.errors import Reason

Document = dict[str, Any]

# Python's own json module writes these for a float that is not finite; JSON parsers refuse them.
_NOT_FINITE = re.compile(rb"[\[:,]\s*-?(?:NaN|Infinity)\b")


def parse(batch: Batch, max_values: int) -> tuple[list[Document], Batch, list[Malformed]]:
    """Return the objects of the batch, the batch of their records, and the outcomes of the other records.

    Records that may hold more than `max_values` values are refused before they are parsed.
    """
    if max(map(len, batch.values), default=0) > SMALL:
        crowded = _crowded(batch, max_values)
        if crowded:
            rest, _mask = batch.without(crowded)
            documents, good, bad = _parse(rest)
            return documents, good, [*outcomes(batch.record, crowded), *bad]
    return _parse(batch)


def _crowded(batch: Batch, max_values: int) -> Flaws:
    found = ((row, crowding(value, max_values)) for row, value in enumerate(batch.values))
    return {row: flaw for row, flaw in found if flaw is not None}


def _parse(batch: Batch) -> tuple[list[Document], Batch, list[Malformed]]:
    """Return the result of `parse` for records that are not too large."""
    try:
        documents: list[Any] = list(map(orjson.loads, batch.values))
    except orjson.JSONDecodeError:
        flaws: Flaws = {}
        documents = [_loads(row, value, flaws) for row, value in enumerate(batch.values)]
    else:
        if set(map(type, documents)) <= {dict}:
            return documents, batch, []
        flaws = {}
    for row, document in enumerate(documents):
        if type(document) is not dict and row not in flaws:
            detail = f"the record must be an object; got {kind(document)}"
            flaws[row] = Flaw(Reason.WRONG_TYPE, detail)
    good, mask = batch.without(flaws)
    return list(compress(documents, mask)), good, outcomes(batch.record, flaws)


def members(documents: list[Document]) -> Callable[[str], list[Any]]:
    """Return a function that returns the n cells of a member, None for a document without it."""
    none = [None] * len(documents)
    names = list(documents[0]) if documents else []
    # Each document has at most len(names) different members, so equal concatenations mean equal documents.
    if list(chain.from_iterable(documents)) == names * len(documents):
        flat = list(chain.from_iterable(map(dict.values, documents)))
        cells = {name: flat[place :: len(names)] for place, name in enumerate(names)}
        return lambda name: cells.get(name, none)
    return lambda name: [document.get(name) for document in documents]


def _loads(row: int, value: bytes, flaws: Flaws) -> Any:
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError as error:
        if "infinity" in error.msg or _NOT_FINITE.search(value):
            flaws[row] = Flaw(
                Reason.NOT_FINITE, "NaN and infinity are not JSON; write null for a missing value"
            )
        else:
            flaws[row] = Flaw(Reason.NOT_JSON, str(error))
        return None
