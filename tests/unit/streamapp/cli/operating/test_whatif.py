"""`grove whatif`: mistakes that are found before a broker is asked."""

from __future__ import annotations

import time

import pytest

from streamapp.cli.main import main
from streamapp.cli.operating.whatif import milliseconds
from streamapp.errors import UsageError

NOWHERE = ("-b", "127.0.0.1:1")


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    status = main(["whatif", *arguments, *NOWHERE])
    _, err = capsys.readouterr()
    return status, err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--spec", "hat"), "Missing option '--key'"),
        (("--key", "k"), "Missing option '--spec'"),
        (("--key", "", "--spec", "hat"), "--key must have at least one character"),
        (("--key", "k", "--spec", "hat", "--since", "soon"), "--since soon must be a time such as 2026-"),
        (
            ("--key", "k", "--spec", "hat", "--since", "5w"),
            "a duration before now, such as 90m",
        ),
        (("--key", "k", "--spec", "oak"), "unknown learner 'oak'"),
        (("--key", "k", "--spec", '{"query": "rate", "budget": {"limit": 2}}'), "limit=2"),
        (("--key", "k", "--spec", "@nowhere.json"), "--spec @nowhere.json: cannot read the file"),
    ],
)
def test_a_mistake_is_one_line(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], says: str
) -> None:
    status, err = said(capsys, *arguments)
    assert (status, err.count("\n")) == (64, 1), err
    assert says in err


def test_a_time_or_a_duration_before_now() -> None:
    assert milliseconds(None) is None
    assert milliseconds("2026-11-22T18:00:00+01:00") == 1_795_366_800_000
    for text, seconds in (("45s", 45), ("90m", 5400), ("24h", 86_400), ("7d", 604_800)):
        earliest = time.time_ns() // 1_000_000 - 1000 * seconds
        found = milliseconds(text)
        assert found is not None
        assert earliest - 1 <= found <= time.time_ns() // 1_000_000 - 1000 * seconds + 1
    with pytest.raises(UsageError):
        milliseconds("")
