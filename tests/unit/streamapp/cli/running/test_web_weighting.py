"""`grove web`: `--weighted` with and without a value, and reasons to decline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamapp.cli.main import main
from streamapp.cli.running.web_options import decline_reasons_of


@pytest.mark.parametrize(
    ("options", "weighted"),
    [
        ([], "majority"),
        (["--weighted"], "share"),
        (["--weighted", "--port", "0"], "share"),
        (["--weighted", "share"], "share"),
        (["--weighted", "quality"], "quality"),
        (["--weighted=quality"], "quality"),
        (["--majority"], "majority"),
    ],
)
def test_the_value_may_be_left_out(
    options: list[str], weighted: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plans: list[Any] = []
    monkeypatch.setattr("streamapp.web.application.run_web", lambda plan, *_: plans.append(plan))
    state = ["--state", str(tmp_path / "web.sqlite")]
    assert main(["web", *options, *state, "--bootstrap-servers", "127.0.0.1:1"]) == 0
    assert plans[0].terms.weighted == weighted


def test_another_value_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["web", "--weighted", "often"]) == 64
    assert "--weighted often must be majority, share or quality" in capsys.readouterr().err


def test_many_reasons_are_no_name_of_a_file() -> None:
    reasons = [f"{number}: {'unreadable ' * 6}".strip() for number in range(20)]
    assert decline_reasons_of(",".join(reasons)) == tuple(reasons)
