"""The frame of the experiments: cells that are kept, reports that are written, charts that can be read."""

import csv
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from streamapp.cli.main import main
from streamapp.errors import UsageError
from streamapp.lab.experiments import base, conduct, kept
from streamapp.lab.experiments.chart import Axis, Chart, Line

CHART = Chart("a < b", Axis("x", log=True), Axis("y"), (Line("one", ((1, 2.0), (8, 3.5))), Line("none", ())))


@pytest.fixture
def squares(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """An experiment that squares three numbers, and writes down what it has squared."""
    ran: list[int] = []
    interruptions = [False] * 4 + [True]

    def run(cell: dict[str, Any]) -> dict[str, Any]:
        if cell["number"] == 3 and interruptions.pop():
            raise KeyboardInterrupt
        ran.append(cell["number"])
        return {"square": cell["number"] ** 2}

    made = SimpleNamespace(
        TITLE="squares",
        cells=lambda size, data: [{"number": n, "size": size} for n in (1, 2, 3)],
        run=run,
        report=lambda rows: base.Report(tables={"squares": list(rows)}, charts={"chart": CHART}),
    )
    monkeypatch.setattr(conduct, "experiment", lambda name: made)
    return ran


def test_what_was_interrupted_goes_on_where_it_stopped(squares: list[int], tmp_path: Path) -> None:
    done: list[tuple[int, int]] = []
    with pytest.raises(KeyboardInterrupt):
        conduct.conduct("squares", "quick", tmp_path)
    report = conduct.conduct("squares", "quick", tmp_path, advance=lambda n, total: done.append((n, total)))
    assert squares == [1, 2, 3]
    assert done == [(2, 3), (1, 3)]
    assert [row["square"] for row in report.tables["squares"]] == [1, 4, 9]
    conduct.conduct("squares", "quick", tmp_path, fresh=True)
    assert squares == [1, 2, 3, 1, 2, 3]
    conduct.conduct("squares", "full", tmp_path)
    assert len(squares) == 9, "another size is another cell"


def test_results_are_written_as_csv_json_and_drawings(squares: list[int], tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        conduct.conduct("squares", "quick", tmp_path)
    conduct.conduct("squares", "quick", tmp_path)
    place = tmp_path / "squares-quick"
    with (place / "squares.csv").open(encoding="utf-8") as file:
        assert [row["square"] for row in csv.DictReader(file)] == ["1", "4", "9"]
    document = json.loads((place / "results.json").read_text(encoding="utf-8"))
    assert document["cells"][2] == {"number": 3, "size": "quick", "square": 9}
    assert document["tables"]["squares"] == document["cells"]
    assert "| 3 | quick | 9 |" in (place / "results.md").read_text(encoding="utf-8")
    drawing = ElementTree.parse(place / "chart.svg").getroot()
    texts = [text.text for text in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert {"a < b", "one", "x", "y", "1", "8"} <= set(texts)
    assert "none" not in texts, "a line without a point"


def test_the_same_lines_make_the_same_bytes_and_names_are_no_formulas() -> None:
    chart = Chart("$x_1$", Axis("x"), Axis("y"), (Line("$b$", ((0, 1.0), (1, 1e6))),))
    drawing = chart.to_svg()
    assert drawing == chart.to_svg()
    assert all(f">{text}</text>" in drawing for text in ("$x_1$", "$b$", "200,000"))


def test_without_matplotlib_the_tables_are_written_and_what_is_missing_is_said(
    squares: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(base, "names", lambda: ("squares",))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(KeyboardInterrupt):
        conduct.conduct("squares", "quick", tmp_path)
    assert main(["experiment", "squares", "--quick", "--output", str(tmp_path)]) == 0
    written = {path.name for path in (tmp_path / "squares-quick").iterdir()}
    assert written == {"cells", "squares.csv", "results.json", "results.md"}
    assert "grove: no chart is drawn: matplotlib is not installed; for charts, end" in capsys.readouterr().err


def test_one_point_is_a_chart_too() -> None:
    ElementTree.fromstring(Chart("", Axis("x"), Axis("y"), (Line("one", ((3, 3.0),)),)).to_svg())
    ElementTree.fromstring(Chart("", Axis("x"), Axis("y"), ()).to_svg())


def test_an_unknown_experiment_names_the_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment", "cdt-figure9"]) == 64
    error_text = capsys.readouterr().err
    assert "unknown experiment 'cdt-figure9'; known: " in error_text
    assert "vfs-table2" in error_text


def test_every_experiment_is_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment", "--help"]) == 0
    help_text = capsys.readouterr().out
    assert all(name in help_text for name in base.names())
    assert all(base.experiment(name).TITLE for name in base.names())


def test_several_processes_do_what_one_does(tmp_path: Path) -> None:
    one = conduct.conduct("vfs-table1", "quick", tmp_path / "one")
    two = conduct.conduct("vfs-table1", "quick", tmp_path / "two", jobs=2)
    assert one == two


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"cell": {}}', '{"results": 3}', '{"results": {}}', "\udcff"]
)
def test_a_kept_cell_that_is_none_is_named(squares: list[int], tmp_path: Path, content: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        conduct.conduct("squares", "quick", tmp_path)
    (path, *_) = (tmp_path / "squares-quick" / "cells").iterdir()
    path.write_text(content, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(UsageError, match=rf"{path.name} must hold the results of a cell; delete it"):
        conduct.conduct("squares", "quick", tmp_path)
    conduct.conduct("squares", "quick", tmp_path, fresh=True)


def test_a_kept_cell_that_was_edited_is_named(squares: list[int], tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        conduct.conduct("squares", "quick", tmp_path)
    path = cell_of(tmp_path, 2)
    path.write_text(path.read_text(encoding="utf-8").replace("4", "5"), encoding="utf-8")
    with pytest.raises(UsageError, match=rf"{path.name} must hold the results of a cell; delete it"):
        conduct.conduct("squares", "quick", tmp_path)


def test_a_folder_in_place_of_a_kept_cell_is_named(squares: list[int], tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        conduct.conduct("squares", "quick", tmp_path)
    path = cell_of(tmp_path, 2)
    path.unlink()
    path.mkdir()
    with pytest.raises(UsageError, match=rf"{path.name} must hold the results of a cell; delete it"):
        conduct.conduct("squares", "quick", tmp_path)


@pytest.mark.parametrize("made_by", ["other code", "code that kept no version"])
def test_a_cell_of_other_code_is_run_again_and_told_of(
    squares: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made_by: str
) -> None:
    outdated_cells: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        conduct.conduct("squares", "quick", tmp_path)
    if made_by == "other code":
        monkeypatch.setattr(conduct, "code_version", lambda: "another")
    else:
        old = {"cell": {"number": 2, "size": "quick"}, "results": {"square": 5}}
        cell_of(tmp_path, 2).write_text(json.dumps(old), encoding="utf-8")
    report = conduct.conduct("squares", "quick", tmp_path, outdated=outdated_cells.append)
    assert [row["square"] for row in report.tables["squares"]] == [1, 4, 9]
    again = [1, 2, 3] if made_by == "other code" else [2, 3]
    assert (squares, outdated_cells) == ([1, 2, *again], [len(again) - 1])
    conduct.conduct("squares", "quick", tmp_path, outdated=outdated_cells.append)
    assert (len(squares), len(outdated_cells)) == (2 + len(again), 1), "now they are kept"


def test_the_version_of_the_code_is_that_of_what_results_depend_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "streamapp" / "lab" / "experiments"
    home.mkdir(parents=True)
    monkeypatch.setattr(kept, "__file__", str(home / "kept.py"))
    monkeypatch.setattr(kept, "SOURCES", ("streamapp/lab/experiments",))
    versions = []
    for name, text in (("sea.py", "1"), ("sea.py", "2"), ("chart.py", "1"), ("led.py", "2")):
        (home / name).write_text(text, encoding="utf-8")
        versions.append(kept.code_version.__wrapped__())
    assert len(set(versions)) == 3
    assert versions[1] == versions[2], "how a chart is drawn changes no result"


def cell_of(folder: Path, number: int) -> Path:
    """Return the file of the cell with a number."""
    paths = (folder / "squares-quick" / "cells").iterdir()
    (path,) = (p for p in paths if json.loads(p.read_text(encoding="utf-8"))["cell"]["number"] == number)
    return path


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--jobs", "0"], "--jobs"),
        (["--jobs", "two"], "must be a valid integer"),
        (["--jobs", "1.5"], "must be a valid integer"),
        (["--size", "huge"], "'huge' is not one of 'quick', 'medium', 'full'"),
        (["--quick", "--size", "full"], "--quick is --size quick; it cannot be given with --size full"),
        (["--quick", "--quick=1"], "--quick"),
        (["--output", "FILE"], "--output FILE must be a folder that can be written: Not a directory"),
        (["--output", "FILE/below"], "must be a folder that can be written"),
        (["--output", "/proc/nobody"], "must be a folder that can be written"),
        (["--datasets", "FILE"], "--datasets FILE must be a folder with some of a9a.gz"),
        (["--datasets", "/nowhere"], "--datasets /nowhere must be a folder with some of a9a.gz"),
    ],
)
def test_mistakes_in_options_name_them(
    options: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("FILE").write_text("", encoding="utf-8")
    assert main(["experiment", "cdt-table1", *options]) == 64
    assert said in capsys.readouterr().err


def test_a_file_that_is_no_data_set_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "elecNormNew.arff.gz").write_text("hello", encoding="utf-8")
    given = ["--datasets", str(tmp_path), "--output", str(tmp_path)]
    assert main(["experiment", "cdt-table1", "--quick", *given]) == 64
    problem = f"{tmp_path / 'elecNormNew.arff.gz'}: has no rows below its header"
    assert problem in capsys.readouterr().err
