"""Trial of a mutant: the tests in a process of its own, which has the changed module from memory."""

from __future__ import annotations

import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import resource
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.mutants.mutation import Mutant

ROOT = Path(__file__).parents[2]
KEPT = ROOT / ".mutants"
MEMORY = 6 << 30
BROKEN = (3, 4, 5)  # an error of pytest itself, of its arguments, no test: says nothing about a mutant
KILLED, SURVIVED, UNREACHED = "killed", "survived", "unreached"


def name_of(mutant: Mutant, text: str) -> str:
    """Return the key of a mutant's result: line and surroundings, so that edits elsewhere do not matter."""
    lines = text.splitlines()
    near = "\n".join(lines[max(0, mutant.line - 4) : mutant.line + 3])
    mark = hashlib.sha256(near.encode()).hexdigest()[:12]
    return f"{mutant.file}:{mark}:{mutant.column}:{mutant.before}:{mutant.after}"


def shown(mutant: Mutant, text: str) -> str:
    """Return place, change and line of a mutant."""
    line = text.splitlines()[mutant.line - 1].strip()
    return f"{mutant.file}:{mutant.line}:{mutant.column} {mutant.before!r} → {mutant.after!r}: {line}"


class _Mutated(importlib.abc.MetaPathFinder):
    """Finds the one module that is changed, and has its text from memory."""

    def __init__(self, mutant: Mutant, text: str) -> None:
        parts = Path(mutant.file).with_suffix("").parts
        self._name = ".".join(parts)
        self._path = str(ROOT / mutant.file)
        self._text = mutant.apply(text)

    def find_spec(
        self, name: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self._name:
            return None
        text = self._text

        class Loader(importlib.machinery.SourceFileLoader):
            def get_code(self, fullname: str) -> object:  # type: ignore[override]
                return compile(text, self.path, "exec")

        return importlib.util.spec_from_file_location(name, self._path, loader=Loader(name, self._path))


def fork(
    mutant: Mutant | None, text: str, tests: Sequence[str], limit: float, wall: float | None = None
) -> int:
    """Start the tests with a mutant, or with none; the exit code of the process is pytest's.

    limit: CPU seconds, wall: seconds, after which the process is ended by a signal. It leads a process group
    of its own, to which everything belongs that it starts.
    """
    child = os.fork()
    if child:
        return child
    code = 3
    try:
        os.setpgid(0, 0)
        if wall is not None:
            signal.setitimer(signal.ITIMER_REAL, wall)
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silence, stream)
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 1, int(limit) + 1))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        os.chdir(ROOT)
        if mutant is not None:
            sys.meta_path.insert(0, _Mutated(mutant, text))
        import pytest

        code = int(pytest.main(["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-p", "no:cov", *tests]))
    finally:
        os._exit(code)
