"""What the rows of benchmarks.accuracy come to."""

from __future__ import annotations

import pytest

from benchmarks.accuracy import DATA_SETS, GENERATORS, STREAMS, open_stream, summary


def test_there_are_fifteen_streams_and_every_generator_can_be_opened() -> None:
    assert (len(STREAMS), len(DATA_SETS)) == (15, 5)
    for name in GENERATORS:
        one, other = (open_stream(name, seed, 50) for seed in (1, 2))
        assert len(one.y) == 50
        assert one.x.tobytes() != other.x.tobytes(), "another seed, another stream"


def test_leads_are_means_over_seeds_and_the_mean_over_streams_weighs_streams_alike() -> None:
    kind = {"learner": "h-tree", "leaf_model": "mc"}
    rows = [
        {"stream": "a", "seed": 1, "ours": 80.0, "moa": 79.0} | kind,
        {"stream": "a", "seed": 2, "ours": 82.0, "moa": 79.0} | kind,
        {"stream": "b", "seed": 1, "ours": 60.0, "moa": 61.5, "river": 59.0, "ours on these": 59.5} | kind,
    ]
    moa, river = summary(rows)
    assert moa["streams"]["a"] == {
        "ours": 81.0,
        "moa": 79.0,
        "ahead": 2.0,
        "sd": pytest.approx(1.414),
        "ours sd": pytest.approx(1.414),
    }
    assert (moa["mean ahead"], moa["farthest behind"]) == (0.25, ["b", -1.5])
    assert (river["peer"], river["mean ahead"]) == ("river", 0.5)
