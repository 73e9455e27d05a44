"""`grove models`: what it says of files, and of what cannot be; clusters are for the broker tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamapp.cli.main import main
from tests.golden import exported as golden

FILE = str(golden.files()[-1])


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(list(arguments))
    out, err = capsys.readouterr()
    return status, out, err


def test_two_files_that_are_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "models", "diff", FILE, FILE) == (
        0,
        "no difference in spec, schema, counts and tests\n",
        "",
    )
    assert said(capsys, "models", "diff", FILE, FILE, "--json") == (0, "[]\n", "")


def test_the_tree_of_an_exported_file(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = said(capsys, "tree", FILE)
    assert (status, out.splitlines()[0]) == (0, "all")
    assert "x <= " in out


@pytest.mark.parametrize("command", ["import", "diff"])
def test_a_file_that_is_none_or_damaged_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str
) -> None:
    bad = tmp_path / "bad"
    more = [FILE] if command == "diff" else []
    for data, says in (
        (b"nonsense" * 9, "it is no exported model"),
        (Path(FILE).read_bytes()[:-1], "cut off"),
    ):
        bad.write_bytes(data)
        status, out, err = said(capsys, "models", command, str(bad), *more)
        assert (status, out, err.count("\n")) == (64, "", 1)
        assert says in err
        assert "name a file that 'grove models export' wrote" in err


def test_a_file_that_is_missing_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, _, err = said(capsys, "models", "import", str(tmp_path / "none"))
    assert (status, "No such file" in err) == (64, True)


def test_a_place_that_is_none_is_refused_before_a_broker_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = said(capsys, "models", "rebuild", "--key", "k", "--at", "here")
    assert (status, "--at 'here' must be PARTITION:OFFSET of the topic instances" in err) == (64, True)


def test_without_a_broker_its_address_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = said(capsys, "models", "show", "k", "-b", "127.0.0.1:1")
    assert (status, "127.0.0.1:1" in err, err.count("\n")) == (1, True, 1)


def test_a_model_needs_a_key(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = said(capsys, "models", "import", FILE, "--key", "", "-b", "127.0.0.1:1")
    assert (status, "--key must have at least one character" in err) == (64, True)
