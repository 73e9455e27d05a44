"""Mutants of topics and streamapp, and the tests that lie closest to their modules.

A sample of each folder, and of each folder in it, is drawn by a seed. The closest tests of a module are those
of its name, in the folder of tests that mirrors its own or in tests/topology, and those that import or name
the module, or a helper of tests that does. Where there are neither, they are those of the mirrored folder, or
of the nearest one above that has any. One process collects the closest tests of all modules of the samples,
and the tests of the folder that mirrors the named one (tests/mutants/collected.py).
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tests.mutants.collected import IMPORT, OPTIONS, limits
from tests.mutants.mutation import Mutant, mutants_of
from tests.mutants.trial import (
    BROKEN,
    KEPT,
    KILLED,
    PATIENCE_S,
    ROOT,
    SURVIVED,
    UNREACHED,
    ended,
    fork,
    name_of,
    shown,
)

_UNIT = ROOT / "tests" / "unit"
_PLACES = ("tests/unit/topics", "tests/unit/streamapp", "tests/topology")
_SLOWER = ("tests/contract", "tests/property")
"""Places whose tests are taken for a module that no other test names."""
_RESULTS = (KILLED, SURVIVED, UNREACHED)
_Named = tuple[str, Mutant, str]
"""A mutant with the key of its result and its module's text."""


def run(
    folders: Sequence[str],
    sample: int,
    seed: int,
    seconds: float,
    budget: float,
    *,
    again: bool,
    flat: bool,
    plain: bool,
    near: bool,
) -> int:
    """Try a sample of each folder's mutants; print survivors, and a table of all that was tried.

    again: survivors are tried again. flat: without the folders in these folders. plain: without the compiler.
    near: without tests that only import or name a module.
    """
    for slow in ("numba", "numpy", "pytest"):
        importlib.import_module(slow)  # once: the process of a mutant that is imported has it then
    file = KEPT / "closest.jsonl"
    results = _read(file)
    begun = time.monotonic()
    rows = []
    with file.open("a", encoding="utf-8") as kept:
        for top in folders:
            samples = {
                folder: _sample(folder, sample, seed) for folder in ([top] if flat else _with_modules(top))
            }
            done = (KILLED,) if again else _RESULTS
            waiting = [
                each for named in samples.values() for each in named if results.get(each[0]) not in done
            ]
            compiled = [each for each in waiting if not (plain or _has_kernels(each[2]))]
            for group in (compiled, [each for each in waiting if each not in compiled]):
                if group and time.monotonic() - begun < seconds:
                    for (key, mutant, _), result in _tried(
                        top, group, budget, compiled=group is compiled, flat=flat, near=near
                    ):
                        results[key] = result
                        line = {"mutant": key, "line": mutant.line, "result": result}
                        kept.write(json.dumps(line) + "\n")
                        kept.flush()
            for folder, mutants in samples.items():
                for key, mutant, text in mutants:
                    if results.get(key) in (SURVIVED, UNREACHED):
                        print(f"{results[key]}: {shown(mutant, text)}", flush=True)
                counts = Counter(results[key] for key, _, _ in mutants if key in results)
                if counts:
                    rows.append(
                        (folder, sum(counts.values()), *(counts[result_name] for result_name in _RESULTS))
                    )
    for row in [("folder", "places", *_RESULTS), *rows]:
        print("| " + " | ".join(map(str, row)) + " |")
    return 0


def _has_kernels(text: str) -> bool:
    """Whether a module's changes must be tried without the compiler: its cache has the code of the file."""
    return bool(re.search(r"^(from|import) .*\b(numba|core\.kernels)\b", text, re.MULTILINE))


def _tried(
    top: str, mutants: Sequence[_Named], budget: float, *, compiled: bool, flat: bool, near: bool
) -> Iterator[tuple[_Named, str]]:
    """Run the closest tests of a folder with each of its mutants; yield each with its result."""
    stages = {file: closest_tests(file) for file in {mutant.file for _, mutant, _ in mutants}}
    pattern = "test_*.py" if flat else "**/test_*.py"
    beside = {path.relative_to(ROOT).as_posix() for path in (_UNIT / top).glob(pattern)}
    for file, stage in stages.items():
        named = f"test_{Path(file).stem}"
        beside.update(
            test for files in stage for test in files if not near or Path(test).stem.startswith(named)
        )
    tests = sorted(beside)
    if not tests:
        yield from ((mutant, UNREACHED) for mutant in mutants)
        return
    fields = [[m.file, m.line, m.column, m.before, m.after] for _, m, _ in mutants]
    request = {"tests": tests, "mutants": fields, "budget": budget}
    for line in _answers(request, compiled):
        if "mutant" not in line:
            print(f"{line['passed']} of {line['tests']} tests passed in {line['seconds']:.0f} s", flush=True)
            continue
        key, mutant, text = mutants[line["mutant"]]
        result = line["result"]
        if result == IMPORT:
            result = _try(mutant, text, line["tests"], line["seconds"], compiled)
        yield (key, mutant, text), result


def _answers(request: dict[str, Any], compiled: bool) -> Iterator[dict[str, Any]]:
    """Yield what the process of the collected tests writes."""
    reading, writing = os.pipe()
    environment = os.environ | ({} if compiled else {"NUMBA_DISABLE_JIT": "1"})
    command = [sys.executable, "-m", "tests.mutants.collected", str(writing)]
    with (KEPT / "collected.log").open("w") as log:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            pass_fds=[writing],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            text=True,
        )
    os.close(writing)
    assert process.stdin is not None
    with process, os.fdopen(reading, encoding="utf-8") as answers:
        process.stdin.write(json.dumps(request))
        process.stdin.close()
        count = 0
        for line in map(json.loads, answers):
            count += "mutant" in line
            yield line
    if count < len(request["mutants"]):
        raise SystemExit(f"only {count} mutants could be tried, see {KEPT / 'collected.log'}")


def _try(mutant: Mutant, text: str, tests: Sequence[str], seconds: float, compiled: bool) -> str:
    """Import a mutant in a process of its own and run the tests that the measured ones name."""
    if not tests:
        return UNREACHED
    files = sorted({test.partition("::")[0] for test in tests})
    cpu, wall = limits(seconds)
    child = fork(mutant, text, files, cpu + PATIENCE_S, only=set(tests), options=OPTIONS, compiled=compiled)
    code, _ = ended(child, wall + PATIENCE_S)
    if code in BROKEN and code != BROKEN[0]:
        raise SystemExit(f"pytest could not run the tests of {mutant.key} (exit code {code})")
    return SURVIVED if code == 0 else KILLED


def _read(file: Path) -> dict[str, str]:
    if not file.exists():
        return {}
    lines = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return {line["mutant"]: line["result"] for line in lines}


def _with_modules(folder: str) -> list[str]:
    """Return a folder and those inside of it that have modules."""
    inside = {path.parent for path in (ROOT / folder).rglob("*.py") if path.stem != "__init__"}
    return sorted(path.relative_to(ROOT).as_posix() for path in inside)


def _sample(folder: str, sample: int, seed: int) -> list[_Named]:
    """Return the first mutants of a folder's modules in an order drawn by the seed."""
    mutants = []
    for path in sorted((ROOT / folder).glob("*.py")):
        text = path.read_text(encoding="utf-8")
        file = path.relative_to(ROOT).as_posix()
        mutants += [(mutant, text) for mutant in mutants_of(file, text, statements=True)]
    mutants.sort(key=lambda each: hashlib.sha256(f"{seed}:{each[0].key}".encode()).hexdigest())
    return [(name_of(mutant, text), mutant, text) for mutant, text in mutants[:sample]]


def _mentioning(mention: re.Pattern[str], places: Sequence[str]) -> set[Path]:
    """Return the tests in which a pattern is found, or which import a helper of tests with it."""
    texts = {
        path: path.read_text(encoding="utf-8") for place in places for path in (ROOT / place).rglob("*.py")
    }
    mentioning = {path for path, text in texts.items() if mention.search(text)}
    helpers = [path for path in mentioning if not path.name.startswith("test_")]
    for helper in helpers:  # tests of the module reach it by this helper
        name = re.compile(rf"\b{re.escape('.'.join(helper.relative_to(ROOT).with_suffix('').parts))}\b")
        mentioning |= {path for path, text in texts.items() if name.search(text)}
    return {path for path in mentioning if path.name.startswith("test_")}


@cache
def closest_tests(file: str) -> tuple[tuple[str, ...], ...]:
    """Return the files of the tests that lie closest to a module, in the order in which they are tried."""
    module = Path(file).with_suffix("")
    mirrored = _UNIT / module.parent
    named = {*mirrored.glob(f"test_{module.name}.py"), *mirrored.glob(f"test_{module.name}_*.py")}
    named.update((ROOT / "tests" / "topology").glob(f"test_{module.name}.py"))
    full, package = re.escape(".".join(module.parts)), re.escape(".".join(module.parent.parts))
    mention = re.compile(rf"\b{full}\b|^\s*from {package} import .*\b{module.name}\b", re.MULTILINE)
    mentioning = _mentioning(mention, _PLACES) - named
    if not (named or mentioning):
        mentioning = _mentioning(mention, _SLOWER)
    above: set[Path] = set()
    name = module.name
    while not (named or mentioning or above) and mirrored != _UNIT:
        above = set(mirrored.glob(f"test_{name}*.py")) or set(mirrored.rglob("test_*.py"))
        name, mirrored = mirrored.name, mirrored.parent
    stages = (named, mentioning, above)
    return tuple(
        tuple(sorted(path.relative_to(ROOT).as_posix() for path in stage)) for stage in stages if stage
    )
