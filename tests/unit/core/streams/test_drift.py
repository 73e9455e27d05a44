"""Concept drift: MOA's coins, the sigmoid, streams that go on where they stopped."""

from typing import Any

import numpy as np
import pytest

from core.errors import ParameterError
from core.streams import open_generator, parse_address, random_tree
from core.streams.drift import Plugin

FLAVOURS = ("counter", "java")


def sources(drift, n):
    """Return for each of n records which stream it comes from: they differ in no value but the class."""
    return drift.take(n)[1]


def one_of(which, flavour):
    """Return a stream whose only class is ``which``: a tree that is a leaf."""
    options: dict[str, Any] = {"depth": 0, "nominal": 0, "numeric": 1, "classes": 2, "rng": flavour}
    for model_seed in range(1, 10**14, 10**12):  # the first coins of Java are alike for near seeds
        stream = random_tree.Plugin(model_seed=model_seed, **options)
        if stream.concept().child[0] == which:
            return stream
    raise AssertionError(which)


def test_the_number_of_java_s_records_from_the_second_stream():
    drift = Plugin(rng="java", before="sea", after="sea?seed=2", position=500, width=100)
    x, _ = drift.take(1000)
    later = drift.after.take(1000)[0]
    taken = [record for record in x if record in later]
    assert len(taken) == 501
    assert np.array_equal(taken, later[:501])


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_the_share_of_the_second_stream_is_the_sigmoid(flavour):
    n, runs = 400, 200
    share = np.zeros(n)
    for seed in range(runs):
        drift = Plugin(
            rng=flavour,
            seed=1 + seed * 10**12,
            before=one_of(0, flavour),
            after=one_of(1, flavour),
            position=200,
            width=100,
        )
        share += sources(drift, n)
    expected = 1.0 / (1.0 + np.exp(-4.0 * (np.arange(1, n + 1) - 200) / 100))
    deviation = np.sqrt(expected * (1 - expected) / runs) + 1 / runs
    assert np.all(np.abs(share / runs - expected) < 5 * deviation)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_both_streams_go_on_where_they_stopped(flavour):
    drift = Plugin(rng=flavour, before="sea", after="sea?seed=2", position=100, width=80)
    x, y = drift.take(200)
    for stream in (drift.before, drift.after):
        own_x, own_y = stream.take(200)
        mine = [i for i in range(200) if (own_x == x[i]).all(axis=1).any()]
        assert len(mine) > 50
        assert np.array_equal(x[mine], own_x[: len(mine)])
        assert np.array_equal(y[mine], own_y[: len(mine)])


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_drift_within_counts_its_own_records(flavour):
    """The inner drift would begin at 50: it does, 50 records after the outer one."""
    inner = Plugin(before=one_of(0, flavour), after=one_of(1, flavour), position=50.5, width=1e-6)
    drift = Plugin(rng=flavour, before=one_of(0, flavour), after=inner, position=100.5, width=1e-6)
    assert sources(drift, 300).tolist() == [0] * 150 + [1] * 150


def test_nested_addresses_stand_in_brackets():
    drift, n = parse_address(
        "gen:drift?rng=java&before=(agrawal?balanced=true)&after="
        "(drift?before=(agrawal?function=2&seed=4)&after=(agrawal?function=4)&width=7)&position=30&n=100"
    )
    assert n == 100
    agrawal = [open_generator("agrawal", rng="java", **options) for options in (
        {"balanced": True}, {"function": 2, "seed": 4}, {"function": 4}
    )]  # fmt: skip
    inner = Plugin(rng="java", before=agrawal[1], after=agrawal[2], width=7.0)
    assert drift == Plugin(rng="java", before=agrawal[0], after=inner, position=30.0)
    assert drift.to_dict()["after"]["before"]["seed"] == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"after": "led"}, "after=led must have the attributes and classes of before=sea"),
        ({"after": "sea?n=10"}, "must be without end; leave out n=10"),
        ({"before": 3}, "before=3 must be a generator or its address"),
        ({"width": 0.0}, "width=0.0 must be above 0.0"),
        ({"before": "sea?function=7"}, "function=7 must be at most 4"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ParameterError, match=message.replace("?", r"\?")):
        Plugin(**options)
