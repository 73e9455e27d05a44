"""What every generator keeps: options, addresses, batches, MOA's bytes."""

import zlib

import numpy as np
import pytest

from core import registry
from core.errors import ParameterError, UnknownPluginError
from core.streams import open_generator, parse_address
from tests.golden.moa_streams import STREAMS

NAMES = registry.names("streams")
FLAVOURS = ("counter", "java")
EARLY = {"drift": {"position": 25.0, "width": 50.0}}  # so that few records show all there is to see


def test_the_known_generators():
    assert NAMES == (
        "agrawal",
        "drift",
        "led",
        "rand_cbt",
        "random_tree",
        "rbf",
        "sea",
        "stagger",
        "waveform",
    )


@pytest.mark.parametrize(
    ("stream", "name", "options", "x_crc", "y_crc"), STREAMS, ids=[s[0] for s in STREAMS]
)
def test_the_java_flavour_has_the_bytes_of_moa(stream, name, options, x_crc, y_crc):
    x, y = open_generator(name, rng="java", **options).take(10_000)
    assert (zlib.crc32(x.tobytes()), zlib.crc32(y.tobytes())) == (x_crc, y_crc)


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("name", NAMES)
def test_the_cut_into_batches_changes_nothing(name, flavour):
    generator = open_generator(name, rng=flavour, seed=9, **EARLY.get(name, {}))
    x, y = generator.take(1000)
    cut = list(generator.batches(1000, 77))
    assert [len(part) for _, part in cut] == [77] * 12 + [76]
    assert np.array_equal(np.concatenate([part for part, _ in cut]), x)
    assert np.array_equal(np.concatenate([part for _, part in cut]), y)
    assert np.array_equal(generator.take(300, start=700)[0], x[700:])


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("name", NAMES)
def test_the_seed_makes_the_records(name, flavour):
    options = EARLY.get(name, {})
    one, again, other = (
        open_generator(name, rng=flavour, seed=seed, **options).take(50)[0] for seed in (3, 3, 4)
    )
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("name", NAMES)
def test_an_endless_stream_goes_on(name):
    batches = open_generator(name).batches(size=10)
    assert [len(next(batches)[1]) for _ in range(3)] == [10, 10, 10]


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("name", NAMES)
def test_values_fit_the_schema(name, flavour):
    generator = open_generator(name, rng=flavour)
    x, y = generator.take(2000)
    schema = generator.schema
    assert x.shape == (2000, schema.n_attributes)
    assert (x.dtype, y.dtype) == (np.float64, np.int32)
    assert np.isfinite(x).all()
    assert set(np.unique(y)) <= set(range(schema.n_classes))
    for column, attribute in zip(x.T, schema.attributes, strict=True):
        if attribute.kind == "nominal":
            assert set(np.unique(column)) == set(range(len(attribute.values)))


def test_a_generator_is_frozen_and_equal_by_its_options():
    assert open_generator("sea", seed=2) == open_generator("sea", seed=2)
    with pytest.raises(AttributeError):
        open_generator("sea").seed = 3


def test_unknown_names_and_options_are_refused_with_the_known_ones():
    with pytest.raises(
        UnknownPluginError,
        match="unknown generator 'see'; known: " + ", ".join(NAMES),
    ):
        open_generator("see")
    with pytest.raises(
        ParameterError, match=r"unknown option 'noize' of generator 'led'; known: drift, noise, rng, seed"
    ):
        open_generator("led", noize=0.1)
    with pytest.raises(ParameterError, match=r"rng='numpy' must be one of 'counter', 'java'"):
        open_generator("led", rng="numpy")


def test_an_address_names_generator_options_and_length():
    generator, n = parse_address("gen:sea?function=2&noise=0.05&seed=7&n=1000000&balanced=true&rng=java")
    assert generator == open_generator("sea", function=2, noise=0.05, seed=7, balanced=True, rng="java")
    assert n == 1_000_000
    assert parse_address("gen:led") == (open_generator("led"), None)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("sea?n=1", r"address='sea\?n=1' must look like gen:sea"),
        (
            "gen:sae?n=1",
            "unknown generator 'sae'; known: " + ", ".join(NAMES),
        ),
        (
            "gen:sea?m=1",
            "unknown option 'm' of generator 'sea'; known: balanced, function, n, noise, rng, seed",
        ),
        ("gen:sea?seed=x", "seed='x' must be a whole number"),
        ("gen:sea?noise=much", "noise='much' must be a number"),
        ("gen:sea?noise=1.5", "noise=1.5 must be at most 1.0"),
        ("gen:sea?balanced=perhaps", "balanced='perhaps' must be true or false"),
        ("gen:sea?n=-1", "n=-1 must be at least 0"),
        ("gen:sea?seed", "must have options of the form name=value"),
        ("gen:sea?seed=1&seed=2", "must name every option once"),
    ],
)
def test_a_wrong_address_says_what_is_wrong(address, message):
    with pytest.raises((ParameterError, UnknownPluginError), match=message):
        parse_address(address)
