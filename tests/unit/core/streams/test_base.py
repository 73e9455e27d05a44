"""Generators are found by name and address, and refuse what they do not know (test_streams has the rest)."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from core import registry
from core.errors import ParameterError, UnknownPluginError
from core.streams import open_generator, parse_address

NAMES = registry.names("streams")


def test_the_known_generators():
    assert NAMES == (
        "agrawal",
        "drift",
        "hyperplane",
        "led",
        "rand_cbt",
        "random_tree",
        "rbf",
        "rbf_drift",
        "sea",
        "sine",
        "stagger",
        "waveform",
        "waveform_drift",
    )


def test_a_generator_is_frozen_and_equal_by_its_options():
    assert open_generator("sea", seed=2) == open_generator("sea", seed=2)
    with pytest.raises(AttributeError):
        open_generator("sea").seed = 3  # type: ignore[misc]


def test_unknown_names_and_options_are_refused_with_the_known_ones():
    with pytest.raises(
        UnknownPluginError,
        match="unknown generator 'see'; known: " + ", ".join(NAMES),
    ):
        open_generator("see")
    with pytest.raises(
        ParameterError,
        match="unknown option 'noize' of generator 'led'; known: drift, irrelevant, label_noise, noise, rec",
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
            "unknown option 'm' of generator 'sea'; known: balanced, function, label_noise, n, noise, rec",
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


@pytest.mark.parametrize("name", NAMES)
def test_the_docs_name_every_generator_with_its_options_and_their_defaults(name):
    page = Path(__file__).parents[4].joinpath("docs", "data-sets.md").read_text(encoding="utf-8")
    (row,) = (line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
    inherited = {"seed", "rng", "label_noise"}
    for base in type(open_generator(name)).__mro__[1:]:
        if dataclasses.is_dataclass(base) and f"those of `{base.__module__.rpartition('.')[2]}`" in row:
            inherited |= {field.name for field in dataclasses.fields(base)}
    for field in dataclasses.fields(open_generator(name)):
        if field.name not in inherited:
            default = f"({field.default})" if isinstance(field.default, str) else field.default
            text = str(default).lower() if isinstance(default, bool) else str(default).removesuffix(".0")
            assert f"`{field.name}={text}`" in row


@pytest.mark.parametrize("flavour", ["counter", "java"])
@pytest.mark.parametrize("name", ["led", "stagger", "waveform"])
def test_label_noise_replaces_a_share_of_the_labels_by_each_other_class(name, flavour):
    n, share = 20_000, 0.3
    clean = open_generator(name, rng=flavour)
    x, y = clean.take(n)
    noisy_x, noisy_y = open_generator(name, rng=flavour, label_noise=share).take(n)
    assert np.array_equal(x, noisy_x)
    changed = noisy_y != y
    assert abs(changed.mean() - share) < 4 * np.sqrt(share * (1 - share) / n)
    classes = clean.schema.n_classes
    moved = np.bincount((noisy_y - y)[changed] % classes, minlength=classes) / changed.sum()
    assert moved[0] == 0.0
    assert np.all(np.abs(moved[1:] - 1 / (classes - 1)) < 4 * np.sqrt(0.25 / changed.sum()))


def test_label_noise_depends_on_the_record_alone():
    noisy = open_generator("sea", label_noise=0.4)
    _, y = noisy.take(1000)
    assert np.array_equal(noisy.take(100, start=700)[1], y[700:800])
    parts = [part for _, part in noisy.batches(1000, 33)]
    assert np.array_equal(np.concatenate(parts), y)
