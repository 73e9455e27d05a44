"""The benchmark of challenges: pairs, true differences, wrong decisions, and what it prints."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks.challenger import pairs
from benchmarks.challenger.__main__ import main
from benchmarks.challenger.pairs import CHUNK, HEAD, KINDS, STREAMS, Pair, play
from benchmarks.challenger.trials import (
    RULES,
    Outcome,
    at_random,
    by_disagreement,
    exchanged,
)
from core.model_table import ModelTable

RECORDS = HEAD + 6 * CHUNK


def made(n: int, share: float, lead: float, seed: int = 1) -> Pair:
    """Return a pair of two classes that differs at a share of the records."""
    draws = np.random.default_rng(seed)
    champion = draws.integers(0, 2, n).astype(np.int32)
    challenger = np.where(draws.random(n) < share, 1 - champion, champion).astype(np.int32)
    label = np.where(draws.random(n) < (1 + lead) / 2, challenger, 1 - challenger).astype(np.int32)
    return Pair(champion, challenger, label, np.full(n, share * lead))


def outcome_of(decision: str, truth: float, in_the_end: float = 0.001) -> Outcome:
    return Outcome(decision, 10, 10, 100, 0.0, -0.1, 0.1, truth, in_the_end)


def test_there_are_two_hundred_pairs() -> None:
    assert len(STREAMS) * len(KINDS) * 4 == 200


@pytest.mark.parametrize("stream", STREAMS)
def test_another_seed_gives_other_records_of_the_same_concept(stream: str) -> None:
    """A model of 4,000 records is as good on the next records of another seed; 4 standard errors."""
    one, again, other = (pairs._rows(STREAMS[stream], 101, seed, 6000) for seed in (1, 1, 2))
    assert np.array_equal(one.x, again.x)
    assert not np.array_equal(one.x, other.x)
    table = ModelTable()
    model = table.add(pairs._model("naive-bayes", 1, one))
    pairs._answer(table, model, one.x[:4000], one.y[:4000])
    own, others = (
        np.mean(pairs._answer(table, model, rows.x[4000:], None) == rows.y[4000:]) for rows in (one, other)
    )
    assert abs(own - others) < 4 * np.sqrt(0.5 / 2000)


def test_the_true_difference_is_near_the_difference_of_the_records() -> None:
    pair = play("sea", "better", 1, RECORDS)
    assert len(pair.label) == len(pair.truth) == 6 * CHUNK
    seen = np.mean(pair.challenger == pair.label) - np.mean(pair.champion == pair.label)
    assert pair.truth[-1] > 0.05
    assert abs(seen - pair.truth[-1]) < 0.05
    again = play("sea", "better", 1, RECORDS)
    assert np.array_equal(pair.truth, again.truth)
    worse = play("sea", "worse", 1, RECORDS)
    assert np.allclose(worse.truth, -pair.truth)


def test_a_late_challenger_has_learned_less() -> None:
    pair = play("sea", "crossing", 1, RECORDS)
    assert (pair.challenger >= 0).all()
    assert not np.array_equal(pair.champion, pair.challenger)


def test_fewer_requests_decide_where_only_disagreements_are_requested() -> None:
    pair = made(20_000, 0.05, 0.5)
    drawn, dense = by_disagreement(pair, 1), at_random(pair, 1, 1.0)
    assert (drawn.decision, dense.decision) == ("promoted", "promoted")
    assert dense.requests > 5 * drawn.requests
    assert drawn.requests <= 0.02 * drawn.records + 1
    assert drawn.requests == drawn.compared
    assert dense.requests == dense.records
    assert at_random(pair, 1).requests < 0.03 * 20_000


def test_exchanged_answers_are_the_same_answers_without_a_lead() -> None:
    pair = made(20_000, 0.2, 0.6)
    null = exchanged(pair, 3)
    assert np.array_equal(
        np.sort([pair.champion, pair.challenger], axis=0), np.sort([null.champion, null.challenger], axis=0)
    )
    difference = np.mean(null.challenger == null.label) - np.mean(null.champion == null.label)
    assert abs(difference) < 0.02
    assert not null.truth.any()


def test_wrong_decisions_are_counted() -> None:
    assert outcome_of("promoted", 0.0).is_wrong
    assert not outcome_of("promoted", 0.001).is_wrong
    assert outcome_of("dropped", RULES.worth).is_wrong
    assert not outcome_of("dropped", 0.001).is_wrong
    assert not outcome_of("open", 0.5).is_wrong
    assert outcome_of("promoted", 0.1, -0.1).is_overtaken
    assert outcome_of("dropped", -0.1, 0.1).is_overtaken
    assert not outcome_of("promoted", 0.0, -0.1).is_overtaken
    assert not outcome_of("dropped", -0.1, -0.1).is_overtaken


def test_the_report_counts_pairs_and_decisions(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--streams", "sea", "--kinds", "better,worse", "--seeds", "1", "--exchanges", "2"]
    assert main([*arguments, "--records", str(HEAD + 10 * CHUNK)]) == 0
    out, progress = capsys.readouterr()
    report = json.loads(out)
    assert report["all"]["pairs"] == 2
    assert report["records"] == 10 * CHUNK
    assert report["kinds"]["better"]["disagreements"]["decisions"] == {"promoted": 1}
    assert report["kinds"]["worse"]["disagreements"]["decisions"] == {"dropped": 1}
    assert report["all"]["exchanged"]["pairs"] == 4
    assert report["all"]["disagreements"]["wrong promotions"] == 0
    assert [json.loads(line)["kind"] for line in progress.splitlines()] == ["better", "worse"]


def test_too_few_records_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--records", str(HEAD)])
    assert f"{HEAD} must be at least {HEAD + CHUNK}" in capsys.readouterr().err
