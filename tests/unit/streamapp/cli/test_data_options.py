"""The options that name a data set: what is refused, in one line, and what they do."""

import os
from pathlib import Path

import pytest

from streamapp.cli.main import main
from streamapp.demo.demo_plan import DemoPlan
from streamapp.demo.demo_run import read_truth

NOTED = (
    "@relation r\n@attribute note string\n@attribute a real\n@attribute class {x,y}\n@data\nn,1,x\nm,2,y\n"
)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    path.write_text("a,b,class\n1,2,x\n2,3,y\n3,4,x\n")
    return path


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the last line of a command that must end with 64."""
    assert main(list(arguments)) == 64
    out, err = capsys.readouterr()
    assert out == ""
    return err.splitlines()[-1]


@pytest.mark.parametrize("target", ["--5", "\u00b2", "99", "-4"])
def test_a_target_that_is_no_column(capsys: pytest.CaptureFixture[str], rows: Path, target: str) -> None:
    said = refused(capsys, "prequential", "--data", str(rows), f"--target={target}")
    assert f"target={target!r} must name one of the 3 columns or be an index from 0 to 2" in said


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--target", "nope", "--no-header", "--format", "csv"], "--format, --target, --header/--no-header"),
        (["--ignore", "f1"], "--ignore"),
        (["--nominal", "f1"], "--nominal"),
        (["--delimiter", "tab"], "--delimiter"),
        (["--skip-lines", "0", "--missing", "-", "--decimal", ","], "--skip-lines, --missing, --decimal"),
        (
            ["--thousands", "space", "--no-quotes", "--zero-based"],
            "--thousands, --quotes/--no-quotes, --zero-based",
        ),
    ],
)
@pytest.mark.parametrize("command", ["prequential", "replay", "oracle", "demo"])
def test_options_of_files_are_refused_with_a_generator(
    capsys: pytest.CaptureFixture[str], command: str, options: list[str], named: str
) -> None:
    said = refused(capsys, command, "--data", "gen:sea?n=100", *options)
    assert said == f"grove: {named} must be left out with --data gen:sea?n=100: they are for files"


def test_a_spec_of_the_demo_that_cannot_be_read_is_blamed_on_its_option(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = refused(capsys, "demo", "--model", "a=@nofile")
    assert said.startswith("grove: --model a=@nofile: cannot read the file")


def test_a_pipe_is_no_data_set(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    said = refused(capsys, "prequential", "--data", str(tmp_path / "pipe"))
    assert said.endswith(
        "pipe: is a pipe or device; a data set is read more than once: write it to a file and name that"
    )


def test_more_classes_than_the_spec_allows(capsys: pytest.CaptureFixture[str], rows: Path) -> None:
    said = refused(capsys, "prequential", "--data", str(rows), "--spec", '{"max_classes": 1}')
    assert "max_classes=1 must be at least the classes of the data set; 'y' is number 2" in said


def test_columns_are_left_out_or_made_nominal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    path.write_text("a b c class\n1 2 3 x\n2 3 4 y\n3 4 5 x\n")
    options = ["--format", "csv", "--delimiter", "space", "--ignore", "a", "--nominal", "b"]
    assert main(["prequential", "--data", str(path), *options]) == 0
    assert "2 features (1 numeric, 1 nominal)" in capsys.readouterr().err


def test_the_remedy_for_a_text_attribute_is_an_option(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "rows.arff"
    path.write_text(NOTED)
    assert "leave it out with ignore='note' (--ignore)" in refused(capsys, "prequential", "--data", str(path))
    assert main(["prequential", "--data", str(path), "--ignore", "note", "--json"]) == 0


def test_the_demo_reads_and_passes_on_the_same_options(tmp_path: Path) -> None:
    path = tmp_path / "rows.arff"
    path.write_text(NOTED)
    plan = DemoPlan(data=str(path), target="-1", ignore=("note",))
    notes: list[str] = []
    assert read_truth(plan, notes.append).rows == 2
    assert notes == [f"{path}: ARFF; target 'class'; 1 numeric feature; 2 classes: x, y"]
    assert plan.data_options() == ["--data", str(path), "--target=-1", "--ignore=note"]
    plan = DemoPlan(data=str(path), delimiter="tab", nominal=("a", "b"))
    assert plan.data_options()[2:] == ["--delimiter", "tab", "--nominal=a", "--nominal=b"]
    plan = DemoPlan(data=str(path), skip_lines=0, missing=("-",), decimal=",", thousands=".", quotes=False)
    assert plan.data_options()[2:] == [
        "--missing=-",
        "--skip-lines=0",
        "--decimal=,",
        "--thousands=.",
        "--no-quotes",
    ]
    assert DemoPlan(data=str(path), quotes=True, zero_based=True).data_options()[2:] == [
        "--quotes",
        "--zero-based",
    ]


def test_guesses_are_said_with_the_option_that_says_otherwise(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("# exported\nx;y;class\n1,5;None;p\n2,25;a;q\n3;b;q\n")
    assert main(["prequential", "--data", str(path), "--decimal", ","]) == 0
    said = capsys.readouterr().err
    assert "grove: cells are separated by ';' (else --delimiter)\n" in said
    assert "such as '# exported' (else --skip-lines 0)\n" in said
    assert "'None' in column 'y' is a missing value (else --missing '?')\n" in said
    assert main(["prequential", "--data", str(path), "--decimal", ",", "--missing", "?", "--json"]) == 0
    assert "grove:" not in capsys.readouterr().err


def test_a_libsvm_file_that_counts_from_0(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "rows.svm"
    path.write_text("1 0:0.5 1:1\n-1 1:2\n")
    assert "--zero-based" in refused(capsys, "prequential", "--data", str(path))
    assert main(["prequential", "--data", str(path), "--zero-based"]) == 0
    assert "2 numeric features" in capsys.readouterr().err
