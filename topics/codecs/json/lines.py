"""Many documents written in one call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from typing import Any

import orjson

# A line break inside a JSON string is always escaped, so this one is only found between documents.
_BREAK = orjson.Fragment(b"\n")
_BETWEEN = b",\n,"
CHUNK = 256  # documents per call: they and their text stay in the processor's cache


def write_documents(documents: list[Any]) -> list[bytes]:
    """Return the JSON text of each document.

    A call of orjson.dumps costs six times as much as writing ten numbers. So documents are written as one
    array with a line break as every second element, and the text is split at the line breaks.
    """
    texts: list[bytes] = []
    for start in range(0, len(documents), CHUNK):
        chunk = documents[start : start + CHUNK]
        elements = [_BREAK] * (2 * len(chunk) - 1)
        elements[::2] = chunk
        texts += orjson.dumps(elements)[1:-1].split(_BETWEEN)
    return texts


def chunks(n: int) -> Iterator[slice]:
    """Return the slices in which n rows are best converted and written."""
    return (slice(start, start + CHUNK) for start in range(0, n, CHUNK))


def objects(members: Mapping[str, Iterable[Any]]) -> list[Any]:
    """Return one object for each row of the columns, which have equal lengths."""
    return list(map(dict, map(zip, repeat(tuple(members)), zip(*members.values(), strict=True))))
