"""Which tests may be skipped, and why: a skip that nobody expects hides what is not tested any more.

Every run prints its skips; one of another reason fails the run.
"""

import re
from collections import Counter

import pytest

ALLOWED = {
    r"nothing is compiled": "the run without compiler (make coverage)",
    r"this is the run without compiler": "the run without compiler",
    r"\d+(,\d+)* records are for compiled code": "the run without compiler",
    r"ten million records are for compiled code": "the run without compiler",
    r".* is not there; .*GROVE_DATASETS.*": "a machine without the data sets, which cannot be redistributed",
    r"no folder of data sets": "a machine without the data sets",
    r"/usr/bin/chromium is not here": "a machine without the browser",
    r"rendering needs kubectl": "a machine without kubectl",
    r"helm is not built: --tier all builds it": "a machine on which the nightly tests have not run",
    r"go is not here": "a machine without Go",
    r"zensical is not installed": "an environment from before the documentation site",
    r"promtool is not here": "a machine without Debian's package prometheus",
    r"docker compose is not installed": "a machine without the plug-in",
    r"label-studio is not installed": "an environment without Label Studio, which needs one of its own",
    r"argilla-server is not installed": "an environment without Argilla, which needs one of its own",
    r"no release is tagged here: .*": "a checkout without tags",
    r"tags cannot be read: .*": "sources that are no git checkout",
    r"peak memory is read from /proc": "a system that is no Linux",
    r"malloc_trim is glibc's": "a system with another C library",
    r"owners of sockets are read from /proc": "a system that is no Linux",
    r"python3\.\d+ is not here": "a machine without that Python",
    r"needs pidfd_open .*": "a system that is no Linux",
    r"file systems cannot be mounted here": "a user who is not root, a container without the right",
    r"the cgroups of (CPU|memory) cannot be written here": "a container without rights on cgroups",
}
"""A pattern of the reason, and where that is so."""


class SkipBudget:
    """Counts the skips of a run by their reasons."""

    def __init__(self) -> None:
        self.reasons: Counter[str] = Counter()

    @property
    def unexpected(self) -> list[str]:
        """The reasons that are not allowed."""
        return [reason for reason in self.reasons if not any(re.fullmatch(a, reason) for a in ALLOWED)]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and isinstance(report.longrepr, tuple):
            self.reasons[report.longrepr[2].removeprefix("Skipped: ")] += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped and isinstance(report.longrepr, tuple):
            self.reasons[report.longrepr[2].removeprefix("Skipped: ")] += 1

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.unexpected and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.reasons:
            terminalreporter.section("skipped")
        for reason, n in sorted(self.reasons.items()):
            terminalreporter.line(f"{n:5} {reason}")
        for reason in self.unexpected:
            problem = f"FAILED: {reason!r} is no reason to skip a test (tests/skips.py)"
            terminalreporter.line(problem, red=True)
