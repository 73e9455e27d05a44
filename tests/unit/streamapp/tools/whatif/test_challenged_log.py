"""A log with a challenge: it is reproduced, and the alternative model has no challenger."""

from __future__ import annotations

from typing import Any

import pytest

from tests.topology.partition import config
from tests.unit.streamapp.tools.offline.archive import Archive
from tests.unit.streamapp.tools.whatif.past import Stream, spec

RANDOM: dict[str, Any] = {"query": "random", "budget": {"limit": 0.4}}


@pytest.mark.parametrize("end", [None, "promote"])
def test_a_log_with_a_challenge_is_reproduced(end: str | None) -> None:
    stream = Stream(Archive(config(spec(**RANDOM))))
    stream.send(100)
    body: dict[str, Any] = {"spec": {"learner": "naive-bayes"}, "decide": "person"}
    stream.archive.control("challenge", at=1000 * stream.n, **body)
    stream.send(100)
    if end is not None:
        stream.archive.control(end, at=1000 * stream.n)
    stream.send(60)
    past = stream.end()
    report = past.under(spec(**RANDOM))
    assert report["reproduced"] == {"equal": 260, "different": 0, "not_found": 0}
    assert report["controls_overridden"] == (1 if end is None else 2)
    second = past.second(spec(**RANDOM))
    assert not second.models.keys.has_challengers
    assert second.models.cache.model(second.models.keys.slot("m")).spec.learner.name == "h_tree"
    since = past.under(spec(**RANDOM), since=150_000)
    assert since["reproduced"] == {"equal": 110, "different": 0, "not_found": 0}
