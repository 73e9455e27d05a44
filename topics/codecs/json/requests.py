"""Label requests to JSON, and JSON to label requests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Any

import numpy as np

from topics.codecs.batch import Batch
from topics.codecs.flaws import Flaw, Flaws, add_flaw, kind, outcomes
from topics.codecs.json.documents import Document, parse
from topics.codecs.json.features import gather
from topics.codecs.json.lines import chunks, objects, write_documents
from topics.codecs.json.writer import feature_cells, scattered_cells
from topics.columns.members import Member, given, members
from topics.columns.records import LabelRequests, Malformed
from topics.errors import Reason

_NONE = type(None)
# member -> types it may have; LabelRequests defines what null means in place of a number
_TYPES: dict[str, tuple[type, ...]] = {
    "request_id": (str,),
    "instance_id": (str,),
    "prediction": (str, _NONE),
    "strategy": (str,),
    "utility": (float, int, _NONE),
    "expires_ms": (int, _NONE),
    **{member.name: (member.type, _NONE) for member in members(LabelRequests).values()},
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
        required: dict[str, Iterable[Any]] = {
            "request_id": requests.request_ids[rows],
            "instance_id": requests.instance_ids[rows],
            "features": feature_cells(requests.features[0], rows) if together else scattered[rows],
            "prediction": requests.predictions[rows],
            "strategy": requests.strategies[rows],
            "utility": requests.utility[rows].tolist(),  # orjson writes NaN as null
            "expires_ms": [None if end < 0 else end for end in requests.expires_ms[rows].tolist()],
        }
        documents = objects(required)
        for member, cells in given(requests):
            for document, cell in zip(documents, cells[rows], strict=True):
                value = None if cell is None else member.to_json(cell)
                if value is not None:
                    document[member.name] = value
        texts += write_documents(documents)
    return texts


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
    cells: dict[str, list[Any]] = {name: [document.get(name) for document in documents] for name in _TYPES}
    for name, types in _TYPES.items():
        _check(name, cells[name], types, flaws)
    utility = [cell if type(cell) in (float, int) else np.nan for cell in cells["utility"]]
    expires = [cell if type(cell) is int else -1 for cell in cells["expires_ms"]]
    return LabelRequests(
        request_ids=cells["request_id"],
        instance_ids=cells["instance_id"],
        features=gather([document.get("features") for document in documents], flaws, optional=True),
        predictions=cells["prediction"],
        strategies=cells["strategy"],
        utility=np.array(utility, dtype=np.float64),
        expires_ms=np.array(expires, dtype=np.int64),
        record=batch.record,
        malformed=sorted(bad, key=lambda each: each.record),
        **{column: _read(member, cells[member.name]) for column, member in members(LabelRequests).items()},
    )


def _read(member: Member, cells: Sequence[Any]) -> list[Any]:
    return [member.from_json(cell) if type(cell) is member.type else member.absent() for cell in cells]


def _check(name: str, cells: Sequence[Any], types: tuple[type, ...], flaws: Flaws) -> None:
    if set(map(type, cells)) <= set(types):
        return
    for row, cell in enumerate(cells):
        if cell is None and _NONE not in types:
            add_flaw(flaws, [row], Flaw(Reason.MISSING_FIELD, f"{name} is missing"))
        elif type(cell) not in types:
            add_flaw(flaws, [row], Flaw(Reason.WRONG_TYPE, f"{name} must not be {kind(cell)}"))
