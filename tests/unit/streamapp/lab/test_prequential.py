"""`grove prequential`: every labelled row is judged, whatever the strategy learns."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core import registry
from core.kernels import jit
from core.model.model import Model
from core.model_table import ModelTable
from core.publishing.coverage import SET_FIGURES
from core.schema.schema import Attribute, Schema
from core.spec import Spec
from streamapp.cli.main import main
from streamapp.lab.datasets import FollowingSchema, open_data
from streamapp.lab.prequential import CURVE, MEASURES, DelayedLabels, Prequential, Tally
from streamapp.worker.compile_ahead import MAIN_KERNEL, TAKES, kernels_are_cold
from tests.naive.evaluation import Evaluation
from tests.unit.core.builders import learner_for
from topics.readers import open_dataset

KEYS = [
    "accuracy",
    "accuracy_windowed",
    "kappa",
    "kappa_m",
    "kappa_temporal",
    *(
        f"{name}{end}"
        for name in ("balanced_accuracy", "log_loss", "brier", "auc", "calibration_error")
        for end in ("", "_low", "_high")
    ),
    "per_class",
    "confusion",
    "leaves",
    "nodes",
    "depth",
    "splits",
    "attempts",
    "labels",
    "refused",
    "drawn_labels",
    "accuracy_unbiased",
    "accuracy_unbiased_low",
    "accuracy_unbiased_high",
    "accuracy_powered",
    "accuracy_powered_low",
    "accuracy_powered_high",
    "accuracy_of_labels",
    "advice",
    *(f"{name}{end}" for name in ("accuracy_forecast", "gain_forecast") for end in ("", "_low", "_high")),
    "learning_curve",
    *SET_FIGURES,
    "features_bought",
    "feature_cost",
    "seconds",
    "records_per_second",
]


def result(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["prequential", "--json", *arguments]) == 0
    out: dict[str, Any] = json.loads(capsys.readouterr().out)
    return out


@pytest.mark.parametrize("query", ["always", "random"])
@pytest.mark.parametrize("delay", [(), ("--label-delay", "40")])
def test_figures_per_class_are_of_all_rows_that_have_labels(
    query: str, delay: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    spec = json.dumps({"query": query, "budget": {"limit": 1.0 if query == "always" else 0.1}})
    found = result(capsys, "--data", "gen:sea?n=2000", "--spec", spec, *delay)
    weights = np.array(found["confusion"]["weights"])
    assert weights.trace() / weights.sum() == pytest.approx(found["accuracy"], abs=0.025)  # unanswered rows
    assert 1900 <= weights.sum() <= 2000
    for at, figures in enumerate(found["per_class"].values()):
        assert figures["recall"] == pytest.approx(weights[at, at] / weights[at].sum())
        assert figures["recall_low"] < figures["recall"] < figures["recall_high"]
    assert found["log_loss_low"] < found["log_loss"] < found["log_loss_high"]


def test_json_has_exactly_the_figures(capsys: pytest.CaptureFixture[str]) -> None:
    figures = result(capsys, "--data", "gen:sea?n=3000")
    assert list(figures) == KEYS
    assert figures["labels"] == 3000
    assert figures["accuracy"] > 0.8


def test_a_model_that_keeps_a_curve_has_its_forecast_and_advice(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    events = tmp_path / "events"
    spec = json.dumps({"evaluation": {"worth": 0.005, "every": 500}})
    arguments = ["--data", "gen:sea?n=2000", "--spec", spec]
    figures = result(capsys, *arguments, "--events", str(events))
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    last = [line for line in lines if line["event"] == "evaluation-due"][-1]
    assert last["labels"] == figures["labels"] == 2000
    assert {name: figures[name] for name in CURVE} == {name: last[name] for name in CURVE}
    assert figures["advice"] in ("stop", "go on")
    assert figures["gain_forecast_low"] <= figures["gain_forecast"] <= figures["gain_forecast_high"]
    assert main(["prequential", *arguments]) == 0
    assert f"advice on more labels  {figures['advice']}" in capsys.readouterr().out


def test_a_model_without_a_curve_has_no_advice(capsys: pytest.CaptureFixture[str]) -> None:
    figures = result(capsys, "--data", "gen:sea?n=100", "--spec", '{"evaluation": {"worth": 0}}')
    assert {name: figures[name] for name in CURVE} == dict.fromkeys(CURVE)


def test_every_figure_is_documented() -> None:
    page = (Path(__file__).parents[4] / "docs" / "measures.md").read_text(encoding="utf-8")
    fields = page.partition("## Fields of `grove prequential --json`")[2]
    figures = {name.removesuffix("_low").removesuffix("_high") for name in KEYS}
    assert {name for name in figures if f"`{name}`" not in fields} == set()


def test_boct_takes_two_classes_and_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Missing values, a constant column and records that come twice are learned; a third class is not."""
    data = tmp_path / "rows.csv"
    body = [f"{i % 9 if i % 5 else ''},1,{'yes' if i % 9 > 4 else 'no'}" for i in range(300)]
    data.write_text("a,same,class\n" + "\n".join(body) + "\n")
    spec = '{"learner": "boct", "query": "boct_al", "budget": {"limit": 1.0}}'
    figures = result(capsys, "--data", str(data), "--spec", spec)
    assert (figures["labels"], figures["leaves"]) == (300, 2)
    assert figures["accuracy"] > 0.8
    data.write_text("a,same,class\n" + "\n".join([*body, "1,1,perhaps"]) + "\n")
    declared = tmp_path / "rows.arff"
    head = "@relation r\n@attribute a numeric\n@attribute class {no,yes,perhaps}\n@data\n"
    declared.write_text(head + "1,no\n2,yes\n")
    for file in (data, declared):  # a class that is found on the way, and one that the file declares
        assert main(["prequential", "--data", str(file), "--spec", spec]) == 1
        error_text = " ".join(capsys.readouterr().err.split())
        assert "classes=3 must be at most 2 with 'boct'" in error_text
        assert "take h-tree" in error_text
        assert "raise it" not in error_text


def test_ufodt_buys_features_of_any_file_and_names_once_where_its_thresholds_come_from(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Numbers get thresholds of their first values; --schema declares a range instead, and a cost."""
    data = tmp_path / "rows.csv"
    rows = [f"{i * 7 % 20 / 20},{'uv'[i % 2]},{'yes' if i * 7 % 20 > 9 else 'no'}" for i in range(200)]
    data.write_text("age,sex,class\n" + "\n".join(rows) + "\n")
    command = ["--data", str(data), "--spec", "ufodt"]
    events = tmp_path / "events"
    assert main(["prequential", *command, "--json", "--events", str(events)]) == 0
    out, error_text = capsys.readouterr()
    figures = json.loads(out)
    assert figures["accuracy"] > 0.6
    assert 50 <= figures["features_bought"] < 400
    assert error_text.count("thresholds of 1 numeric attribute are the quantiles of the first 50 values") == 1
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    assert [line for line in lines if line["event"] == "thresholds-set"] == [
        {"event": "thresholds-set", "record": 49, "attributes": 1, "left": 0}
    ]
    schema = tmp_path / "schema.json"
    schema.write_text(
        '{"attributes": [{"name": "age", "range": [0, 1], "cost": 2.5}, {"name": "sex", "cost": 10}]}'
    )
    figures = result(capsys, *command, "--schema", f"@{schema}")
    assert 0 < figures["features_bought"] < 400
    assert figures["feature_cost"] >= 2.5 * figures["features_bought"]
    assert figures["accuracy"] > 0.6
    assert main(["prequential", *command, "--schema", schema.read_text()]) == 0
    out, error_text = capsys.readouterr()
    assert "features bought" in out
    assert "thresholds" not in error_text


@pytest.mark.parametrize(
    ("schema", "complaint"),
    [
        ("{", "--schema {: cannot be read ("),
        (
            "@nowhere.json",
            "--schema @nowhere.json: cannot be read (No such file or directory); give JSON, or @",
        ),
        ("[]", "--schema [] must be an object with 'attributes' alone, a list"),
        ('{"attributes": [], "classes": []}', "must be an object with 'attributes' alone, a list"),
        ('{"attributes": [{"name": "x", "kind": "nominal"}]}', "members than range, cost, thresholds"),
        ('{"attributes": [{"name": "x"}, {"name": "x"}]}', "must have its own 'name'"),
        (
            '{"attributes": [{"name": "x", "range": [1]}]}',
            "range=[1] of attribute 'x' must be a list of two numbers",
        ),
        ('{"attributes": [{"name": "x", "cost": "1"}]}', "cost='1' of attribute 'x' must be a number"),
        (
            '{"attributes": [{"name": "x", "range": [2, 1]}]}',
            "range=(2.0, 1.0) of attribute 'x' must be two finite",
        ),
        ('{"attributes": [{"name": "z"}]}', "attribute 'z' must be one of the data set's: x, y"),
    ],
)
def test_a_schema_that_says_nothing_usable_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, schema: str, complaint: str
) -> None:
    data = tmp_path / "rows.csv"
    data.write_text("x,y,class\n1,2,a\n2,1,b\n")
    assert main(["prequential", "--data", str(data), "--schema", schema]) in (1, 64)
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize("threshold", [0.9, 1.0])
def test_fixed_uncertainty_asks_for_more_than_one_label(
    capsys: pytest.CaptureFixture[str], threshold: float
) -> None:
    """The first label makes the root pure: without a cold start no threshold asked again."""
    query = {"name": "fixed_uncertainty", "threshold": threshold}
    spec = json.dumps({"query": query, "budget": {"name": "count", "limit": 0.1}})
    figures = result(capsys, "--data", "gen:sea?n=5000", "--spec", spec)
    assert figures["labels"] > 400
    assert figures["accuracy"] > 0.7


def test_compiling_is_said_and_json_stays_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for cold, said in ((True, f"grove: compiling kernels (the first time: {TAKES})\n"), (False, "")):
        monkeypatch.setattr("streamapp.worker.compile_ahead.kernels_are_cold", lambda cold=cold: cold)
        assert main(["prequential", "--json", "--data", "gen:sea?n=100"]) == 0
        out, err = capsys.readouterr()
        assert json.loads(out)["labels"] == 100
        assert err == said


def test_kernels_are_cold_until_the_loop_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "DISABLED", False)
    monkeypatch.setattr(jit, "cache_directory", lambda: tmp_path)
    (tmp_path / "core_1").mkdir()
    (tmp_path / "core_1" / "ranking.rank-39.py311.nbi").touch()
    assert kernels_are_cold()
    (tmp_path / "core_1" / f"{MAIN_KERNEL}-12.py311.nbi").touch()
    assert not kernels_are_cold()
    assert hasattr(import_module(f"core.{MAIN_KERNEL.partition('.')[0]}"), MAIN_KERNEL.partition(".")[2])
    monkeypatch.setattr(jit, "cache_directory", lambda: None)
    assert kernels_are_cold()


def test_nothing_is_said_of_rows_without_labels(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "rows.arff").write_text(
        "@relation r\n@attribute a numeric\n@attribute class {x,y}\n@data\n1,?\n2,?\n"
    )
    figures = result(capsys, "--data", str(tmp_path / "rows.arff"))
    assert (figures["accuracy"], figures["accuracy_windowed"], figures["kappa"]) == (None, None, None)
    assert main(["prequential", "--data", str(tmp_path / "rows.arff")]) == 0
    assert "kappa" not in capsys.readouterr().out


def test_text_names_them_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prequential", "--data", "gen:sea?n=3000"]) == 0
    out = capsys.readouterr().out
    assert all(word in out for word in ("accuracy", "kappa", "leaves", "depth", "labels used", "records/s"))


def test_rows_that_are_not_learned_are_judged_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    spec = json.dumps({"query": "random", "budget": {"name": "count", "limit": 0.1}, "seed": 3})
    figures = result(capsys, "--data", "gen:sea?n=20000", "--spec", spec)
    assert 1700 < figures["labels"] < 2300
    table_accuracy = result(capsys, "--data", "gen:sea?n=20000", "--spec", '{"query": "never"}')
    assert table_accuracy["labels"] == 0
    assert figures["accuracy"] > table_accuracy["accuracy"]


@pytest.mark.parametrize(
    ("query", "budget"), [*((name, "count") for name in registry.names("queries")), ("conf_tree", "window")]
)
def test_every_strategy_and_budget(capsys: pytest.CaptureFixture[str], query: str, budget: str) -> None:
    """By spec, within the limit, and with an estimate of the accuracy over all rows."""
    body = {"query": query, "budget": {"name": budget, "limit": 0.1}, "evaluation": {"share": 0.05}}
    spec = {"learner": learner_for(query), **body}
    figures = result(capsys, "--data", "gen:sea?n=6000", "--spec", json.dumps(spec))
    assert figures["drawn_labels"] == 300
    # The window closes only when it is full, so that it grants a little more than its limit.
    assert figures["drawn_labels"] <= figures["labels"] < 601 * (1.0 if budget == "count" else 1.1)
    width = figures["accuracy_unbiased_high"] - figures["accuracy_unbiased_low"]
    assert abs(figures["accuracy_unbiased"] - figures["accuracy"]) < width < 0.1


def test_what_nobody_knows_is_not_said(capsys: pytest.CaptureFixture[str]) -> None:
    spec = json.dumps({"query": "variable_uncertainty", "budget": {"limit": 0.1}})
    assert result(capsys, "--data", "gen:sea?n=3000", "--spec", spec)["accuracy_unbiased"] is None
    assert main(["prequential", "--data", "gen:sea?n=3000", "--spec", spec]) == 0
    assert "unbiased" not in capsys.readouterr().out


def test_records_bound_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert result(capsys, "--data", "gen:sea?n=5000", "--records", "1234")["labels"] == 1234
    assert result(capsys, "--data", "gen:sea", "--records", "1234")["labels"] == 1234


def test_file_and_spec_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["generate", "sea", "--n", "3000", "--output", str(tmp_path / "sea.csv")]) == 0
    (tmp_path / "spec.json").write_text('{"learner": {"name": "h-tree", "leaf_model": "mc"}}')
    spec = f"@{tmp_path / 'spec.json'}"
    from_file = result(capsys, "--data", str(tmp_path / "sea.csv"), "--spec", spec, "--target", "class")
    from_generator = result(capsys, "--data", "gen:sea?n=3000", "--spec", spec)
    assert from_file["accuracy"] == pytest.approx(from_generator["accuracy"], abs=1e-3)


def test_values_and_classes_that_appear_late(tmp_path: Path) -> None:
    rows = [f"{'red' if i < 9000 else 'blue'},{i % 7},{'a' if i < 9500 else 'b'}" for i in range(10_000)]
    (tmp_path / "late.csv").write_text("colour,n,kind\n" + "\n".join(rows) + "\n")
    figures = Prequential(Spec.parse(None), open_data(str(tmp_path / "late.csv"))).over_all()
    assert figures["labels"] == 10_000
    assert figures["accuracy"] > 0.94


def test_schema_follows_the_data_set(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("colour,kind\nred,a\nblue,b\nred,a\n")
    dataset = open_dataset(tmp_path / "rows.csv", nominal=["colour"])
    following = FollowingSchema(dataset, 64)
    first = following.current
    sizes = []
    for batch in dataset.batches(1):
        schema = following.follow(batch)
        assert schema.extends(first)
        sizes.append((len(schema.attributes[0].values), schema.n_classes))
    assert sizes[-1] == (2, 2)
    assert schema.classes == ("a", "b")


class TestTally:
    def test_against_the_definitions(self) -> None:
        rng = np.random.default_rng(5)
        label = rng.integers(0, 4, 5000).astype(np.int32)
        prediction = np.where(rng.random(5000) < 0.6, label, rng.integers(0, 4, 5000)).astype(np.int32)
        prediction[:10] = -1
        label[20:30] = -1
        tally = Tally(window=1000)
        for start in range(0, 5000, 700):
            tally.add(label[start : start + 700], prediction[start : start + 700])
        figures = tally.figures()
        seen, predicted = label[label >= 0], prediction[label >= 0]
        agreed = float(np.mean(seen == predicted))
        chance = sum(float(np.mean(seen == c) * np.mean(predicted == c)) for c in range(4))
        assert figures["accuracy"] == pytest.approx(agreed)
        assert figures["kappa"] == pytest.approx((agreed - chance) / (1 - chance))
        assert figures["accuracy_windowed"] == pytest.approx(float(np.mean((seen == predicted)[-1000:])))
        twin = Evaluation()
        for pair in zip(seen.tolist(), predicted.tolist(), strict=True):
            twin.judge(*pair)
        hits = [int(np.bincount(seen[: i + 1]).argmax() == seen[i]) for i in range(len(seen))]
        assert figures["kappa_m"] == pytest.approx((agreed - np.mean(hits)) / (1 - np.mean(hits)))
        assert figures["kappa_temporal"] == pytest.approx(twin.kappa_temporal())

    def test_one_class_only_has_no_kappa(self) -> None:
        tally = Tally(window=10)
        tally.add(np.zeros(5, np.int32), np.zeros(5, np.int32))
        assert tally.figures() == dict.fromkeys(MEASURES, 0.0) | {
            "accuracy": 1.0,
            "accuracy_windowed": 1.0,
        }

    def test_nothing_yet(self) -> None:
        assert Tally(window=10).figures() == dict.fromkeys(MEASURES)


def test_what_was_made_of_a_file_is_said_on_standard_error_and_not_beside_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("a,b\n" + "1,x\n2,y\n" * 20)
    assert main(["prequential", "--data", str(rows)]) == 0
    printed = capsys.readouterr()
    assert "target 'b' (else --target); 1 numeric feature; 2 classes in the first rows: x, y" in printed.err
    assert "target" not in printed.out
    assert main(["prequential", "--data", str(rows), "--json"]) == 0
    assert "target" not in capsys.readouterr().err


def test_values_that_a_schema_does_not_take_in_are_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rows = "".join(f"v{i % 1030},{'xy'[i % 2]}\n" for i in range(2060))
    (tmp_path / "rows.csv").write_text("name,class\n" + rows)
    assert main(["prequential", "--json", "--data", str(tmp_path / "rows.csv"), "--target", "class"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["labels"] == 2060
    assert "grove: 'name' has 1,030 values; the first 1,024 are known, all others count as missing" in err


MAJORITY = '{"learner": {"name": "h-tree", "leaf_model": "mc"}}'


@pytest.mark.parametrize("delay", [1, 7, 40, 1000])
def test_a_label_is_learned_when_the_rows_of_the_delay_are_answered_and_not_before(delay: int) -> None:
    """A leaf that never splits answers row i with the class of most labels up to row i - delay - 1."""
    spec = Spec.parse(MAJORITY)
    labels = np.array([0] * 5 + [1] * 12 + [0] * 30 + [1] * 20, dtype=np.int32)
    table = ModelTable()
    schema = Schema.of([Attribute("x", "numeric", (), False)], ("a", "b"), max_classes=2, classes_open=False)
    delayed = DelayedLabels(table, table.add(Model.create(spec, schema)), delay)
    parts = [delayed.answer(np.zeros((len(y), 1)), y)[0] for y in np.split(labels, [3, 4, 30])]
    prediction = np.concatenate(parts)
    for row in range(len(labels)):
        counts = np.bincount(labels[: max(0, row - delay)], minlength=2)
        if counts[0] != counts[1]:
            assert prediction[row] == counts.argmax(), row
    assert len(set(prediction[: delay + 1].tolist())) == 1  # nothing is known yet
    learned = table.model(0).summary().labels
    assert learned == max(0, len(labels) - delay)
    delayed.rest()
    assert table.model(0).summary().labels == len(labels)


def test_late_labels_of_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "turns.csv"
    rows = [f"{i % 7}.5,{'ab'[(i // 50) % 2]}" for i in range(400)]
    path.write_text("\n".join(["x,class", *rows, "1.5,", "2.5,"]))
    at_once = result(capsys, "--data", str(path), "--spec", MAJORITY)
    late = result(capsys, "--data", str(path), "--spec", MAJORITY, "--label-delay", "30")
    assert late["labels"] == at_once["labels"] == 400
    assert late["accuracy"] < at_once["accuracy"]


def test_late_labels_of_a_learner_whose_label_ends_purchases(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--data", "gen:stagger?n=10", "--spec", "ufodt", "--label-delay", "5"]
    assert main(["prequential", *arguments]) == 64
    assert "--label-delay must be left out with the learner 'ufodt'" in capsys.readouterr().err
