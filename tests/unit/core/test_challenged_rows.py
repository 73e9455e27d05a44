"""Requests that a strategy gives up pay for disagreements: never more, for any cut, and known by chance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from core.active.disagreement import GIVEN, NOBODY, NOT_DRAWN, REQUESTED, request_key
from core.layout.challenge_counts import CHALLENGE_WORDS, DROPPED, ChallengeCounts
from core.measures.challenge_bounds import Rules
from core.measures.challenged_rows import (
    BY_STRATEGY,
    MOST,
    ROW_WORDS,
    ComparedRow,
    Purse,
    compare_answers,
)
from core.numeric import rng

AT = {name: field.offset for name, field in ComparedRow.FIELDS.items()}


class Played(NamedTuple):
    """The rows, counts and purse after all calls."""

    table: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    purse: npt.NDArray[np.int64]


def rows(n: int, asked: float, differ: float, given: float = 0.0) -> npt.NDArray[np.int64]:
    """Return n rows; shares of rows that the strategy asks for, that differ, and that bring their label."""
    draw = np.random.default_rng(3)
    table = np.zeros((n, ROW_WORDS), dtype=np.int64)
    is_asked, brings = draw.random(n) < asked, draw.random(n) < given
    table[:, AT["number"]] = np.arange(1, n + 1)
    table[:, AT["champion"]] = draw.integers(0, 2, n)
    table[:, AT["challenger"]] = table[:, AT["champion"]] ^ (draw.random(n) < differ)
    table[:, AT["label"]] = np.where(brings, draw.integers(0, 2, n), -1)
    table[:, AT["source"]] = np.where(brings, GIVEN, np.where(is_asked, BY_STRATEGY, NOBODY))
    table.view(np.float64)[:, AT["importance"]] = np.where(is_asked & ~brings, 1.0 / max(asked, 1e-9), 0.0)
    return table


def play(table: npt.NDArray[np.int64], share: float, limit: float, cut: int, counts: object = None) -> Played:
    table = table.copy()
    words = np.zeros(CHALLENGE_WORDS, dtype=np.int64) if counts is None else np.array(counts, dtype=np.int64)
    purse = np.zeros(Purse.SIZE, dtype=np.int64)
    terms, rules = np.array([share, share * limit]), Rules(alpha=1e-9).array()
    keys = request_key(1), rng.stream_key(1, rng.EXCHANGE)
    for start in range(0, len(table), cut):
        part = table[start : start + cut]
        first = ComparedRow.over(part.ravel())
        state = ChallengeCounts.over(words), Purse.over(purse)
        compare_answers(*state, terms, rules, *keys, first, len(part))
    return Played(table, words, purse)


def requested(table: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    return np.isin(table[:, AT["source"]], (BY_STRATEGY, REQUESTED))


@pytest.mark.parametrize("differ", [0.01, 0.3, 1.0])
def test_no_more_labels_are_requested_than_the_strategy_asked_for(differ: float) -> None:
    before = rows(4000, 0.1, differ)
    played = play(before, 0.5, 0.1, 4000)
    asked, now = np.cumsum(requested(before)), np.cumsum(requested(played.table))
    assert (now <= asked).all()
    purse = Purse.over(played.purse)
    assert asked[-1] - now[-1] == purse.credits <= MOST
    drawn = played.table[:, AT["octave"]] != NOT_DRAWN
    assert (played.table[drawn, AT["champion"]] != played.table[drawn, AT["challenger"]]).all()
    assert np.count_nonzero(drawn) > 20


@pytest.mark.parametrize("cut", [1, 7])
def test_cuts_change_nothing(cut: int) -> None:
    table = rows(1000, 0.2, 0.3, given=0.1)
    whole, parts = play(table, 0.5, 0.2, 1000), play(table, 0.5, 0.2, cut)
    for one, other in zip(whole, parts, strict=True):
        assert (one == other).all()


def test_kept_requests_represent_those_that_were_given_up() -> None:
    before = rows(20_000, 0.1, 0.5)
    played = play(before, 0.4, 0.1, 20_000)
    importance = played.table.view(np.float64)[:, AT["importance"]]
    assert importance.sum() == pytest.approx(20_000, rel=0.06)
    assert (importance[played.table[:, AT["source"]] != BY_STRATEGY] == 0.0).all()


def test_after_a_decision_rows_stay_as_they_are() -> None:
    counts = np.zeros(CHALLENGE_WORDS, dtype=np.int64)
    ChallengeCounts.over(counts).decision = DROPPED
    before = rows(200, 0.5, 0.5, given=0.2)
    played = play(before, 0.5, 0.5, 200, counts)
    assert (played.table[:, AT["source"]] == before[:, AT["source"]]).all()
    assert (played.table[:, AT["octave"]] == NOT_DRAWN).all()
    assert (played.purse == 0).all()
