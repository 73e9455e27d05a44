"""What is suggested for a plug-in's name that nobody knows."""

from __future__ import annotations

import pytest

from core import registry, spelling

LEARNERS = ("boct", "c-tree", "efdt", "h-tree", "imac", "naive-bayes", "osm")
ALIASES = ("vfdt", "hoeffding-tree")


@pytest.mark.parametrize(
    ("given", "suggested"),
    [
        ("hat", "h-tree"),
        ("HAT", "h-tree"),
        ("htree", "h-tree"),
        ("H_Tree", "h-tree"),
        ("vfd", "vfdt"),
        ("hoeffding", "hoeffding-tree"),
        ("hoeffding-adaptive-tree", "hoeffding-tree"),
        ("boc", "boct"),
    ],
)
def test_the_name_that_is_most_like_it(given: str, suggested: str) -> None:
    assert spelling.known(given, LEARNERS, ALIASES).endswith(f"; did you mean {suggested!r}?")


@pytest.mark.parametrize("given", ["perceptron", "adaptive", "arf", "x", ""])
def test_nothing_where_nothing_is_like_it(given: str) -> None:
    assert spelling.known(given, LEARNERS, ALIASES) == f"known: {', '.join(LEARNERS)}"


def test_a_name_that_is_there_comes_before_one_of_its_kind() -> None:
    assert spelling.known("hatt", (*LEARNERS, "hat"), ALIASES).endswith("; did you mean 'hat'?")


def test_every_name_without_its_last_letter_is_found_again() -> None:
    names = registry.names("learners")
    for name in names:
        assert spelling.known(name[:-1], names).endswith(f"did you mean {name!r}?")
