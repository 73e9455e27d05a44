"""The benchmark of query strategies: pairs, standard errors, its check, and what it prints."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.datasets import Rows
from benchmarks.strategies import protocol, runs
from benchmarks.strategies.__main__ import main
from benchmarks.strategies.comparisons import Gains, Mean
from benchmarks.strategies.laboratory import Draw, Trial, perform
from benchmarks.strategies.measures import measures_of, sets_of
from benchmarks.strategies.points import Covered, Paired, Savings, Spent, limit_for
from benchmarks.strategies.runs import Setting, answered, learner_of
from benchmarks.strategies.streams import COMMITTED, RARE, STREAMS, open_stream
from core.model.model import Model
from core.model_table import ModelTable
from core.spec import Spec

DRAW = Draw((1, 2), 600)
BAYES = learner_of("naive-bayes")


def test_the_protocol_has_fourteen_streams_and_nine_of_them_need_no_other_file() -> None:
    assert (len(STREAMS), len(COMMITTED)) == (14, 9)
    assert set(COMMITTED) <= set(STREAMS)
    assert [f"P{number}" for number in range(1, 11)] == [p.name for p in protocol.POINTS][:10]
    assert len({point.name for point in protocol.POINTS}) == len(protocol.POINTS)


@pytest.mark.parametrize("name", [*COMMITTED, "rbf-imb", "agrawal-imb", "a9a-5"])
def test_a_seed_gives_the_same_rows_and_another_seed_gives_others(name: str) -> None:
    one, again, other = (open_stream(name, seed, 300) for seed in (1, 1, 2))
    assert len(one.y) == 300
    assert np.array_equal(one.x, again.x)
    assert np.array_equal(one.y, again.y)
    assert not (np.array_equal(one.x, other.x) and np.array_equal(one.y, other.y))


def test_a_rare_class_is_one_in_twenty() -> None:
    for name in ("rbf-imb", "agrawal-imb", "a9a-5"):
        assert name in RARE
        assert 0.03 < np.bincount(open_stream(name, 1, 5000).y).min() / 5000 < 0.07


def test_a_file_is_thinned_in_its_order_or_permuted(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("x,class\n" + "".join(f"{row},{'a' if row % 3 else 'b'}\n" for row in range(1000)))
    kept = open_stream(str(path), 1).x[:, 0]
    assert 700 < len(kept) < 900
    assert np.array_equal(kept, np.sort(kept))
    permuted = open_stream(str(path), 1, permuted=True).x[:, 0]
    assert np.array_equal(np.sort(permuted), np.arange(1000.0))
    assert not np.array_equal(permuted, np.arange(1000.0))


def test_measures_are_those_of_a_confusion_matrix() -> None:
    draws = np.random.default_rng(3)
    label = draws.choice(3, 500, p=(0.6, 0.3, 0.1)).astype(np.int32)
    prediction = np.where(draws.random(500) < 0.7, label, draws.integers(-1, 3, 500)).astype(np.int32)
    matrix = np.zeros((4, 4))
    for one, other in zip(label, prediction, strict=True):
        matrix[one + 1, other + 1] += 1
    observed, rows, columns = np.trace(matrix) / 500, matrix.sum(1) / 500, matrix.sum(0) / 500
    expected = float(rows @ columns)
    precision, recall = matrix[3, 3] / matrix[:, 3].sum(), matrix[3, 3] / matrix[3].sum()
    measured = measures_of(label, prediction)
    assert measured.accuracy == pytest.approx(observed)
    assert measured.last_fifth == pytest.approx(np.mean(label[400:] == prediction[400:]))
    assert measured.kappa == pytest.approx((observed - expected) / (1 - expected))
    assert measured.f1 == pytest.approx(2 * precision * recall / (precision + recall))


def test_the_kappa_of_a_single_class_is_zero() -> None:
    ones = np.ones(10, dtype=np.int32)
    assert measures_of(ones, ones)[:3] == (1.0, 1.0, 0.0)


def test_gains_have_paired_standard_errors() -> None:
    gains = Gains({"a": (1.0, 3.0), "b": (-4.0, -4.0), "c": (0.5, -0.5)})
    mean = gains.by_stream["a"]
    assert (mean.value, mean.error) == pytest.approx((2.0, 1.0))
    assert (gains.mean.value, gains.mean.error) == pytest.approx((-2 / 3, 1 / 6))
    assert (gains.above, gains.wins, gains.losses) == (["a"], [], ["b"])
    assert gains.below(-4.0) == []
    assert math.isnan(Mean.of([1.0]).error)


def test_the_limit_of_an_accuracy_is_read_from_the_monotone_curve() -> None:
    curve = [(0.01, 0.6), (0.1, 0.5), (1.0, 0.8)]
    assert limit_for(0.55, curve) == 0.01
    assert limit_for(0.7, curve) == pytest.approx(0.1 * math.sqrt(10.0))
    assert limit_for(0.8, curve) == pytest.approx(1.0)
    assert limit_for(0.81, curve) == math.inf


def model_of(spec: dict[str, Any], rows: Rows) -> tuple[ModelTable, int]:
    table = ModelTable()
    return table, table.add(Model.create(Spec.parse(spec), rows.schema))


def test_late_labels_are_learned_after_the_answers_that_they_are_late_for() -> None:
    rows = open_stream("rbf", 1, 700)
    spec = {"learner": "naive-bayes", "query": "always"}
    table, index = model_of(spec, rows)
    prediction = answered(table, index, rows, rows.y, 300).prediction
    assert table.model(index).summary().labels == 400
    untrained, other = model_of(spec, rows)
    answers = answered(untrained, other, rows, np.full(700, -1, dtype=np.int32), 0).prediction
    assert np.array_equal(prediction[:300], answers[:300])
    assert not np.array_equal(prediction[300:], answers[300:])
    lost, at = model_of(spec, rows)
    came = np.where(np.arange(700) % 2, rows.y, -1).astype(np.int32)
    answered(lost, at, rows, came, 0)
    assert lost.model(at).summary().labels == 350
    assert lost.model(at).summary().outstanding == 350


@pytest.mark.parametrize("delay", [0, 200])
def test_sets_follow_labels_that_come_at_once_or_late(delay: int) -> None:
    rows = open_stream("waveform", 1, 3000)
    table, index = model_of({"learner": "naive-bayes", "query": "set_size", "budget": {"limit": 0.3}}, rows)
    answers = answered(table, index, rows, rows.y, delay)
    assert answers.report is not None
    sets = sets_of(rows.y[500:], answers.probability[500:], answers.report[500:])
    assert sets.coverage == pytest.approx(0.9, abs=0.05)
    assert sets.hits < sets.single < 1.0
    judged = table.model(index).coverage()
    assert judged is not None
    assert judged.labels > 500


def test_figures_of_sets_are_those_of_their_definition() -> None:
    probability = np.array([[0.7, 0.3, 0.0], [0.5, 0.4, 0.1], [0.2, 0.1, 0.7], [0.0, 0.0, 0.0]])
    report = np.full((4, 5), np.nan)
    report[:3, 0], report[:3, 1] = (0.3, 0.6, 0.9), (2, 3, 3)  # thresholds, known classes
    sets = sets_of(np.array([0, 1, 2, 0], dtype=np.int32), probability, report)
    assert sets == (0.75, 0.25, 0.25), "{0}, {0, 1}, {0, 1, 2}, and an answer before the first label"
    assert np.isnan(sets_of(np.array([0], dtype=np.int32), probability[:1], None)).all()


def test_strategies_get_the_same_rows_and_lose_the_same_labels() -> None:
    setting = Setting(BAYES, 1.0, loss=0.3)
    rows = open_stream("led", 5, 400)
    always, all_labels = (runs.outcome(rows, setting, name, 5) for name in ("always", runs.ALL_LABELS))
    assert always == all_labels
    assert always.labels < 400 * 0.8
    assert always.asked == 1.0


def test_a_learner_may_be_a_name_json_or_a_spec() -> None:
    assert learner_of("h-tree") == learner_of('{"name": "h-tree"}') == learner_of('"h-tree"')
    assert json.loads(learner_of("h-tree"))["drift"]["name"] == "ddm"
    for name in ("arf", "efhat", "sgbt"):
        assert json.loads(learner_of(name))["drift"]["name"] == "none", "it reacts to drift itself"
    whole = json.loads(learner_of('{"learner": "h-tree", "drift": "none"}'))
    assert whole["drift"]["name"] == "none"


def test_all_strategies_of_a_learner_may_have_sets(capsys: pytest.CaptureFixture[str]) -> None:
    spec = '{"learner": "naive-bayes", "calibration": "platt", "conformal": {"alpha": 0.2}}'
    assert json.loads(learner_of(spec))["conformal"]["alpha"] == 0.2
    assert json.loads(learner_of(spec))["calibration"]["name"] == "platt"
    arguments = ["--streams", "waveform", "--records", "2000", "--seeds", "2", "--processes", "1", "--json"]
    assert main([*arguments, "--learner", spec, "--strategies", "random;set_size"]) == 0
    lines = list(map(json.loads, capsys.readouterr().out.splitlines()))
    assert [line["strategy"] for line in lines] == ["random", "set_size"]
    assert all(0.6 < line["coverage"] < 0.95 and line["hits"] <= line["single"] for line in lines)
    assert lines[0]["single_gain"] == 0.0 != lines[1]["single_gain"]
    assert main([*arguments, "--learner", "naive-bayes", "--strategies", "set_size"]) == 0
    lines = list(map(json.loads, capsys.readouterr().out.splitlines()))
    assert "coverage" not in lines[0], "random has no sets"
    assert "single" in lines[1] and "single_gain" not in lines[1]


def point(name: str) -> Paired:
    (found,) = (p for p in protocol.POINTS if p.name == name)
    assert isinstance(found, Paired)
    return found


def gains_of(**points: tuple[float, ...]) -> Gains:
    return Gains({name.replace("_", "-"): values for name, values in points.items()})


def test_the_first_point_fails_by_each_of_its_demands() -> None:
    good = {f"s{number}": (2.0, 2.2) for number in range(8)} | {"other": (0.5, 0.7)}
    missed = [d.words for d in point("P1").demands if not d.holds(Gains(good))]
    assert missed == []
    for spoiled in (
        dict.fromkeys(good, (0.1, 0.2)),
        good | {"other": (-1.7, -1.6)},
        dict.fromkeys(good, (3.0, -0.5)),
        good | {"other": (-1.0, -1.1), "s0": (-1.0, -1.1)},
    ):
        assert [d for d in point("P1").demands if not d.holds(Gains(spoiled))]


def test_a_swapped_pair_of_strategies_fails_the_check(capsys: pytest.CaptureFixture[str]) -> None:
    """The control beside itself gains nothing: a point that demands a gain must fail, and be named."""
    arguments = ["--check", "--points", "P6", "--streams", "led", "--records", "500", "--seeds", "2"]
    status = main([*arguments, "--processes", "1"])
    out = capsys.readouterr().out
    assert ("FAILED P6" in out) == (status == 1)
    trials = list(Paired("x", "", ("led",), Setting(BAYES, 0.2), protocol.WORTH_IT, "random").trials(DRAW))
    results, missing = perform(trials, 1)
    assert missing == []
    same = Paired("x", "", ("led",), Setting(BAYES, 0.2), protocol.WORTH_IT, "random")
    verdict = same.verdict(results, DRAW)
    assert verdict is not None
    assert verdict.missed == ["mean ≥ +1.5 and ≥ 3 standard errors", "≥ 9 of 14 streams above"]


def test_other_points_fail_for_their_reasons() -> None:
    setting, streams = Setting(BAYES, 0.2), ("led",)
    spent = Spent("x", "", streams, setting, "always")
    refusing = perform(spent.trials(DRAW), 1)[0]
    verdict = spent.verdict(refusing, DRAW)
    assert verdict is not None
    assert [miss.split(":")[1] for miss in verdict.missed] == [" refused ≤ 2.0 %, not 80.0 %"]
    savings = Savings("x", "", streams, [Setting(BAYES, limit) for limit in (0.05, 0.2)], 0.01, "random")
    verdict = savings.verdict(perform(savings.trials(DRAW), 1)[0], DRAW)
    assert verdict is not None
    assert verdict.missed == ["median ≤ 1.0 %"]
    covered = Covered("x", "", "led", setting, 20, 300, 1.01, "random")
    verdict = covered.verdict(perform(covered.trials(DRAW), 1)[0], DRAW)
    assert verdict is not None
    assert verdict.missed == ["≥ 101.0 %"]
    assert covered.verdict(refusing, DRAW) is None


def test_a_stream_whose_file_is_missing_is_left_out_with_a_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GROVE_DATASETS", str(tmp_path))
    results, missing = perform(
        [Trial(stream, Setting(BAYES, 0.1), "random", DRAW) for stream in ("weather", "led")], 1
    )
    assert [trial.stream for trial in results.outcomes] == ["led"]
    assert len(missing) == 1
    assert missing[0].startswith("weather is left out: ")
    assert main(["--streams", "weather", "--strategies", "random", "--processes", "1"]) == 2
    assert "weather is left out" in capsys.readouterr().err


def test_json_lines_have_the_gain_of_each_strategy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.csv"
    draws = np.random.default_rng(0)
    lines = (f"{x:.4f},{'a' if x > 0.5 else 'b'}" for x in draws.random(800))
    path.write_text("x,class\n" + "\n".join(lines) + "\n")
    arguments = ["--data", str(path), "--learner", "naive-bayes", "--limits", "0.1", "--seeds", "2", "--json"]
    assert main([*arguments, "--strategies", "random;always;all labels"]) == 0
    found = {line["strategy"]: line for line in map(json.loads, capsys.readouterr().out.splitlines())}
    assert list(found) == ["random", "always", "all labels"]
    assert (found["random"]["gain"], found["random"]["se"]) == (0.0, 0.0)
    assert found["always"]["labels"] < 100 < 500 < found["all labels"]["labels"]
    assert {"gain", "se", "labels", "kappa", "f1", "limit", "seeds"} <= set(found["always"])


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--data", "absent.csv"], "absent.csv"),
        (["--streams", "rbf", "--learner", "oak"], "oak"),
        (["--streams", "rbf", "--learner", "{broken"], "broken"),
    ],
)
def test_what_cannot_be_run_is_named(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--seeds", "1", "--processes", "1"]) == 2
    assert complaint in capsys.readouterr().err


def test_a_value_out_of_bounds_is_refused_with_its_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    for option, value, rule in (
        ("--loss", "1.5", "must be from 0.0 to 1.0"),
        ("--seeds", "0", "must be from 1 to 10000"),
        ("--limits", "x", "must be a number"),
        ("--limits", "0", "must be above 0"),
        ("--strategies", "guess", "must be one of"),
    ):
        with pytest.raises(SystemExit):
            main([option, value])
        complaint = capsys.readouterr().err
        assert f"argument {option}" in complaint and value in complaint and rule in complaint
