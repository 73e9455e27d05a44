"""`make mutants`: changes core in one place after the other and asks whether a test notices.

Without the compiler, so that a mutant costs no compilation. First the tests are run once under coverage, to
learn which of them reach which line and how long they take; then each mutant meets the tests that reach its
line, the shortest first, until one fails. A mutant is killed by a failure or by taking too long; what no test
notices *survived*. Results are kept in .mutants/ by place and text of the module, so that a run that was
stopped goes on, and only what changed is done again. docs/mutants.md argues about survivors.

`--closest FOLDER …` does the same for topics and streamapp, with the tests that lie closest (`closest`).
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from tests.mutants import closest
from tests.mutants.mutation import Mutant, mutants_of
from tests.mutants.trial import (
    BROKEN,
    KEPT,
    KILLED,
    PATIENCE_S,
    ROOT,
    SURVIVED,
    UNREACHED,
    fork,
    name_of,
    shown,
)

LEFT_OUT = (
    "core/__init__.py",
    "core/*/__init__.py",
    "core/export/*",
    "core/streams/*",
    "core/kernels/jit.py",
)
"""What draws trees, what published bytes judge; and the compiler, which is away here."""

Reached = dict[str, dict[int, list[str]]]


def main() -> int:
    """Run what the command line asks for; 0 however many survive: survivors are to be argued about."""
    options = _parser().parse_args()
    KEPT.mkdir(exist_ok=True)
    if options.closest:
        return closest.run(
            options.closest,
            options.sample or 50,
            options.seed,
            options.seconds,
            options.budget,
            again=options.again,
            flat=options.flat,
            plain=options.plain,
            near=options.near,
        )
    mutants = _mutants(options.files)
    if options.list:
        print("\n".join(mutant.key for mutant in sorted(mutants)))
        return 0
    reached, seconds = _reached(options.fresh)
    results = _read()
    texts = {mutant.file: (ROOT / mutant.file).read_text(encoding="utf-8") for mutant in mutants}
    named = {mutant: name_of(mutant, texts[mutant.file]) for mutant in mutants}
    if options.again:  # survivors of before, with the tests of now
        mutants = [m for m in mutants if results.get(named[m]) == SURVIVED]
        results = {name: result for name, result in results.items() if result != SURVIVED}
    waiting = [m for m in mutants if named[m] not in results]
    _run(waiting, named, texts, reached, seconds, results, options)
    _report([m for m in mutants if named[m] in results], named, texts, results)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make mutants ARGS=", description=__doc__.splitlines()[0])
    parser.add_argument("--files", default="core/*", help="pattern of the modules that are mutated")
    parser.add_argument(
        "--sample", type=int, help="at most so many mutants, drawn by their hash (600; of a folder 50)"
    )
    parser.add_argument("--seconds", type=float, default=1800.0, help="begin no mutant after so long")
    parser.add_argument("--budget", type=float, default=8.0, help="seconds of tests that a mutant meets")
    parser.add_argument("--parallel", type=int, default=2)
    parser.add_argument("--fresh", action="store_true", help="learn anew which tests reach which line")
    parser.add_argument("--again", action="store_true", help="try survivors once more, with the tests of now")
    parser.add_argument(
        "--closest",
        nargs="+",
        metavar="FOLDER",
        help="folders of topics and streamapp, with the closest tests",
    )
    parser.add_argument("--flat", action="store_true", help="without the folders in these folders")
    parser.add_argument("--plain", action="store_true", help="without the compiler: no wait for its cache")
    parser.add_argument("--near", action="store_true", help="only the tests of a module's name and folder")
    parser.add_argument("--seed", type=int, default=1, help="of the sample of each folder")
    parser.add_argument("--list", action="store_true", help="only say which mutants there are")
    return parser


def _mutants(pattern: str) -> list[Mutant]:
    """Return all mutants of the modules that a pattern names, in the order of the sample."""
    mutants = []
    for path in sorted((ROOT / "core").rglob("*.py")):
        file = path.relative_to(ROOT).as_posix()
        left_out = any(fnmatch.fnmatch(file, pattern) for pattern in LEFT_OUT)
        if fnmatch.fnmatch(file, pattern) and not left_out:
            mutants += mutants_of(file, path.read_text(encoding="utf-8"))
    return sorted(mutants, key=lambda mutant: mutant.rank)


def _reached(fresh: bool) -> tuple[Reached, dict[str, float]]:
    """Return the tests that reach each line, and the seconds of each; run them once if that is not known."""
    file = KEPT / "reached.json"
    if fresh or not file.exists():
        _measure(file)
    body = json.loads(file.read_text(encoding="utf-8"))
    lines = {name: {int(n): tests for n, tests in by.items()} for name, by in body["lines"].items()}
    return lines, body["seconds"]


def _measure(file: Path) -> None:
    import coverage

    data = KEPT / "coverage"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--durations=0", "-vv", "--cov=core"]
    command += ["--cov-context=test", "--cov-report=", "--cov-fail-under=0", "@tests/kernels.txt"]
    command += ["@tests/mutants/tests.txt"]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "COVERAGE_FILE": str(data)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"the tests must pass before mutants are tried:\n{done.stdout[-3000:]}")
    durations = re.findall(r"^([\d.]+)s (?:call|setup) +(\S.*)$", done.stdout, re.MULTILINE)
    seconds: Counter[str] = Counter()
    for taken, test in durations:
        seconds[test] += float(taken)  # type: ignore[assignment]
    lines: dict[str, dict[int, list[str]]] = {}
    measured = coverage.CoverageData(str(data))
    measured.read()
    for path in measured.measured_files():
        contexts = measured.contexts_by_lineno(path)
        lines[Path(path).relative_to(ROOT).as_posix()] = {
            line: sorted({context.partition("|")[0] for context in reached if "|run" in context})
            for line, reached in contexts.items()
        }
    file.write_text(json.dumps({"lines": lines, "seconds": seconds}), encoding="utf-8")


def _read() -> dict[str, str]:
    file = KEPT / "results.jsonl"
    if not file.exists():
        return {}
    documents = (json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())
    return {document["mutant"]: document["result"] for document in documents}


def _run(
    waiting: list[Mutant],
    named: dict[Mutant, str],
    texts: dict[str, str],
    reached: Reached,
    seconds: dict[str, float],
    results: dict[str, str],
    options: argparse.Namespace,
) -> None:
    """Try mutants in the order of the sample, some at a time, each in a process forked from this one."""
    _load_what_is_not_core()
    _check_that_tests_pass(reached, seconds)
    begun = time.monotonic()
    running: dict[int, Mutant] = {}
    queue = iter(waiting[: options.sample or 600])
    with (KEPT / "results.jsonl").open("a", encoding="utf-8") as kept:

        def note(mutant: Mutant, result: str) -> None:
            results[named[mutant]] = result
            kept.write(json.dumps({"mutant": named[mutant], "result": result}) + "\n")
            kept.flush()
            if result != KILLED:
                print(f"{result}: {shown(mutant, texts[mutant.file])}", flush=True)

        while True:
            while len(running) < options.parallel and time.monotonic() - begun < options.seconds:
                mutant = next(queue, None)
                if mutant is None:
                    break
                tests, limit = _tests(mutant, reached, seconds, options.budget)
                if tests:
                    running[fork(mutant, texts[mutant.file], tests, limit)] = mutant
                else:
                    note(mutant, UNREACHED)
            if not running:
                return
            child, status = os.wait()
            code, mutant = os.waitstatus_to_exitcode(status), running.pop(child)
            if code in BROKEN:
                raise SystemExit(f"pytest could not run the tests of {mutant.key} (exit code {code})")
            note(mutant, SURVIVED if code == 0 else KILLED)


def _check_that_tests_pass(reached: Reached, seconds: dict[str, float]) -> None:
    """Run some tests as mutants will meet them, without one: they must pass, or nothing would survive."""
    known = {test for by in reached.values() for tests in by.values() for test in tests}
    some = sorted(known, key=lambda test: (seconds.get(test, 0.0), test))[:: max(1, len(known) // 50)]
    _, status = os.waitpid(fork(None, "", some[:40], 300.0), 0)
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit("some tests fail without a mutant; learn anew which reach what (--fresh)")


def _tests(
    mutant: Mutant, reached: Reached, seconds: dict[str, float], budget: float
) -> tuple[list[str], float]:
    """Return the tests for a mutant, the shortest first, and the CPU seconds after which it hangs."""
    there = reached.get(mutant.file, {}).get(mutant.line, [])
    if not there and not _is_in_function(mutant):
        there = sorted({test for tests in reached.get(mutant.file, {}).values() for test in tests})
    chosen: list[str] = []
    total = 0.0
    for test in sorted(there, key=lambda test: (seconds.get(test, 0.0), test)):
        if chosen and total + seconds.get(test, 0.0) > budget:
            break
        chosen.append(test)
        total += seconds.get(test, 0.0)
    return chosen, PATIENCE_S + 5.0 * total


def _is_in_function(mutant: Mutant) -> bool:
    line = (ROOT / mutant.file).read_text(encoding="utf-8").splitlines()[mutant.line - 1]
    return line.startswith(" ")


def _load_what_is_not_core() -> None:
    """Import what takes long, once: each mutant's process then has it."""
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    import numba
    import numpy
    import pytest

    assert all((numba, numpy, pytest))  # not hypothesis, whose assertions pytest means to rewrite
    core_modules = [name for name in sys.modules if name == "core" or name.startswith("core.")]
    assert not core_modules, core_modules


def _report(
    mutants: list[Mutant], named: dict[Mutant, str], texts: dict[str, str], results: dict[str, str]
) -> None:
    for result in (UNREACHED, SURVIVED):
        print(f"\n{result}:")
        for mutant in sorted(mutants):
            if results[named[mutant]] == result:
                print(f"  {shown(mutant, texts[mutant.file])}")
    counts = Counter(results[named[mutant]] for mutant in mutants)
    tried = counts[KILLED] + counts[SURVIVED]
    modules = len({mutant.file for mutant in mutants})
    print(f"\n{len(mutants)} mutants of {modules} modules: {counts[UNREACHED]} unreached,")
    print(f"{counts[KILLED]} of {tried} killed ({counts[KILLED] / max(tried, 1):.1%})")


if __name__ == "__main__":
    sys.exit(main())
