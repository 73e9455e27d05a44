"""STAGGER: MOA's first records, the three rules, balance."""

import numpy as np
import pytest

from core.streams import open_generator

RULES = {
    1: lambda size, colour, shape: size == "small" and colour == "red",
    2: lambda size, colour, shape: colour == "green" or shape == "circle",
    3: lambda size, colour, shape: size in ("medium", "large"),
}


def test_the_first_records_of_java():
    x, y = open_generator("stagger", rng="java").take(6)
    assert [tuple(record) for record in x.astype(int).tolist()] == [
        (0, 1, 1),
        (0, 2, 1),
        (2, 1, 1),
        (1, 1, 1),
        (1, 0, 0),
        (1, 2, 0),
    ]
    assert y.tolist() == [0] * 6


@pytest.mark.parametrize(("function", "ones"), [(1, 1096), (2, 5521), (3, 6699)])
def test_the_class_shares_of_java(function, ones):
    assert open_generator("stagger", rng="java", function=function).take(10_000)[1].sum() == ones


@pytest.mark.parametrize("flavour", ["counter", "java"])
@pytest.mark.parametrize("function", RULES)
def test_the_class_is_the_rule(function, flavour):
    generator = open_generator("stagger", rng=flavour, function=function)
    x, y = generator.take(300)
    values = [attribute.values for attribute in generator.schema.attributes]
    words = [[values[j][int(code)] for j, code in enumerate(record)] for record in x]
    assert y.tolist() == [int(RULES[function](*record)) for record in words]


@pytest.mark.parametrize("flavour", ["counter", "java"])
def test_balance_alternates_the_classes(flavour):
    y = open_generator("stagger", rng=flavour, balanced=True).take(100)[1]
    assert np.array_equal(y, np.arange(100) % 2 ^ 1)
