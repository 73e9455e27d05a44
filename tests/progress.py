"""How far a run is whose output goes into a file: ten lines, instead of a letter for each test that passed.

The record of a CI keeps the end of an output, and what has to be there is what failed.
"""

import time
from typing import Any

import pytest

LINES = 10
LEAST = 50  # tests; fewer are done before anybody asks


class Progress:
    """Writes a line at each tenth of the tests, and letters only of those that failed."""

    def __init__(self, terminal: pytest.TerminalReporter, session: pytest.Session) -> None:
        self._terminal, self._session = terminal, session
        self._began = time.monotonic()
        self._done: set[str] = set()
        self._said = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: Any) -> tuple[str, str, str] | None:
        if hasattr(report, "wasxfail"):
            return None
        if report.skipped:
            return "skipped", "", "SKIPPED"
        return ("passed", "", "PASSED") if report.passed and report.when == "call" else None

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._done.add(nodeid)
        done, collected = len(self._done), self._session.testscollected
        if collected < LEAST or done * LINES // collected == self._said:
            return
        self._said = done * LINES // collected
        failed = sum(len(self._terminal.stats.get(outcome, ())) for outcome in ("failed", "error"))
        seconds = time.monotonic() - self._began
        if self._terminal._tw.width_of_current_line:
            self._terminal.line("")
        self._terminal.currentfspath = None
        self._terminal.line(f"{done} of {collected} tests after {seconds:.0f} s, {failed} failed")


def begin(session: pytest.Session) -> None:
    """Show a run so if nobody looks on and nobody has asked for a line of each test."""
    config = session.config
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if isinstance(terminal, pytest.TerminalReporter) and not terminal.isatty and config.get_verbosity() <= 0:
        config.pluginmanager.register(Progress(terminal, session))
