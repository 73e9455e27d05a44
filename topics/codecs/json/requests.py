"""Label requests to JSON, and JSON to label requests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Any, Final

import numpy as np

from topics.codecs.batch import Batch
from topics.codecs.flaws import Flaw, Flaws, add_flaw, kind, outcomes
from topics.codecs.json.documents import Document, parse
from topics.codecs.json.features import gather
from topics.codecs.json.lines import chunks, objects, write_documents
from topics.codecs.json.writer import feature_cells, scattered_cells
from topics.columns.records import LabelRequests, Malformed, Seen
from topics.errors import Reason

LARGEST: Final = 2**53
"""More records than any model has answered."""

_NONE = type(None)
# member -> types it may have; LabelRequests defines what null means in place of a number
_TYPES: dict[str, tuple[type, ...]] = {
    "request_id": (str,),
    "instance_id": (str,),
    "prediction": (str, _NONE),
    "strategy": (str,),
    "utility": (float, int, _NONE),
    "expires_ms": (int, _NONE),
    "explanation": (str, _NONE),
    "probabilities": (dict, _NONE),
    "ranges": (dict, _NONE),
}


def write_label_requests(requests: LabelRequests) -> list[bytes]:
    """Return one object for each request.

    The features of a block become objects in parts: all objects at once take ten times the memory of their
    text.
    """
    n, texts = len(requests), list[bytes]()
    together = len(requests.features) == 1 and len(requests.features[0]) == n
    scattered = [] if together else scattered_cells(requests.features, n)
    for rows in chunks(n):
        members: dict[str, Iterable[Any]] = {
            "request_id": requests.request_ids[rows],
            "instance_id": requests.instance_ids[rows],
            "features": feature_cells(requests.features[0], rows) if together else scattered[rows],
            "prediction": requests.predictions[rows],
            "strategy": requests.strategies[rows],
            "utility": requests.utility[rows].tolist(),  # orjson writes NaN as null
            "expires_ms": [None if end < 0 else end for end in requests.expires_ms[rows].tolist()],
        }
        documents = objects(members)
        if requests.explanations is not None and requests.probabilities is not None:
            documents = list(
                map(_explained, documents, requests.explanations[rows], requests.probabilities[rows])
            )
        if requests.ranges is not None:
            documents = list(map(_with_ranges, documents, requests.ranges[rows]))
        texts += write_documents(documents)
    return texts


def _explained(document: dict[str, Any], path: str | None, shares: dict[str, float] | None) -> dict[str, Any]:
    """Return a request with the members that only models with explanations have."""
    return document if path is None else {**document, "explanation": path, "probabilities": shares}


def _with_ranges(document: dict[str, Any], ranges: dict[str, Seen]) -> dict[str, Any]:
    """Return a request with the ranges of the model's records."""
    return (
        {**document, "ranges": {name: tuple(seen) for name, seen in ranges.items()}} if ranges else document
    )


def read_label_requests(batch: Batch) -> LabelRequests:
    """Return the requests of the batch."""
    documents, good, bad = parse(batch, 2**31)
    flaws: Flaws = {}
    requests = _requests(documents, good, flaws, bad)
    if not flaws:
        return requests
    bad = bad + outcomes(good.record, flaws)
    rest, mask = good.without(flaws)
    return _requests(list(compress(documents, mask)), rest, {}, bad)


def _requests(documents: list[Document], batch: Batch, flaws: Flaws, bad: list[Malformed]) -> LabelRequests:
    members: dict[str, list[Any]] = {name: [document.get(name) for document in documents] for name in _TYPES}
    for name, types in _TYPES.items():
        _check(name, members[name], types, flaws)
    utility = [cell if type(cell) in (float, int) else np.nan for cell in members["utility"]]
    expires = [cell if type(cell) is int else -1 for cell in members["expires_ms"]]
    return LabelRequests(
        request_ids=members["request_id"],
        instance_ids=members["instance_id"],
        features=gather([document.get("features") for document in documents], flaws, optional=True),
        predictions=members["prediction"],
        strategies=members["strategy"],
        utility=np.array(utility, dtype=np.float64),
        expires_ms=np.array(expires, dtype=np.int64),
        record=batch.record,
        malformed=sorted(bad, key=lambda each: each.record),
        explanations=members["explanation"],
        probabilities=[_shares(cell) for cell in members["probabilities"]],
        ranges=[_ranges(cell) for cell in members["ranges"]],
    )


def _shares(cell: Any) -> dict[str, float] | None:
    """Return probabilities by class, leaving out cells that are not numbers."""
    if type(cell) is not dict:
        return None
    return {name: float(value) for name, value in cell.items() if type(value) in (float, int)}


def _ranges(cell: Any) -> dict[str, Seen]:
    """Return ranges by feature, leaving out cells that are not ranges."""
    found: dict[str, Seen] = {}
    for name, given in cell.items() if type(cell) is dict else ():
        if type(given) is list and len(given) == len(Seen._fields) and set(map(type, given)) <= {float, int}:
            low, high, n = given
            if low <= high and 1 <= n <= LARGEST:
                found[name] = Seen(float(low), float(high), int(n))
    return found


def _check(name: str, cells: Sequence[Any], types: tuple[type, ...], flaws: Flaws) -> None:
    if set(map(type, cells)) <= set(types):
        return
    for row, cell in enumerate(cells):
        if cell is None and _NONE not in types:
            add_flaw(flaws, [row], Flaw(Reason.MISSING_FIELD, f"{name} is missing"))
        elif type(cell) not in types:
            add_flaw(flaws, [row], Flaw(Reason.WRONG_TYPE, f"{name} must not be {kind(cell)}"))
