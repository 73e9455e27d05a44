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


def test_recurring_drifts_are_moa_s():
    """Positions and number of the records of RecurrentConceptDriftStream (MOA 2024.07) that are of the drift.

    -s (generators.SEAGenerator -n 10) -d (generators.SEAGenerator -f 3 -i 2 -n 10) -p 300 -w 50 -x 200 -y 200
    """
    address = (
        "gen:drift?rng=java&before=(sea)&after=(sea?function=3&seed=2)&position=300&width=50&recurring=200"
    )
    drift: Any = parse_address(address)[0]
    x, _ = drift.take(3000)
    later = {record.tobytes() for record in drift.after.take(3000)[0]}
    is_later = np.array([record.tobytes() in later for record in x])
    turns = np.flatnonzero(np.diff(is_later)) + 1
    assert (len(turns), int(is_later.sum())) == (360, 1400)
    assert turns[:14].tolist() == [257, 258, 267, 268, 271, 272, 281, 282, 284, 285, 289, 293, 294, 295]


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_abrupt_concepts_come_and_go(flavour):
    drift = Plugin(
        before=one_of(0, flavour),
        after=one_of(1, flavour),
        position=3.5,
        width=1e-3,
        recurring=2.0,
        rng=flavour,
    )
    assert sources(drift, 14).tolist() == [0, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0]


def test_a_recurring_drift_can_be_entered_anywhere():
    drift = Plugin(before="sea", after="sea?seed=2", position=100, width=30, recurring=50)
    x, y = drift.take(1000)
    later_x, later_y = drift.take(100, start=900)
    assert np.array_equal(x[900:], later_x) and np.array_equal(y[900:], later_y)


CONCEPTS = {
    "agrawal?function=10": ("agrawal", "function", 1),
    "led": ("led", "drift", 7),
    "rand_cbt?leaves=7": ("rand_cbt", "model_seed", 2),
    "random_tree": ("random_tree", "model_seed", 2),
    "rbf?model_seed=5": ("rbf", "model_seed", 6),
    "rbf_drift": ("rbf_drift", "model_seed", 2),
    "sea?function=4": ("sea", "function", 1),
    "sine?function=2": ("sine", "function", 3),
    "stagger?function=3": ("stagger", "function", 1),
    "waveform": ("waveform_drift", "drift_attributes", 10),
}


@pytest.mark.parametrize("address", CONCEPTS)
def test_one_flag_lets_a_second_concept_come_and_go(address):
    """Records 1 to 20 are of the stream itself, the next 20 of its second concept, and so on."""
    joint = "&" if "?" in address else "?"
    drift: Any
    drift, n = parse_address(f"gen:{address}{joint}recurring=20.5&n=70")
    name, option, value = CONCEPTS[address]
    assert (n, drift.after.name, getattr(drift.after, option)) == (70, name, value)
    plain = parse_address(f"gen:{address}")[0]
    assert drift.before == plain and drift.after.seed == 2
    drift = Plugin(before=drift.before, after=drift.after, position=20.5, width=1e-3, recurring=20.0)
    x, y = drift.take(70)
    for part, stream, first in ((0, plain, 0), (1, drift.after, 0), (2, plain, 20), (3, drift.after, 20)):
        rows = slice(20 * part, min(20 * part + 20, 70))
        own_x, own_y = stream.take(rows.stop - rows.start, start=first)
        assert np.array_equal(x[rows], own_x) and np.array_equal(y[rows], own_y)


@pytest.mark.parametrize("address", ["hyperplane", "led?irrelevant=false"])
def test_a_stream_of_one_concept_names_the_remedy(address):
    message = (
        "recurring=50 must be left out: '(hyperplane|led)' has no second concept of its own; give two streams"
    )
    joint = "&" if "?" in address else "?"
    with pytest.raises(ParameterError, match=message):
        parse_address(f"gen:{address}{joint}recurring=50")


def test_recurring_0_changes_nothing():
    assert parse_address("gen:sea?recurring=0")[0] == open_generator("sea")


def test_noise_within_the_streams_and_above_them():
    """The noise of a flag is drawn for the records of the whole stream, that of a part for its own."""
    clean = "gen:drift?before=(stagger{0})&after=(stagger?function=2)&position=500&width=1{1}"
    plain, within, above = (
        parse_address(clean.format(*noise))[0].take(1000)[1]
        for noise in (("", ""), ("?label_noise=1", ""), ("", "&label_noise=1"))
    )
    assert np.array_equal(within[:498], 1 - plain[:498]) and np.array_equal(within[502:], plain[502:])
    assert np.array_equal(above, 1 - plain)
    recurring: Any = parse_address("gen:stagger?recurring=300&label_noise=1")[0]
    assert (recurring.label_noise, recurring.before.label_noise, recurring.after.label_noise) == (1, 0, 0)


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
        ({"recurring": -1.0}, "recurring=-1.0 must be at least 0.0"),
        (
            {"recurring": 0.5, "width": 1.0},
            "recurring=0.5 must be 0, or at least 1 and at least a hundredth of",
        ),
        ({"recurring": 9.0}, "recurring=9 must be 0, or at least 1 and at least a hundredth of width=1000"),
        ({"before": "sea?function=7"}, "function=7 must be at most 4"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ParameterError, match=message.replace("?", r"\?")):
        Plugin(**options)
