"""A process that collects tests once, and is forked for each mutant: no trial imports or collects again.

It reads what to try as JSON from its standard input and writes a line of JSON for each result to the file
descriptor that its argument names. First all tests run once without a mutant, to measure which of them reach
which lines. A mutant is then run with the tests that reach its line, as many as the budget has seconds for.

    {"tests": [files], "mutants": [[file, line, column, before, after]], "budget": seconds}
    {"mutant": its number, "result": "survived"}
    {"mutant": its number, "result": "import", "tests": [ids], "seconds": theirs}

`import`: the change takes effect only when the module is imported, so it needs a process of its own.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import coverage
import pytest

from tests.mutants.mutation import Mutant
from tests.mutants.swap import LoadedFunctions
from tests.mutants.trial import KILLED, MEMORY, ROOT, SURVIVED, UNREACHED, ended

IMPORT = "import"
OPTIONS = ("-q", "-n", "0", "--tier", "quick", "-p", "no:cacheprovider", "-p", "no:cov")
_LONGEST_S = 3600.0


@dataclass
class _Measured:
    """What a run without a mutant has shown."""

    tests: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    """By file and line: the tests that reach it."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Of the tests that passed: CPU seconds, or a quarter of the time by the clock if that is more."""


class Trials:
    """A plugin of pytest that runs the collected tests once for each mutant, and not once."""

    def __init__(self, request: dict[str, Any], files: Sequence[str], note: Callable[..., None]) -> None:
        self._budget: float = request["budget"]
        self._mutants = [Mutant(*words) for words in request["mutants"]]
        self._note = note
        self._files = files
        self._coverage = self._new_coverage()
        self._coverage.start()  # of what is imported while tests are collected

    def _new_coverage(self) -> coverage.Coverage:
        include = [str(ROOT / file) for file in self._files]
        return coverage.Coverage(data_file=None, include=include, config_file=False)

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Let a property end at its first failure: nobody reads the smallest one."""
        import hypothesis  # not before pytest, which rewrites its assertions

        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        hypothesis.settings.register_profile("mutants", hypothesis.settings(), phases=phases, database=None)
        hypothesis.settings.load_profile("mutants")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._coverage.stop()
        at_import = {
            path: set(self._coverage.get_data().lines(path) or ())
            for path in self._coverage.get_data().measured_files()
        }
        measured = self._measure(session)
        functions = LoadedFunctions()
        texts = {file: (ROOT / file).read_text(encoding="utf-8") for file in self._files}
        for number, mutant in enumerate(self._mutants):
            path = str(ROOT / mutant.file)
            there = measured.tests.get(path, {})
            tests = self._affordable(there.get(mutant.line, ()), measured)
            changes = functions.changes(path, texts[mutant.file], mutant)
            if not changes or mutant.line in at_import.get(path, ()):
                reaching = {test for tests in there.values() for test in tests} or measured.seconds
                tests = self._affordable(reaching, measured)
                seconds = sum(measured.seconds[test] for test in tests)
                self._note(mutant=number, result=IMPORT, tests=tests, seconds=seconds)
            elif not tests:
                self._note(mutant=number, result=UNREACHED)
            else:
                killed = self._try(session, changes, tests, measured)
                self._note(mutant=number, result=KILLED if killed else SURVIVED)
        return True

    def _affordable(self, tests: Any, measured: _Measured) -> list[str]:
        """Return the shortest tests that pass, as many as the budget has seconds for; at least one."""
        passing = sorted((measured.seconds[test], test) for test in tests if test in measured.seconds)
        total = 0.0
        chosen: list[str] = []
        for seconds, test in passing:
            total += seconds
            if chosen and total > self._budget:
                break
            chosen.append(test)
        return chosen

    def _measure(self, session: pytest.Session) -> _Measured:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "measured.json")

            def measure() -> int:
                measuring = self._new_coverage()
                measuring.start()
                seconds: dict[str, float] = {}
                for item, after in zip(session.items, [*session.items[1:], None], strict=True):
                    measuring.switch_context(item.nodeid)
                    failed, begun, cpu = session.testsfailed, time.monotonic(), time.process_time()
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
                    if session.testsfailed == failed:
                        wall, cpu = time.monotonic() - begun, time.process_time() - cpu
                        seconds[item.nodeid] = max(cpu, wall / 4)  # to wait costs others nothing
                measuring.stop()
                data = measuring.get_data()
                lines = {path: data.contexts_by_lineno(path) for path in data.measured_files()}
                file.write_text(json.dumps({"lines": lines, "seconds": seconds}), encoding="utf-8")
                return 0

            code, _ = ended(_forked(measure, _LONGEST_S), _LONGEST_S)
            if code:
                raise SystemExit(f"the tests could not be run without a mutant (exit code {code})")
            body = json.loads(file.read_text(encoding="utf-8"))
        measured = _Measured(seconds=body["seconds"])
        for path, lines in body["lines"].items():
            measured.tests[path] = {int(line): tests for line, tests in lines.items()}
        self._note(
            tests=len(session.items), passed=len(measured.seconds), seconds=sum(measured.seconds.values())
        )
        return measured

    def _try(
        self,
        session: pytest.Session,
        changes: Sequence[tuple[FunctionType, CodeType]],
        tests: list[str],
        measured: _Measured,
    ) -> bool:
        """Run tests with a mutant in a process of their own; return whether it failed or took too long."""
        chosen = set(tests)
        items = [item for item in session.items if item.nodeid in chosen]

        def run() -> int:
            for function, code in changes:
                function.__code__ = code
            for item, after in zip(items, [*items[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
                if session.testsfailed:
                    return 1
            return 0

        cpu, wall = limits(sum(measured.seconds[test] for test in tests))
        code, _ = ended(_forked(run, cpu), wall)
        return code != 0


def limits(seconds: float) -> tuple[float, float]:
    """Return the seconds of CPU and those by the clock that a mutant has for tests that take so many."""
    return 5.0 + 3.0 * seconds, 30.0 + 8.0 * seconds


def _forked(act: Callable[[], int], limit: float) -> int:
    """Start a process that leads a group of its own and ends with what `act` returns; limit: CPU seconds."""
    child = os.fork()
    if child:
        return child
    code = 3
    try:
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 1, int(limit) + 1))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        code = int(act())
    except BaseException:  # noqa: BLE001 the process ends here; its output is .mutants/collected.log
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def main() -> int:
    request = json.load(sys.stdin)
    results = os.fdopen(int(sys.argv[1]), "w", encoding="utf-8")

    def note(**line: object) -> None:
        results.write(json.dumps(line) + "\n")
        results.flush()

    os.chdir(ROOT)
    files = sorted({words[0] for words in request["mutants"]})
    return int(pytest.main([*OPTIONS, *request["tests"]], plugins=[Trials(request, files, note)]))


if __name__ == "__main__":
    sys.exit(main())
