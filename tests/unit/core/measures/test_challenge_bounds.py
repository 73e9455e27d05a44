"""The comparison of a challenge: evidence, bounds and decisions against written-out products."""

import math

import numpy as np
import pytest

from core.errors import ParameterError
from core.layout.challenge_counts import CHALLENGE_WORDS, OCTAVES, OPEN, ChallengeCounts
from core.measures.challenge_bounds import LEAST_LABELS, Rules, compare_rows, log_evidence, problem, read
from tests.naive import challenge as naive

CHAMPION, CHALLENGER, NEITHER = 0, 1, 2
NEVER = Rules(alpha=1e-300, worth=0.0, max_labels=10**12)
"""No challenge of the tests ends by these."""


def compared(d, octave=None, rules=NEVER, records=None, cuts=()):
    """Return the words after labels with the outcomes d, all of them disagreements, and the last result."""
    n = len(d)
    octave = np.zeros(n, dtype=np.int8) if octave is None else np.asarray(octave, dtype=np.int8)
    words = np.zeros(CHALLENGE_WORDS, dtype=np.int64)
    counts = ChallengeCounts.over(words)
    counts.records, counts.disagreements, counts.drawn = records or n, n, n
    label = np.choose(np.asarray(d) + 1, [CHAMPION, NEITHER, CHALLENGER]).astype(np.int32)
    answers = [np.full(n, side, dtype=np.int32) for side in (CHAMPION, CHALLENGER)]
    result = 0
    for start, end in zip([0, *cuts], [*cuts, n], strict=True):
        part = slice(start, end)
        columns = (label[part], *(answer[part] for answer in answers), octave[part])
        result = compare_rows(counts, rules.array(), *columns) or result
    return words, result


def outcomes(n, lead, seed=0, classes=3):
    """Return n outcomes with the mean ``lead``."""
    draws = np.random.default_rng(seed)
    tie = 0.2 if classes > 2 else 0.0
    win = (1.0 - tie + lead) / 2.0
    return draws.choice([1, 0, -1], n, p=[win, tie, 1.0 - tie - win])


@pytest.mark.parametrize("lead", [0.0, 0.3, -0.8])
@pytest.mark.parametrize("most", [0, 2, 6])
def test_evidence_and_bounds_are_those_of_the_products(lead, most):
    d = outcomes(60, lead)
    octave = np.random.default_rng(1).integers(max(most - 2, 0), most + 1, 60)
    words, _ = compared(d, octave, records=600)
    counts = ChallengeCounts.over(words)
    labels = list(zip(octave.tolist(), d.tolist(), strict=True))
    for mean in (-0.9, -0.2, 0.0, 0.4, 0.97):
        exact = naive.evidence(labels, mean)
        assert log_evidence(counts, mean, 1) == pytest.approx(math.log(exact), abs=1e-9)
    low, high = naive.bounds(labels, 0.05)
    found = read(words, Rules())
    assert (found.low, found.high) == pytest.approx((0.1 * low, 0.1 * high), abs=1e-9)
    assert found.low < found.difference < found.high
    weights = 2.0**octave
    assert found.difference == pytest.approx(0.1 * (weights * d).sum() / weights.sum())
    read_counts = (found.records, found.disagreements, found.drawn, found.labels, found.wins, found.losses)
    assert read_counts == (600, 60, 60, 60, (d > 0).sum(), (d < 0).sum())


def test_before_the_first_label_there_is_no_figure():
    words = np.zeros(CHALLENGE_WORDS, dtype=np.int64)
    found = read(words, Rules())
    assert math.isnan(found.difference) and math.isnan(found.low) and math.isnan(found.high)
    assert found.decision == "open"
    assert log_evidence(ChallengeCounts.over(words), 0.0, 1) == 0.0


def test_one_label_has_a_figure_and_leaves_the_bounds_open():
    found = read(compared([1], records=10)[0], Rules())
    assert (found.difference, found.low, found.high) == (0.1, -0.1, 0.1)


def test_a_heavier_label_loses_the_bets_that_it_could_ruin():
    """The first label has the weight 1, a later one 64: no bet can be held, and nothing is known."""
    words, _ = compared([1] * 30 + [-1], [0] * 30 + [6])
    found = read(words, Rules())
    assert (found.low, found.high) == (-1.0, 1.0)
    words, _ = compared([1] * 30 + [-1], [5] * 30 + [6])
    assert read(words, Rules()).low > 0.0


def test_exchanged_models_exchange_the_bounds():
    d, octave = outcomes(100, 0.2), np.random.default_rng(3).integers(0, 3, 100)
    one, other = (read(compared(sign * d, octave)[0], Rules()) for sign in (1, -1))
    assert (one.low, one.high, one.difference) == (-other.high, -other.low, -other.difference)


RULES = [
    Rules(max_labels=150),
    Rules(alpha=0.2, margin=0.01, worth=0.05, max_labels=150),
    Rules(alpha=0.01, margin=0.0, worth=0.0, max_labels=30),
]


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("lead", [-0.5, 0.0, 0.5])
def test_decisions_are_those_of_the_bounds_at_the_first_label_that_brings_them(rules, lead):
    d = outcomes(150, lead, seed=5)
    words, row = compared(d, np.ones(150), rules, records=1500)
    labels = [(1, int(one)) for one in d]
    last = row or 150
    assert naive.decision(labels[:last], rules, 0.1) == read(words, rules).decision
    for n in {1, last // 2, last - 1} - {0, last}:
        assert naive.decision(labels[:n], rules, 0.1) == "open"
    assert read(words, rules).labels == last


def test_after_a_decision_no_label_changes_the_counts():
    rules = Rules()
    words, row = compared([1] * 40, rules=rules)
    assert 0 < row < 20
    assert read(words, rules).decision == "promoted"
    assert read(words, rules).labels == row
    assert compared([1] * row, rules=rules)[0][4:].tolist() == words[4:].tolist()


def test_where_rows_are_cut_changes_nothing():
    d, octave = outcomes(120, 0.5), np.random.default_rng(3).integers(0, 3, 120)
    whole, _ = compared(d, octave, Rules(max_labels=60))
    for cuts in ((1, 2, 30), (59,), (60,), (61, 119)):
        assert np.array_equal(whole, compared(d, octave, Rules(max_labels=60), cuts=cuts)[0])
    assert read(whole, Rules()).decision != "open"


def test_rows_without_a_label_or_a_draw_are_left_out():
    words = np.zeros(CHALLENGE_WORDS, dtype=np.int64)
    counts = ChallengeCounts.over(words)
    counts.records = counts.disagreements = counts.drawn = 4
    sides = np.zeros(4, dtype=np.int32), np.ones(4, dtype=np.int32)
    label, octave = np.array([-1, -3, 1, 0], dtype=np.int32), np.array([0, 0, -1, 2], dtype=np.int8)
    assert compare_rows(counts, Rules().array(), label, *sides, octave) == 0
    assert (counts.labels, counts.weight, counts.reference) == (1, 4, 2)
    assert words[ChallengeCounts.SIZE :].tolist() == [0] * OCTAVES + [0, 0, 1, 0, 0, 0, 0]


def test_a_challenger_that_hardly_differs_is_dropped_but_not_by_its_first_labels():
    """One disagreement in a thousand records cannot be worth half a point."""
    for n in (1, LEAST_LABELS - 1, LEAST_LABELS):
        words, _ = compared([0] * n, rules=Rules(), records=1000 * n)
        assert (ChallengeCounts.over(words).decision == OPEN) == (n < LEAST_LABELS)
    assert read(words, Rules()).decision == "dropped"


def test_a_margin_that_no_disagreement_can_reach_promotes_nobody():
    words, _ = compared([1] * 200, rules=Rules(margin=0.15, worth=0.15), records=2000)
    assert read(words, Rules()).decision == "dropped"


@pytest.mark.parametrize(
    ("rules", "complaint"),
    [
        (Rules(alpha=0.0), "alpha=0.0 must be from 1e-9 to 0.5"),
        (Rules(alpha=math.nan), "alpha=nan must be from 1e-9 to 0.5"),
        (Rules(margin=-0.1), "margin=-0.1 must be at least 0 and below 1"),
        (Rules(margin=0.02, worth=0.01), "worth=0.01 must be at least margin=0.02 and below 1"),
        (Rules(max_labels=0), "max_labels=0 must be from 1 to 1000000000000"),
    ],
)
def test_a_rule_out_of_its_range_is_refused(rules, complaint):
    with pytest.raises(ParameterError) as refusal:
        rules.check()
    assert str(refusal.value) == complaint


def test_the_defaults_and_the_ends_of_all_ranges_are_valid():
    assert tuple(Rules()) == (0.05, 0.0, 0.005, 2000)
    for rules in (
        Rules(),
        Rules(alpha=1e-9),
        Rules(alpha=0.5),
        Rules(worth=0.0, max_labels=1),
        Rules(0.1, 0.5, 0.5),
    ):
        rules.check()
    for rules in (Rules(alpha=0.9e-9), Rules(alpha=0.51), Rules(margin=1.0, worth=1.0), Rules(worth=1.0)):
        with pytest.raises(ParameterError):
            rules.check()


def sound_words():
    words, _ = compared([1, -1, 0, 1], [2, 1, 2, 3])
    return words


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"records": -1}, "records must be from 0 to"),
        ({"disagreements": 5}, "disagreements must be from 0 to records"),
        ({"drawn": 5}, "drawn must be from 0 to disagreements"),
        ({"labels": 1 << 62}, "labels must be from 0 to drawn"),
        ({"weight": 3}, "weight must be from labels to"),
        ({"weight": 33}, "weight must be at most"),
        ({"reference": 4}, "reference must be from 0 to largest"),
        ({"largest": 7}, "largest must be from 0 to 6"),
        ({"largest": 2}, "wins and losses must have no octave above"),
        ({"decision": 4}, "decision must be from 0 to 3"),
    ],
)
def test_a_foreign_word_out_of_its_range_is_named(change, sentence):
    words = sound_words()
    assert problem(words) == ""
    for name, value in change.items():
        setattr(ChallengeCounts.over(words), name, value)
    assert problem(words).startswith(sentence)


def test_foreign_wins_and_losses_are_at_most_the_labels():
    for value in (-1, 3, 1 << 62):
        words = sound_words()
        words[ChallengeCounts.SIZE + 1] = value
        assert problem(words).startswith("wins and losses must be at least 0")
    assert (
        problem(sound_words()[:-1])
        == f"a challenge must have {CHALLENGE_WORDS} words, not {CHALLENGE_WORDS - 1}"
    )
    assert problem(np.zeros(CHALLENGE_WORDS, dtype=np.int64)) == ""


def test_a_challenger_that_is_surely_worse_is_dropped_by_its_first_labels():
    words, row = compared([-1] * 40, rules=Rules())
    assert 0 < row < LEAST_LABELS
    assert read(words, Rules()).decision == "dropped"
    assert read(words, Rules()).high < 0.0
