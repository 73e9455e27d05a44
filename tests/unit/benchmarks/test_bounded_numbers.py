"""Programs of operators refuse numbers that make no sense, before anything starts."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from benchmarks.scaling import costs_of


@pytest.mark.parametrize(
    ("program", "words", "text"),
    [
        ("soak.__main__:parse", "--seconds nan", "--seconds: nan must be at least 1.0 and finite"),
        ("soak.__main__:parse", "--rate inf", "--rate: inf must be at least 0.001 and finite"),
        ("soak.__main__:parse", "--models 0", "--models: 0 must be at least 1"),
        ("chaos.__main__:parse", "--brokers 3 --workers 0", "--workers: 0 must be at least 1"),
        ("chaos.__main__:parse", "--rate 0", "--rate: 0 must be at least 0.001"),
        ("chaos.__main__:parse", "--seconds many", "--seconds: 'many' must be a number"),
        ("versions.__main__:parse", "--seconds -1", "--seconds: -1 must be at least 1.0"),
        ("scaling:arguments", "--share 0", "--share: 0 must be from 0.01 to 1.0"),
        ("scaling:arguments", "--share nan", "--share: nan must be from 0.01 to 1.0"),
        ("scaling:arguments", "--records 0", "--records: 0 must be at least 1"),
        ("scaling:arguments", "--models 0", "--models: 0 must be at least 1"),
        ("scaling:arguments", "--zipf nan", "--zipf: nan must be from 0.0 to 5.0"),
        ("scaling:arguments", "--commit-ms 0", "--commit-ms: 0 must be at least 1"),
        ("outages:arguments", "--turns 0", "--turns: 0 must be at least 1"),
    ],
)
def test_a_number_out_of_bounds_is_named(
    program: str, words: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    module, name = program.split(":")
    with pytest.raises(SystemExit) as ended:
        getattr(importlib.import_module(f"benchmarks.{module}"), name)(words.split())
    assert ended.value.code == 2
    assert text in capsys.readouterr().err


def test_costs_that_cannot_be_read_end_the_program() -> None:
    with pytest.raises(SystemExit, match="--costs /missing cannot be read"):
        costs_of(Path("/missing"))
