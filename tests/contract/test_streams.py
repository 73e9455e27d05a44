"""What every generator keeps: its bytes and MOA's bytes, however the stream is cut or entered."""

import dataclasses
import json

import numpy as np
import pytest

from core import registry
from core.streams import open_generator
from tests.golden import streams
from tests.golden.moa_streams import LONG_STREAMS, STREAMS

NAMES = registry.names("streams")
FLAVOURS = ("counter", "java")
EARLY = {"drift": {"position": 25.0, "width": 50.0}}  # so that few records show all there is to see
GOLDEN = json.loads(streams.FILE.read_text(encoding="utf-8"))
NAMES_OF = [stream[0] for stream in (*STREAMS, *LONG_STREAMS)]
BALANCED = [
    name
    for name in NAMES
    if "balanced" in {field.name for field in dataclasses.fields(registry.plugin("streams", name))}
]


def test_every_generator_has_golden_records():
    assert tuple(GOLDEN) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_counter_flavour_has_the_bytes_it_had(name):
    assert streams.digest(name) == GOLDEN[name]


@pytest.mark.parametrize(
    ("n", "name", "options", "x_crc", "y_crc"),
    [(10_000, *s[1:]) for s in STREAMS] + [(100_000, *s[1:]) for s in LONG_STREAMS],
    ids=NAMES_OF,
)
def test_the_java_flavour_has_the_bytes_of_moa(n, name, options, x_crc, y_crc):
    x, y = open_generator(name, rng="java", **options).take(n)
    assert (streams.crc(x), streams.crc(y)) == (x_crc, y_crc)


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("name", NAMES)
def test_the_cut_into_batches_changes_nothing(name, flavour):
    generator = open_generator(name, rng=flavour, seed=9, **EARLY.get(name, {}))
    x, y = generator.take(1000)
    cut = list(generator.batches(1000, 77))
    assert [len(part) for _, part in cut] == [77] * 12 + [76]
    assert np.array_equal(np.concatenate([part for part, _ in cut]), x)
    assert np.array_equal(np.concatenate([part for _, part in cut]), y)
    later_x, later_y = generator.take(300, start=700)
    assert np.array_equal(later_x, x[700:])
    assert np.array_equal(later_y, y[700:])


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
    assert (x.dtype, y.dtype) == (np.dtype(np.float64), np.dtype(np.int32))
    assert np.isfinite(x).all()
    assert set(np.unique(y)) <= set(range(schema.n_classes))
    for column, attribute in zip(x.T, schema.attributes, strict=True):
        if attribute.kind == "nominal":
            assert set(np.unique(column)) == set(range(len(attribute.values)))


def test_some_generators_can_be_balanced():
    assert BALANCED == ["agrawal", "sea", "sine", "stagger"]


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("name", BALANCED)
def test_balanced_alternates_the_classes_before_the_noise(name, flavour):
    fields = {field.name for field in dataclasses.fields(registry.plugin("streams", name))}
    quiet = {"noise": 0.0} if "noise" in fields else {}
    for function in (1, 2, 3):
        generator = open_generator(name, rng=flavour, function=function, balanced=True, **quiet)
        assert generator.take(60)[1].tolist() == [1, 0] * 30
