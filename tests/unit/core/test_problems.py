"""Checks of ranges that a record declares: what is refused, and the sentences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from core.kernels.records import Record, word
from core.problems import SOUND, range_problem, range_rules


class Barrel(Record):
    """Words with each kind of range."""

    spare: int = word("unused")
    litres: int = word("litres in it", low=0, high="room")
    room: int = word("litres that there is room for", low=1)
    sealed: int = word("unused in a closed barrel", low=0, high=0)
    moved: int = word("times it was moved", low=0, high=1 << 53)
    weight: float = word("its weight", low=0.0)
    share: float = word("share of water in it", low=0.0, high=0.5)
    drift: float = word("how far it was moved", low=-math.inf)
    note: float = word("anything")


BEFORE = 3
problem = range_problem(Barrel, BEFORE)


@pytest.fixture
def barrel() -> Barrel:
    words = np.zeros(Barrel.SIZE, dtype=np.int64)
    made = Barrel(words, words.view(np.float64), 0)
    made.room = 5
    made.note = math.nan
    return made


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("litres", 5),
        ("room", 1 << 60),
        ("moved", 1 << 53),
        ("weight", 1e300),
        ("share", 0.5),
        ("drift", -1e300),
        ("note", math.inf),
        ("spare", -1),
    ],
)
def test_values_within_the_range_are_sound(barrel: Any, name: str, value: float) -> None:
    setattr(barrel, name, value)
    assert problem(barrel) == SOUND


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("litres", -1, "litres must be from 0 to room (litres in it)"),
        ("litres", 6, "litres must be from 0 to room (litres in it)"),
        ("room", 0, "room must be at least 1 (litres that there is room for)"),
        ("sealed", 1, "sealed must be 0 (unused in a closed barrel)"),
        ("moved", (1 << 53) + 1, "moved must be from 0 to 2**53 (times it was moved)"),
        ("weight", -1.0, "weight must be a number of at least 0 (its weight)"),
        ("weight", math.inf, "weight must be a number of at least 0 (its weight)"),
        ("weight", math.nan, "weight must be a number of at least 0 (its weight)"),
        ("share", 0.6, "share must be a number from 0 to 0.5 (share of water in it)"),
        ("drift", math.inf, "drift must be a number (how far it was moved)"),
        ("drift", math.nan, "drift must be a number (how far it was moved)"),
    ],
)
def test_a_value_outside_is_found_by_its_sentence(
    barrel: Any, name: str, value: float, sentence: str
) -> None:
    setattr(barrel, name, value)
    if name == "room":
        barrel.litres = 0
    assert range_rules(Barrel)[problem(barrel) - BEFORE - 1] == sentence
