"""Which disagreements are drawn: chances, costs, and that neither label nor strategy changes a draw."""

import itertools

import numpy as np
import pytest

from core.active.disagreement import GIVEN, NOBODY, NOT_DRAWN, REQUESTED, draw_rows, request_key
from core.layout.challenge_counts import CHALLENGE_WORDS, ChallengeCounts
from tests.naive import challenge as naive

N = 6000


def new_counts():
    return ChallengeCounts.over(np.zeros(CHALLENGE_WORDS, dtype=np.int64))


def answers(share, n=N, seed=1):
    """Return answers of two models that differ at this share of the records."""
    draws = np.random.default_rng(seed)
    champion = draws.integers(0, 3, n).astype(np.int32)
    other = (champion + draws.integers(1, 3, n)) % 3
    return champion, np.where(draws.random(n) < share, other, champion).astype(np.int32)


def drawn(counts, rate, champion, challenger, source=None, first=1, seed=0):
    """Return the octaves of a run of rows."""
    n = len(champion)
    octave = np.full(n, 99, dtype=np.int8)
    source = np.zeros(n, dtype=np.int8) if source is None else source.astype(np.int8)
    numbers = np.arange(first, first + n)
    draw_rows(counts, request_key(seed), rate, numbers, champion, challenger, source, octave)
    return octave


def test_all_disagreements_are_drawn_where_the_share_pays_for_them():
    champion, challenger = answers(0.02)
    counts = new_counts()
    octave = drawn(counts, 0.11, champion, challenger)
    assert np.array_equal(octave == 0, champion != challenger)
    assert np.array_equal(octave == NOT_DRAWN, champion == challenger)
    differ = int((champion != challenger).sum())
    read = (counts.records, counts.disagreements, counts.drawn, counts.charged)
    assert read == (N, differ, differ, differ)


def test_a_record_without_an_answer_of_either_model_is_not_counted():
    champion = np.array([-1, 0, -1, 0], dtype=np.int32)
    challenger = np.array([0, -1, -1, 1], dtype=np.int32)
    counts = new_counts()
    assert drawn(counts, 1.0, champion, challenger).tolist() == [NOT_DRAWN] * 3 + [0]
    assert (counts.records, counts.disagreements) == (1, 1)


@pytest.mark.parametrize("rate", [0.0005, 0.01, 0.05])
def test_costs_stay_within_the_rate_and_chances_follow_the_rule(rate):
    champion, challenger = answers(0.3)
    source = np.random.default_rng(2).integers(NOBODY, GIVEN, N)
    counts, disagreements, charged = new_counts(), 0, 0
    octave = drawn(counts, rate, champion, challenger, source)
    for row in range(N):
        expected = naive.octave_of(row + 1, disagreements, charged, rate)
        if champion[row] != challenger[row]:
            disagreements += 1
            assert octave[row] in (NOT_DRAWN, expected)
            if charged >= rate * (row + 1):
                assert octave[row] == NOT_DRAWN
            charged += octave[row] != NOT_DRAWN and source[row] == NOBODY
        assert charged < rate * (row + 1) + 1.0
    assert (counts.disagreements, counts.charged) == (disagreements, charged)
    assert counts.charged <= counts.drawn


@pytest.mark.parametrize("octave", [1, 3, 6])
def test_a_chance_is_the_share_of_disagreements_that_are_drawn(octave):
    """5 standard errors; each record is the first of a challenge whose share pays for this chance."""
    differ, rate, n = np.zeros(1, dtype=np.int32), 2.0**-octave, 4000
    octaves = [
        drawn(spent(rate), rate, differ, differ + 1, first=number).item() for number in range(1, n + 1)
    ]
    assert set(octaves) == {NOT_DRAWN, octave}
    share = 2.0**-octave
    assert abs(octaves.count(octave) / n - share) < 5 * np.sqrt(share * (1 - share) / n)


def spent(rate):
    """Return counts of a million disagreements that have used up all savings."""
    counts = new_counts()
    counts.records = counts.disagreements = counts.drawn = 1_000_000
    counts.charged = int(rate * counts.records)
    return counts


def test_half_a_saved_label_counts_as_half():
    """The next 1,000 disagreements cost 499.95 labels at the chance 1/2; 499.1 are granted, and 0.5 saved."""
    differ, rate = np.zeros(1, dtype=np.int32), 499_100.5 / 1_000_001
    octaves = {drawn(spent(rate), rate, differ, differ + 1, first=number).item() for number in range(1, 50)}
    assert octaves == {NOT_DRAWN, 2}


def test_a_request_of_the_strategy_changes_the_costs_but_not_the_draw():
    champion, challenger = answers(0.2, 400)
    alone, beside = new_counts(), new_counts()
    octave = drawn(alone, 0.5, champion, challenger)
    assert np.array_equal(octave, drawn(beside, 0.5, champion, challenger, np.full(400, REQUESTED)))
    assert alone.charged == alone.drawn == beside.drawn > 0
    assert beside.charged == 0


def test_a_given_label_is_compared_at_any_rate_and_costs_nothing():
    champion, challenger = answers(0.2, 400)
    counts = new_counts()
    octave = drawn(counts, 0.0, champion, challenger, np.full(400, GIVEN))
    assert np.array_equal(octave == 0, champion != challenger)
    assert (counts.drawn, counts.charged) == (counts.disagreements, 0)
    assert (drawn(counts, 0.0, champion, challenger, np.full(400, REQUESTED)) == NOT_DRAWN).all()


def test_draws_depend_on_seed_and_record_number_and_not_on_the_run():
    champion, challenger = answers(0.5, 1000)
    whole, parts = new_counts(), new_counts()
    octave = drawn(whole, 0.02, champion, challenger)
    cuts = [0, 1, 2, 500, 1000]
    cut = [
        drawn(parts, 0.02, champion[a:b], challenger[a:b], first=1 + a) for a, b in itertools.pairwise(cuts)
    ]
    assert np.array_equal(octave, np.concatenate(cut))
    assert np.array_equal(whole.ints, parts.ints)
    assert not np.array_equal(octave, drawn(new_counts(), 0.02, champion, challenger, seed=1))
    assert not np.array_equal(octave, drawn(new_counts(), 0.02, champion, challenger, first=1001))
