"""The command line of the pipeline's benchmark; what it measures: tests/broker/test_pipeline_benchmark.py."""

import sys

import pytest

from benchmarks import pipeline


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--with", "loop", "--format", "arrow"], "loop has json, packed"),
        (["--with", "river", "--guarantees", "exactly_once"], "river has at_least_once"),
        (["--without-us"], "name peers with --with"),
        (["--guarantees", "perhaps"], "known are at_least_once, exactly_once"),
        (["--compat", "moa", "--spec", "{}"], "write it there"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    """Before a broker is looked for and a kernel is compiled."""
    monkeypatch.setattr(sys, "argv", ["benchmarks.pipeline", *words])
    with pytest.raises(SystemExit) as ended:
        pipeline.main()
    assert ended.value.code == 2
    assert says in capsys.readouterr().err
