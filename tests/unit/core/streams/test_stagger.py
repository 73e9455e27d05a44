"""STAGGER: the three rules."""

import pytest

from core.streams import open_generator

RULES = {
    1: lambda size, colour, shape: size == "small" and colour == "red",
    2: lambda size, colour, shape: colour == "green" or shape == "circle",
    3: lambda size, colour, shape: size in ("medium", "large"),
}


@pytest.mark.parametrize("flavour", ["counter", "java"])
@pytest.mark.parametrize("function", RULES)
def test_the_class_is_the_rule(function, flavour):
    generator = open_generator("stagger", rng=flavour, function=function)
    x, y = generator.take(300)
    values = [attribute.values for attribute in generator.schema.attributes]
    words = [[values[j][int(code)] for j, code in enumerate(record)] for record in x]
    assert y.tolist() == [int(RULES[function](*record)) for record in words]
