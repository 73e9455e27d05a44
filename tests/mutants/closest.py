"""Mutants of topics and streamapp, and the tests that lie closest to their modules.

A sample of each folder is drawn by a seed. The closest tests of a module are those of its name in the folder
of tests that mirrors its own, or in tests/topology; a mutant that survives them meets those that import or
name the module, or a helper of tests that does. Where there are neither, it meets those of the mirrored
folder, or of the nearest one above that has any.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from tests.mutants.mutation import Mutant, mutants_of
from tests.mutants.trial import BROKEN, KEPT, KILLED, ROOT, SURVIVED, UNREACHED, fork, name_of, shown

PATIENCE_S = 10.0
"""CPU seconds that a mutant has beside five times what the tests take without one."""
WALL = 30.0
"""How many times longer that may take by the clock: the machine may have other work."""
BROKEN_TESTS = "tests fail without it"

_UNIT = ROOT / "tests" / "unit"
_PLACES = ("tests/unit", "tests/topology", "tests/contract")


def run(folders: Sequence[str], sample: int, seed: int, seconds: float, again: bool) -> int:
    """Try a sample of each folder's mutants; print survivors, and a table of all that was tried."""
    for slow in ("numba", "numpy", "pytest"):
        importlib.import_module(slow)  # once: the process of each mutant has it then
    file = KEPT / "closest.jsonl"
    results = _read(file)
    begun = time.monotonic()
    rows = []
    with file.open("a", encoding="utf-8") as kept:
        for folder in _with_modules(folders):
            counts: Counter[str] = Counter()
            for mutant, text in _sample(folder, sample, seed):
                key = name_of(mutant, text)
                result = results.get(key)
                if result is None or (again and result == SURVIVED):
                    if time.monotonic() - begun > seconds:
                        continue
                    result = _try(mutant, text)
                    kept.write(json.dumps({"mutant": key, "line": mutant.line, "result": result}) + "\n")
                    kept.flush()
                counts[result] += 1
                if result != KILLED:
                    print(f"{result}: {shown(mutant, text)}", flush=True)
            if counts:
                rows.append((folder, *(counts[each] for each in (KILLED, SURVIVED, UNREACHED, BROKEN_TESTS))))
    for row in [("folder", KILLED, SURVIVED, UNREACHED, BROKEN_TESTS), *rows]:
        print("| " + " | ".join(map(str, row)) + " |")
    return 0


def _read(file: Path) -> dict[str, str]:
    if not file.exists():
        return {}
    lines = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return {each["mutant"]: each["result"] for each in lines}


def _with_modules(folders: Sequence[str]) -> Iterator[str]:
    """Yield the folders and those inside of them that have modules."""
    for folder in folders:
        inside = {path.parent for path in (ROOT / folder).rglob("*.py") if path.stem != "__init__"}
        yield from sorted(path.relative_to(ROOT).as_posix() for path in inside)


def _sample(folder: str, sample: int, seed: int) -> list[tuple[Mutant, str]]:
    """Return the first mutants of a folder's modules in an order drawn by the seed, with their texts."""
    mutants = []
    for path in sorted((ROOT / folder).glob("*.py")):
        text = path.read_text(encoding="utf-8")
        file = path.relative_to(ROOT).as_posix()
        mutants += [(mutant, text) for mutant in mutants_of(file, text, statements=True)]
    mutants.sort(key=lambda each: hashlib.sha256(f"{seed}:{each[0].key}".encode()).hexdigest())
    return mutants[:sample]


def _try(mutant: Mutant, text: str) -> str:
    """Let a mutant meet its tests, the closest first; return what became of it."""
    result = UNREACHED
    for tests in closest_tests(mutant.file):
        cpu, code = _without_mutant(tests)
        if code != 0:
            return BROKEN_TESTS
        limit = PATIENCE_S + 5 * cpu
        code, _ = _ended(fork(mutant, text, tests, limit, WALL * limit))
        if code in BROKEN:
            message = f"pytest could not run the tests of {mutant.key} (exit code {code})"
            raise SystemExit(message)
        if code != 0:
            return KILLED
        result = SURVIVED
    return result


@cache
def _without_mutant(tests: tuple[str, ...]) -> tuple[float, int]:
    """Return the CPU seconds that tests take as the code is, and their exit code."""
    code, cpu = _ended(fork(None, "", tests, 3600.0, 3600.0))
    return cpu, code


def _ended(child: int) -> tuple[int, float]:
    """Wait for a process, end what it has left behind; return its exit code and its CPU seconds."""
    _, status, usage = os.wait4(child, 0)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime


@cache
def closest_tests(file: str) -> tuple[tuple[str, ...], ...]:
    """Return the files of the tests that lie closest to a module, in the order in which they are tried."""
    module = Path(file).with_suffix("")
    mirrored = _UNIT / module.parent
    named = {*mirrored.glob(f"test_{module.name}.py"), *mirrored.glob(f"test_{module.name}_*.py")}
    named.update((ROOT / "tests" / "topology").glob(f"test_{module.name}.py"))
    full, package = re.escape(".".join(module.parts)), re.escape(".".join(module.parent.parts))
    mention = re.compile(rf"\b{full}\b|^\s*from {package} import .*\b{module.name}\b", re.MULTILINE)
    texts = {
        path: path.read_text(encoding="utf-8") for place in _PLACES for path in (ROOT / place).rglob("*.py")
    }
    mentioning = {path for path, text in texts.items() if mention.search(text)}
    rigs = [path for path in mentioning if not path.name.startswith("test_")]
    for rig in rigs:  # tests of the module reach it by this helper
        helper = re.compile(rf"\b{re.escape('.'.join(rig.relative_to(ROOT).with_suffix('').parts))}\b")
        mentioning |= {path for path, text in texts.items() if helper.search(text)}
    mentioning = {path for path in mentioning if path.name.startswith("test_")} - named
    above: set[Path] = set()
    name = module.name
    while not (named or mentioning or above) and mirrored != _UNIT:
        above = set(mirrored.glob(f"test_{name}*.py")) or set(mirrored.rglob("test_*.py"))
        name, mirrored = mirrored.name, mirrored.parent
    stages = (named, mentioning, above)
    return tuple(
        tuple(sorted(path.relative_to(ROOT).as_posix() for path in stage)) for stage in stages if stage
    )
