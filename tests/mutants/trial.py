"""Trial of a mutant: the tests in a process of its own, which has the changed module from memory."""

from __future__ import annotations

import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import resource
import select
import signal
import sys
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tests.mutants.mutation import Mutant

ROOT = Path(__file__).parents[2]
KEPT = ROOT / ".mutants"
MEMORY = 6 << 30
PATIENCE_S = 10.0
"""Seconds that a mutant has beside those of its tests: for imports."""
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


class _Only:
    """A plugin of pytest that keeps the tests with some ids."""

    def __init__(self, ids: Collection[str]) -> None:
        self._ids = ids

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self._ids]


def fork(
    mutant: Mutant | None,
    text: str,
    tests: Sequence[str],
    limit: float,
    *,
    only: Collection[str] = (),
    options: Sequence[str] = ("-q", "-n", "0", "-p", "no:cacheprovider", "-p", "no:cov"),
    compiled: bool = True,
) -> int:
    """Start the tests with a mutant, or with none; the exit code of the process is pytest's.

    limit: CPU seconds after which the process is ended by a signal. only: the ids of those tests that run, of
    all in `tests`. The process leads a process group, to which everything belongs that it starts.
    """
    child = os.fork()
    if child:
        return child
    code = 3
    try:
        os.setpgid(0, 0)
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silence, stream)
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 1, int(limit) + 1))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        os.chdir(ROOT)
        if not compiled:
            import numba

            os.environ["NUMBA_DISABLE_JIT"] = "1"
            setattr(numba.config, "DISABLE_JIT", 1)  # noqa: B010 - read from the environment when numba was imported
        if mutant is not None:
            sys.meta_path.insert(0, _Mutated(mutant, text))
        plugins = [_Only(only)] if only else []
        code = int(pytest.main(["-x", *options, *tests], plugins=plugins))
    finally:
        os._exit(code)


def ended(child: int, wall: float) -> tuple[int, float]:
    """Wait for a process, end it after `wall` seconds, and all that is left of its process group.

    Returns its exit code, negative if a signal ended it, and its CPU seconds.
    """
    process = os.pidfd_open(child)
    try:
        select.select([process], [], [], wall)
    finally:
        os.close(process)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime
