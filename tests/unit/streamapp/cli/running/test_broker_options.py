"""`grove broker`: options that cannot be right are refused before anything starts."""

from __future__ import annotations

import pytest

from streamapp.cli.main import main


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--nodes", "2"], "--nodes 2 must be odd"),
        (["--nodes", "11"], "--nodes"),
        (["--nodes", "3", "--port", "65534"], "--port 65534 must be at most 65533 with --nodes 3"),
    ],
)
def test_wrong_options_are_named(words: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["broker", *words]) == 64
    assert text in capsys.readouterr().err
