"""Minutes of a run by folder of tests: where the time of the gate goes."""

from collections import defaultdict
from pathlib import PurePath

import pytest

DEPTH = 3
"""Folders of a path that count as one place: `tests/unit/core`."""


class Minutes:
    """Adds up set-up, call and tear-down of every test; tests in parallel processes add up as well."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        folders = PurePath(report.nodeid.partition("::")[0]).parent.parts[:DEPTH]
        self.seconds["/".join(folders)] += report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.seconds:
            return
        terminalreporter.section("minutes by folder, summed over processes")
        for folder, seconds in sorted(self.seconds.items(), key=lambda item: -item[1]):
            terminalreporter.line(f"{seconds / 60:6.1f} {folder}")
        terminalreporter.line(f"{sum(self.seconds.values()) / 60:6.1f} all")
