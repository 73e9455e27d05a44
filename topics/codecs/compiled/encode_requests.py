"""Encoding of label requests: a kernel writes all of them into one buffer, byte for byte as the codec.

The codec of `topics` writes the cases that the kernel does not support: few requests, requests with optional
members, and requests whose features differ in their names. The codec's own writer encodes numbers and
strings, a column in one call; the kernel copies them to their places.
"""

from __future__ import annotations

from itertools import accumulate, chain
from typing import Final

import numpy as np
import orjson

from topics.codecs import encode_label_requests
from topics.codecs.compiled.encode import json_array, json_ids
from topics.codecs.json.compiled.requests import BY_POSITION, NAMES, write_requests
from topics.columns.dictionary import Dictionary
from topics.columns.members import given
from topics.columns.records import Features, LabelRequests
from topics.columns.spans import Bytes, Spans
from topics.columns.texts import NUMBER_BYTES

FEWEST: Final = 8
"""Requests from which on calling the kernel is worth its cost."""

_FIXED: Final = (b'{"request_id":', b',"instance_id":', b',"features":', b',"expires_ms":', b"null")


def encode_requests(requests: LabelRequests) -> Spans:
    """Return the result of `topics.codecs.encode_label_requests`, but faster."""
    n = len(requests)
    if n < FEWEST or any(given(requests)) or len(requests.features) != 1 or len(requests.features[0]) != n:
        return Spans.of(encode_label_requests(requests))
    (features,) = requests.features
    names = features.names
    if names is not None and (not names or len(set(names)) < len(names)):
        return Spans.of(encode_label_requests(requests))
    predictions, strategies = Dictionary.of(requests.predictions), Dictionary.of(requests.strategies)
    named = [b"%s%s:" % (b"," if at else b"{", orjson.dumps(name)) for at, name in enumerate(names or ())]
    answers = [b',"prediction":%s' % orjson.dumps(label) for label in predictions.values]
    queries = [b',"strategy":%s,"utility":' % orjson.dumps(name) for name in strategies.values]
    texts = [*_FIXED, *named, *answers, *queries]
    starts_of_texts = np.array([0, *accumulate(map(len, texts))], dtype=np.int64)
    request_ids, instance_ids = json_ids(requests.request_ids), json_ids(requests.instance_ids)
    cells, utility = _cells(features), _numbers(requests.utility)
    once = sum(map(len, chain(_FIXED, named))) + max(map(len, answers)) + max(map(len, queries))
    columns = sum(map(len, (request_ids, instance_ids, cells, utility)))
    out = np.empty(n * (once + NUMBER_BYTES + len("}}")) + columns, dtype=np.uint8)
    starts = np.empty(n + 1, dtype=np.int64)
    size = write_requests(
        request_ids,
        instance_ids,
        cells,
        utility,
        np.ascontiguousarray(requests.expires_ms),
        np.ascontiguousarray(predictions.codes),
        np.ascontiguousarray(strategies.codes),
        BY_POSITION if names is None else len(names),
        NAMES + len(named) + len(answers),
        np.frombuffer(bytearray().join(texts), dtype=np.uint8),
        starts_of_texts,
        out,
        starts,
    )
    return Spans.adjacent(out[:size].tobytes(), starts)


def _cells(features: Features) -> Bytes:
    """Return the features as a JSON array of arrays."""
    if not features.strings:
        return _numbers(features.values)
    rows = features.values.tolist()
    for column, cells in features.strings.items():
        for row, cell in zip(rows, cells, strict=True):
            if cell is not None:
                row[column] = cell
    return json_array(orjson.dumps(rows))


def _numbers(values: np.ndarray) -> Bytes:
    """Return numbers as JSON arrays, with null for NaN and infinity."""
    return json_array(orjson.dumps(np.ascontiguousarray(values), option=orjson.OPT_SERIALIZE_NUMPY))
