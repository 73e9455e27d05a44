"""`grove pool`: figures, and what it refuses."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamapp.cli.main import USAGE, main


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 rows of a CSV file with two classes; a threshold on one of two attributes decides."""
    rng = np.random.default_rng(5)
    x = rng.random((200, 2)).round(3)
    lines = [f"{a},{b},{'yes' if a > 0.4 else 'no'}" for a, b in x]
    path = tmp_path_factory.mktemp("pool") / "rows.csv"
    path.write_text("\n".join(("a,b,class", *lines)) + "\n")
    return path


def result(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["pool", "--json", *arguments]) == 0
    out: dict[str, Any] = json.loads(capsys.readouterr().out)
    return out


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["pool", *arguments]) == USAGE
    return capsys.readouterr().err


def test_json_has_exactly_the_figures(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    spec = '{"learner": "boct", "query": "boct_al"}'
    figures = result(capsys, "--data", str(file), "--budget", "60", "--spec", spec, "--seed", "2")
    assert list(figures) == ["accuracy", "labels", "leaves", "pool", "test", "rows_without_label", "curve"]
    assert (figures["labels"], figures["pool"], figures["test"]) == (60, 100, 100)
    assert [point["labels"] for point in figures["curve"]] == list(range(1, 61))
    assert figures["curve"][-1] == {key: figures[key] for key in ("labels", "accuracy", "leaves")}
    assert figures["accuracy"] > 0.9
    assert figures["leaves"] >= 2
    again = result(capsys, "--data", str(file), "--budget", "60", "--seed", "2")
    assert again == figures, "BOCT-AL is what is meant without a spec"


def test_the_share_of_the_test_set_and_the_seed_matter(
    capsys: pytest.CaptureFixture[str], file: Path
) -> None:
    data = ("--data", str(file), "--budget", "30", "--spec", "c4.5")
    small = result(capsys, *data, "--test", "0.2")
    assert (small["pool"], small["test"]) == (160, 40)
    assert result(capsys, *data, "--seed", "7")["curve"] != result(capsys, *data)["curve"]


def test_the_curve_is_shown_on_the_terminal(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    assert main(["pool", "--data", str(file), "--budget", "50", "--spec", "h-tree"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["100 rows in the pool, 100 in the test set", "labels  accuracy  leaves"]
    assert [int(line.split()[0]) for line in lines[2:]] == [5, 10, 15, 20, 25, 30, 35, 40, 45, 50]


def test_a_pool_that_is_smaller_than_the_budget(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    message = refusal(capsys, "--data", str(file), "--budget", "101", "--spec", "c4.5")
    assert "--budget 101 must be at most the 100 rows of the pool" in message
    assert "lower it" in message


def test_a_pool_that_takes_more_memory_than_allowed(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    data = ("--data", str(file), "--budget", "20", "--spec", "c4.5")
    message = refusal(capsys, *data, "--max-bytes", "3199")
    assert "200 rows of 2 attributes so far take over 3,199 bytes" in message
    assert "--ignore" in message
    assert result(capsys, *data, "--max-bytes", "3200") == result(capsys, *data)


def test_rows_without_a_label_take_no_memory_and_keep_their_order(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, file: Path
) -> None:
    gaps = tmp_path / "gaps.csv"
    header, *rows = file.read_text().splitlines()
    gaps.write_text("\n".join((header, *(f"{row}\n0.5,0.5," for row in rows))) + "\n")
    data = ("--budget", "20", "--spec", "c4.5", "--max-bytes", "3200")
    figures = result(capsys, "--data", str(gaps), *data)
    assert figures.pop("rows_without_label") == 200
    whole = result(capsys, "--data", str(file), *data)
    assert whole.pop("rows_without_label") == 0
    assert figures == whole


@pytest.mark.parametrize("share", ["0", "1", "-0.5", "nan", "0.001", "0.999"])
def test_a_share_that_leaves_nothing(capsys: pytest.CaptureFixture[str], file: Path, share: str) -> None:
    assert f"--test {share}" in refusal(
        capsys, "--data", str(file), "--budget", "10", "--spec", "c4.5", f"--test={share}"
    ).replace("-0.0", "0")


def test_more_than_two_classes_are_not_for_boct(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    three = tmp_path / "three.csv"
    three.write_text("a,class\n" + "".join(f"{i},{'xyz'[i % 3]}\n" for i in range(30)))
    assert main(["pool", "--data", str(three), "--budget", "5"]) != 0
    error_text = capsys.readouterr().err
    assert "classes=3 must be at most 2 with 'boct'" in error_text
    assert result(capsys, "--data", str(three), "--budget", "5", "--spec", "c4.5")["labels"] == 5


@pytest.mark.parametrize(
    ("learner", "says"),
    [
        ({"name": "boct", "delta": 0.5}, "delta=0.5 must be below 0.5 with bound 'credible'"),
        ({"name": "boct", "delta": 1e-26}, "delta=1e-26 must be at least 1e-25"),
        ({"name": "boct", "sizes": "toy"}, ""),
    ],
)
def test_a_boct_that_means_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, learner: dict[str, Any], says: str
) -> None:
    data = tmp_path / "three.csv"
    data.write_text("a,b,c,class\n" + "".join(f"{i},{i % 5},1,{'xy'[i % 2]}\n" for i in range(30)))
    spec = json.dumps({"learner": learner, "query": "boct_al"})
    assert main(["pool", "--data", str(data), "--budget", "5", "--spec", spec]) != 0
    assert (says or "sizes='toy' must go with two numeric attributes") in capsys.readouterr().err


def test_constant_attributes_and_rows_that_are_all_the_same(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Nothing to split on: one leaf, and every label is bought and counted."""
    data = tmp_path / "same.csv"
    data.write_text("a,b,class\n" + "".join(f"1,2,{'xy'[i % 3 == 0]}\n" for i in range(90)))
    figures = result(capsys, "--data", str(data), "--budget", "45")
    assert (figures["labels"], figures["leaves"], figures["pool"]) == (45, 1, 45)
    assert figures["accuracy"] > 0.5


def test_rows_without_a_label_are_left_out_and_counted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    data = tmp_path / "some.arff"
    rows = "".join(f"{i},{'?' if i % 4 == 0 else 'no' if i < 20 else 'yes'}\n" for i in range(40))
    data.write_text("@relation r\n@attribute a numeric\n@attribute class {no,yes}\n@data\n" + rows)
    figures = result(capsys, "--data", str(data), "--budget", "10")
    assert (figures["rows_without_label"], figures["pool"] + figures["test"]) == (10, 30)
    none = tmp_path / "none.arff"
    none.write_text("@relation r\n@attribute a numeric\n@attribute class {no,yes}\n@data\n1,?\n2,?\n")
    assert "none of 2 rows has a label; name the class column" in refusal(
        capsys, "--data", str(none), "--budget", "1"
    )


def test_missing_values_and_nominal_attributes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    data = tmp_path / "mixed.csv"
    rng = np.random.default_rng(1)
    rows = [
        f"{'' if rng.random() < 0.2 else i},{colour},{'yes' if colour == 'red' else 'no'}"
        for i, colour in enumerate(rng.choice(["red", "green", "blue"], 120))
    ]
    data.write_text("a,colour,class\n" + "\n".join(rows) + "\n")
    for spec in ("c4.5", "boct", '{"learner": "h-tree", "query": "conf_tree"}'):
        figures = result(capsys, "--data", str(data), "--budget", "60", "--spec", spec)
        assert figures["accuracy"] >= (0.95 if spec != "h-tree" and "h-tree" not in spec else 0.5)


def test_a_file_without_a_class_column(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    data = tmp_path / "one.csv"
    data.write_text("class\nyes\nno\n")
    assert "no attribute beside the class" in refusal(capsys, "--data", str(data), "--budget", "1")
