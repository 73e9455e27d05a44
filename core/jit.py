"""The only door to numba: options, cache directory, and the few things that need machine addresses.

- ``kernel`` compiles a function. With a signature it is an *entry kernel*: called from Python, cached on
  disk, compiled by ``warm()``. Without one it is an inner function that entry kernels take in; it is compiled
  where it is used and has no cache file of its own.
- numba's cache does not notice an edit in a callee's file. Hence the cache directory carries the hash of all
  sources that a kernel can reach, of numba, numpy and the processor's name.
- ``part`` cuts a run out of an array without the bounds arithmetic of a slice, so that loops over it
  vectorise; ``words_at`` turns an address into arrays; ``bits`` and ``from_bits`` reinterpret a float.
- With ``NUMBA_DISABLE_JIT=1`` all of this runs as plain Python on numpy views, for coverage and readable
  traces.

No fastmath, no parallel: the same input gives the same bytes.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
import tempfile
import time
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, overload

# Intel's vector library rounds differently from the scalar functions, so that a result would depend on where
# in a loop a value stands. It has to be refused before numba loads.
os.environ["NUMBA_DISABLE_INTEL_SVML"] = "1"

import numpy as np

# numba and llvmlite are typed in part only, and wrongly in places: here they count as untyped.
numba: Any = importlib.import_module("numba")
llvm: Any = importlib.import_module("llvmlite.binding")
ir: Any = importlib.import_module("llvmlite.ir")
types: Any = numba.types
cgutils: Any = importlib.import_module("numba.core.cgutils")
arrayobj: Any = importlib.import_module("numba.np.arrayobj")
extending: Any = importlib.import_module("numba.extending")

F = TypeVar("F", bound=Callable[..., Any])

DISABLED: bool = bool(numba.config.DISABLE_JIT)

_ROOT = Path(__file__).parent
# Generators do not reach the trees' kernels nor the other way round: an edit there recompiles only there.
_GENERATORS = _ROOT / "streams"
_UNBOUNDED = 1 << 40
_entries: list[Any] = []


def _source_hash(generators: bool) -> str:
    """Return the hash of all sources that the kernels of one half of core can reach."""
    digest = hashlib.sha256()
    for path in sorted(_ROOT.rglob("*.py")):
        if (_GENERATORS in path.parents) <= generators:
            digest.update(path.relative_to(_ROOT).as_posix().encode())
            digest.update(path.read_bytes())
    cpu = numba.config.CPU_NAME or llvm.get_host_cpu_name()
    digest.update(f"{numba.__version__} {np.__version__} {cpu}".encode())
    return digest.hexdigest()[:20]


def _cache_base() -> Path:
    """Return the directory below which the caches lie."""
    if given := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(given)
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        return Path(xdg) / "streamgrove"
    return Path.home() / ".cache" / "streamgrove"


@functools.cache
def cache_directory(generators: bool = False) -> Path | None:
    """Return the directory of the compiled kernels, or None where none can be written."""
    try:
        path = _cache_base() / _source_hash(generators)
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            return path
    except (OSError, RuntimeError) as error:
        warnings.warn(
            f"kernels are compiled anew by every process: no cache directory can be written ({error}); "
            "set NUMBA_CACHE_DIR to a writable directory",
            RuntimeWarning,
            stacklevel=2,
        )
        return None


@overload
def kernel(function: F, /) -> F: ...
@overload
def kernel(function: str, /) -> Callable[[F], F]: ...
def kernel(function: Any, /) -> Any:
    """Compile a function: ``@kernel`` an inner one, ``@kernel("void(int64[::1])")`` an entry kernel."""
    if callable(function):
        return numba.njit(nogil=True, error_model="numpy")(function)
    signature: str = function

    def decorate(body: Callable[..., Any]) -> Any:
        if DISABLED:
            return body
        directory = cache_directory(generators=body.__module__.startswith("core.streams"))
        if directory is not None:
            numba.config.CACHE_DIR = str(directory)
        entry = numba.njit(nogil=True, error_model="numpy", cache=directory is not None)(body)
        return _Entry(entry, signature)

    return decorate


class _Entry:
    """An entry kernel: compiled for its one signature at the first call or by ``warm()``."""

    __slots__ = ("__wrapped__", "_call", "_dispatcher", "_signature")

    def __init__(self, dispatcher: Any, signature: str) -> None:
        self._dispatcher = dispatcher
        self._signature = signature
        self._call: Any = None
        self.__wrapped__ = dispatcher.py_func
        _entries.append(self)

    def compile(self) -> None:
        """Compile (or load) the kernel, once."""
        if self._call is None:
            self._dispatcher.compile(self._signature)
            self._dispatcher.disable_compile()
            self._call = self._dispatcher

    def __call__(self, *arguments: Any) -> Any:
        if self._call is None:
            self.compile()
        return self._call(*arguments)

    @property
    def dispatcher(self) -> Any:
        """numba's object: entry kernels that call each other use it."""
        return self._dispatcher


def warm() -> float:
    """Compile all entry kernels that have been imported, or load them from the cache; return the seconds."""
    start = time.perf_counter()
    for entry in _entries:
        entry.compile()
    return time.perf_counter() - start


if DISABLED:
    _registered: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()

    def register(words: Any) -> None:
        """Remember an array by its address (without the compiler an address alone leads nowhere)."""
        _registered[words.ctypes.data] = words

    def words_at(address: int) -> tuple[Any, Any]:
        """Return the words at an address as (int64[:], float64[:])."""
        words = _registered[int(address)]
        return words, words.view(np.float64)

    def part(array: Any, start: int, n: int) -> Any:
        """Return ``array[start : start + n]``."""
        return array[start : start + n]

    def bits(value: float) -> Any:
        """Return the bits of a float64 as int64."""
        return np.float64(value).view(np.int64)

    def from_bits(value: int) -> Any:
        """Return the float64 with these bits."""
        return np.int64(value).view(np.float64)

    def prefetch(address: int) -> None:
        """Ask for the cache line at an address."""

else:

    def register(words: Any) -> None:
        """Do nothing: compiled code finds an array by its address."""

    def intrinsic(function: Callable[..., Any]) -> Callable[..., Any]:
        """Make a function of (typing context, argument types) a compiled operation of those arguments."""
        return extending.intrinsic(function)

    @intrinsic
    def _int_pointer(_typing: Any, _address: Any) -> Any:
        return types.CPointer(types.int64)(types.int64), _cast_to_pointer

    @intrinsic
    def _float_pointer(_typing: Any, _address: Any) -> Any:
        return types.CPointer(types.float64)(types.int64), _cast_to_pointer

    def _cast_to_pointer(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    @kernel
    def words_at(address: int) -> tuple[Any, Any]:
        """Return the words at an address as (int64[:], float64[:])."""
        return (
            numba.carray(_int_pointer(address), _UNBOUNDED, np.int64),
            numba.carray(_float_pointer(address), _UNBOUNDED, np.float64),
        )

    @intrinsic
    def part(_typing: Any, array: Any, _start: Any, _n: Any) -> Any:
        """Return ``array[start : start + n]`` of a contiguous array, unchecked; the array must outlive it."""
        if not isinstance(array, types.Array) or array.ndim != 1 or array.layout != "C":
            return None
        signature = array(array, types.intp, types.intp)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = signature.args[0]
            source = arrayobj.make_array(kind)(context, builder, arguments[0])
            result = arrayobj.make_array(kind)(context, builder)
            size = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
            arrayobj.populate_array(
                result,
                data=builder.gep(source.data, [arguments[1]]),
                shape=cgutils.pack_array(builder, [arguments[2]]),
                strides=cgutils.pack_array(builder, [size]),
                itemsize=size,
                meminfo=None,
                parent=None,
            )
            return result._getvalue()  # noqa: SLF001

        return signature, generate

    @intrinsic
    def bits(_typing: Any, _value: Any) -> Any:
        """Return the bits of a float64 as int64."""
        return types.int64(types.float64), _bitcast

    @intrinsic
    def from_bits(_typing: Any, _value: Any) -> Any:
        """Return the float64 with these bits."""
        return types.float64(types.int64), _bitcast

    def _bitcast(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(signature.return_type))

    @intrinsic
    def prefetch(_typing: Any, _address: Any) -> Any:
        """Ask for the cache line at an address."""
        return types.void(types.int64), _prefetch

    def _prefetch(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        number = ir.IntType(32)
        pointer = builder.inttoptr(arguments[0], byte)
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [byte, number, number, number]), "llvm.prefetch.p0"
        )
        builder.call(function, [pointer, number(1), number(3), number(1)])
        return context.get_dummy_value()
