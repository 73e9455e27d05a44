"""Label requests to JSON, and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Any

import numpy as np

from topics.codecs.batch import Batch
from topics.codecs.flaws import Flaw, Flaws, add_flaw, kind, outcomes
from topics.codecs.json.documents import Document, parse
from topics.codecs.json.features import gather
from topics.codecs.json.lines import objects, write_documents
from topics.codecs.json.writer import scattered_cells
from topics.errors import Reason
from topics.records import LabelRequests, Malformed

_NONE = type(None)
# member -> types it may have; null in the place of a number has the meaning LabelRequests says
_TYPES: dict[str, tuple[type, ...]] = {
    "request_id": (str,),
    "instance_id": (str,),
    "prediction": (str, _NONE),
    "strategy": (str,),
    "utility": (float, int, _NONE),
    "expires_ms": (int, _NONE),
}


def write_label_requests(requests: LabelRequests) -> list[bytes]:
    """Return one object for each request."""
    members: dict[str, Iterable[Any]] = {
        "request_id": requests.request_ids,
        "instance_id": requests.instance_ids,
        "features": scattered_cells(requests.features, len(requests)),
        "prediction": requests.predictions,
        "strategy": requests.strategies,
        "utility": requests.utility.tolist(),  # orjson writes NaN as null
        "expires_ms": [None if expires < 0 else expires for expires in requests.expires_ms.tolist()],
    }
    return write_documents(objects(members))


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
    )


def _check(name: str, cells: Sequence[Any], types: tuple[type, ...], flaws: Flaws) -> None:
    if set(map(type, cells)) <= set(types):
        return
    for row, cell in enumerate(cells):
        if cell is None and _NONE not in types:
            add_flaw(flaws, [row], Flaw(Reason.MISSING_FIELD, f"{name} is missing"))
        elif type(cell) not in types:
            add_flaw(flaws, [row], Flaw(Reason.WRONG_TYPE, f"{name} must not be {kind(cell)}"))
