"""Feature values: JSON documents to values of requested features."""

from __future__ import annotations

from itertools import compress
from typing import Any

import numpy as np

from topics.codecs.batch import Batch
from topics.codecs.cells import required_ids
from topics.codecs.flaws import Flaw, Flaws, kind, outcomes, quote
from topics.codecs.json.documents import Document, parse
from topics.codecs.lengths import check_cells, too_long
from topics.codecs.limits import Limits
from topics.columns.records import FeatureValues, Malformed
from topics.errors import Reason

_NUMBERS = (float, int, bool)
_REASONS = (str, type(None))


def read_feature_values(batch: Batch, limits: Limits) -> FeatureValues:
    """Return the feature values of the batch."""
    return feature_values_of(*parse(batch, limits.json_max_values), limits)


def feature_values_of(
    documents: list[Document], good: Batch, bad: list[Malformed], limits: Limits
) -> FeatureValues:
    """Return documents as feature values. `good` holds their records, `bad` the outcomes of other records."""
    flaws: Flaws = {}
    found = _feature_values(documents, good, flaws, bad, limits)
    check_cells("an id", found.ids, limits.text_max_bytes, flaws)
    if not flaws:
        return found
    bad = bad + outcomes(good.record, flaws)
    rest, mask = good.without(flaws)
    return _feature_values(list(compress(documents, mask)), rest, {}, bad, limits)


def _feature_values(
    documents: list[Document], batch: Batch, flaws: Flaws, bad: list[Malformed], limits: Limits
) -> FeatureValues:
    ids = required_ids([document.get("id") for document in documents], flaws)
    for row, document in enumerate(documents):
        flaw = _flaw(document, limits)
        if flaw is not None:
            flaws.setdefault(row, flaw)
    return FeatureValues(
        record=batch.record,
        row=np.zeros(len(documents), dtype=np.int32),
        keys=batch.keys,
        key=batch.key,
        ids=ids,
        values=[_values(document) for document in documents],
        unavailable=[_object(document.get("unavailable")) for document in documents],
        finish=[document.get("finish") is True for document in documents],
        malformed=sorted(bad, key=lambda each: each.record),
    )


def _object(cell: Any) -> dict[str, Any]:
    return cell if isinstance(cell, dict) else {}


def _values(document: Document) -> dict[str, float | str]:
    return {
        name: cell if isinstance(cell, str) else float(cell)
        for name, cell in _object(document.get("features")).items()
        if isinstance(cell, (str, *_NUMBERS))
    }


def _flaw(document: Document, limits: Limits) -> Flaw | None:
    """Return the flaw of a document, its id aside, or None."""
    features, unavailable = document.get("features"), document.get("unavailable")
    finish = document.get("finish")
    for name, cell in (("features", features), ("unavailable", unavailable)):
        if cell is not None and not isinstance(cell, dict):
            return Flaw(Reason.WRONG_TYPE, f"{name} must be an object; got {kind(cell)}")
    if finish is not None and type(finish) is not bool:
        return Flaw(Reason.WRONG_TYPE, f"finish must be true or false; got {kind(finish)}")
    if not features and not unavailable and not finish:
        return Flaw(Reason.MISSING_FIELD, "features are missing, none is unavailable, and finish is not true")
    features, unavailable = features or {}, unavailable or {}
    if len(features) + len(unavailable) > limits.features_max:
        detail = f"{len(features) + len(unavailable):,} features; at most {limits.features_max:,}"
        return Flaw(Reason.TOO_MANY_FEATURES, detail)
    return _cells_flaw(features, unavailable, limits.text_max_bytes)


def _cells_flaw(features: dict[str, Any], unavailable: dict[str, Any], longest: int) -> Flaw | None:
    for name, cell in features.items():
        if cell is None:
            detail = f"feature {quote(name)} is null; name it under unavailable"
            return Flaw(Reason.WRONG_TYPE, detail)
        if not isinstance(cell, (str, *_NUMBERS)):
            detail = f"feature {quote(name)} must be a number, a string or a boolean; got {kind(cell)}"
            return Flaw(Reason.WRONG_TYPE, detail)
    for name, cell in unavailable.items():
        if not isinstance(cell, _REASONS):
            detail = f"the reason of {quote(name)} must be a string or null; got {kind(cell)}"
            return Flaw(Reason.WRONG_TYPE, detail)
        if name in features:
            return Flaw(Reason.WRONG_TYPE, f"feature {quote(name)} has a value and is unavailable")
    texts = [("the name of a feature", name) for name in (*features, *unavailable)]
    texts += [("a nominal value", cell) for cell in features.values() if isinstance(cell, str)]
    for what, text in texts:
        flaw = too_long(what, text, longest)
        if flaw is not None:
            return flaw
    if "" in features or "" in unavailable:
        return Flaw(Reason.WRONG_TYPE, "a feature must have a name; got an empty one")
    return None
