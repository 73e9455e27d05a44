import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import core
from core.kernels import jit
from core.kernels.jit import bits, from_bits, kernel, part, row_of, sum_after, words_at
from core.kernels.native.inner_kernel import InnerKernel

SOURCES = sorted(Path(core.__file__).parent.rglob("*.py"))


@kernel("float64(int64, float64[:, ::1])")
def probe(address, table):
    ints, floats = words_at(address)
    row = row_of(table, 1)
    return ints[2] + floats[3] + part(row, 1, 2)[1]


def test_words_are_found_by_address_and_rows_by_number():
    words = np.zeros(8, dtype=np.int64)
    jit.register(words)
    words[2] = 40
    words.view(np.float64)[3] = 1.5
    assert probe(words.ctypes.data, np.arange(6.0).reshape(2, 3)) == 40 + 1.5 + 5.0


@kernel("float64(float64)")
def there_and_back(value):
    return from_bits(bits(value) + 0)


@kernel("int64(float64)")
def as_bits(value):
    return bits(value)


def test_bits_of_a_float():
    assert as_bits(1.0) == 0x3FF0000000000000
    assert there_and_back(-0.1) == -0.1


@kernel("int64(int64, int64)")
def sum_after_words(address, position):
    return sum_after(words_at(address)[0], position)


def test_the_sum_of_the_words_after_a_position():
    words = np.random.default_rng(1).integers(-(2**40), 2**40, 20)
    jit.register(words)
    sums = [sum_after_words(words.ctypes.data, position) for position in range(16)]
    assert sums == [words[position + 1 : 16].sum() for position in range(16)]


def test_only_the_door_knows_numba():
    """A bare njit would miss the options that make results reproducible."""
    for path in SOURCES:
        if path.name == "jit.py" or path.parent.name == "native":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert all(not name.name.startswith("numba") for name in node.names), path
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("numba"):
                assert [name.name for name in node.names] == ["config"], path


def test_no_kernel_asks_for_fast_or_parallel_arithmetic():
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.keyword):
                assert node.arg not in ("fastmath", "parallel"), path


def run_python(code, directory, **environment):
    """Run a program from a file (numba keeps compiled code by the file of its source)."""
    program = directory / "program.py"
    program.write_text(code)
    return subprocess.run(
        [sys.executable, "-W", "always", str(program)],
        env={**os.environ, "PYTHONPATH": str(Path(core.__file__).parent.parent), **environment},
        capture_output=True,
        text=True,
        check=True,
    )


TINY = """
from core.kernels.jit import cache_directory, kernel
@kernel("int64(int64)")
def twice(n):
    return 2 * n
print(twice(21), cache_directory())
"""


@pytest.mark.skipif(jit.DISABLED, reason="nothing is compiled")
def test_without_a_writable_directory_it_compiles_and_warns(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    done = run_python(TINY, tmp_path, NUMBA_CACHE_DIR=str(blocked))
    assert done.stdout.split() == ["42", "None"]
    assert "set NUMBA_CACHE_DIR to a writable directory" in done.stderr


def test_kernels_beside_core_have_a_cache_by_the_sources_they_reach(tmp_path, monkeypatch):
    """Else an edit there would go unnoticed, or compile all of core anew."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "topics").mkdir()
    (tmp_path / "beside").mkdir()
    kernels, near, far, other = (
        tmp_path / name
        for name in ("beside/kernels.py", "beside/near.py", "topics/far.py", "beside/other.py")
    )
    kernels.write_text("from beside import near\n")
    near.write_text("def late():\n    from topics.far import LIMIT\n    return LIMIT\n")
    far.write_text("LIMIT = 1\n")
    other.write_text("LIMIT = 1\n")

    def directories():
        jit.cache_directory.cache_clear()
        found = jit.cache_directory(False, "beside.kernels", kernels), jit.cache_directory()
        jit.cache_directory.cache_clear()
        return found

    before, core_before = directories()
    other.write_text("LIMIT = 2\n")
    assert directories() == (before, core_before)
    far.write_text("LIMIT = 2\n")
    after, core_after = directories()
    assert len({before, core_before, after}) == 3
    assert core_after == core_before


@pytest.mark.skipif(jit.DISABLED, reason="nothing is compiled")
def test_the_cache_lies_where_sources_and_versions_say(tmp_path):
    base = str(tmp_path / "cache")
    first, again = (run_python(TINY, tmp_path, NUMBA_CACHE_DIR=base).stdout.split() for _ in range(2))
    other = run_python(TINY, tmp_path, NUMBA_CACHE_DIR=base, NUMBA_CPU_NAME="generic").stdout.split()
    assert Path(first[1]).parent == Path(base)
    assert list(Path(first[1]).rglob("*.nbc"))
    assert first == again
    assert first[1] != other[1]


CALLS = """
import numpy as np
from core.kernels.jit import kernel, outlined
@kernel("float64(float64[::1], int64)")
def head(x, n):
    if n > len(x):
        raise ValueError("n must be at most the length")
    copy = np.empty(n)
    copy[:] = x[:n]
    return copy.sum()
@kernel("void(float64[::1], int64)")
def fill(x, value):
    x[:] = value
head_here, fill_here = outlined(head), outlined(fill)
@kernel
def twice(x, *rest):
    return 2.0 * head_here(x, *rest)
@kernel("float64(int64, int64)")
def outer(length, n):
    x = np.zeros(length)
    fill_here(*(x, 3))
    return twice(x, n) + head_here(x, 1)
print(outer(4, 2), head(np.ones(3), 3))
try:
    outer(4, 5)
except ValueError as error:
    print(error)
"""


def test_an_outlined_kernel_is_found_by_others_compiled_or_loaded(tmp_path):
    base = str(tmp_path / "cache")
    told = [run_python(CALLS, tmp_path, NUMBA_CACHE_DIR=base).stdout for _ in range(2)]
    assert told == ["15.0 3.0\nn must be at most the length\n"] * 2


WARM = """
from core.kernels import jit
jit.warm()
stats = [entry._dispatcher.stats for entry in jit._entries]
print(len(stats), sum(map(lambda s: sum(s.cache_hits.values()), stats)),
      sum(map(lambda s: sum(s.cache_misses.values()), stats)))
"""


@pytest.mark.skipif(jit.DISABLED, reason="nothing is compiled")
def test_warm_loads_what_was_compiled(tmp_path):
    jit.warm()  # compiles, unless that was done before
    done = run_python(WARM, tmp_path)
    entries, loaded, compiled = map(int, done.stdout.split())
    assert (loaded, compiled) == (entries, 0)
    assert entries > 30


@kernel
def half(value: float) -> float:
    return value / 2.0


@kernel("float64(float64)")
def quarter(value):
    return half(half(value))


def test_an_inner_kernel_is_called_by_kernels_and_from_python_with_the_same_types():
    assert [half(3.0), quarter(3.0), half(3.0), half(6)] == [1.5, 0.75, 1.5, 3.0]


@pytest.mark.skipif(jit.DISABLED, reason="nothing is compiled")
def test_an_inner_kernel_is_not_translated_where_it_is_taken_in():
    """It would be optimised and translated once for itself, and again in each kernel that calls it."""
    inner = InnerKernel(lambda value: value / 2.0, is_inlined=True)
    inner._taken_in.compile("float64(float64)")
    (built,) = inner._taken_in.overloads.values()
    assert not built.library.codegen._engine.is_symbol_defined(built.fndesc.llvm_func_name)
