"""Compiled kernels: options, cache, memory by address; imports numba, as core/kernels/native does.

- ``kernel`` compiles a function. With a signature it is an *entry kernel*: called from Python, cached on
  disk, compiled by ``warm()``. Without a signature it is an *inner kernel* that is inlined into entry
  kernels; it is compiled where it is used (core/kernels/native/inner_kernel.py) and has no cache file.
  ``called`` makes an inner kernel that is too large for inlining.
- numba's cache does not notice an edit in the file of a callee or of an imported constant. Hence the name of
  the cache directory is a hash of all sources that a kernel can reach (all of core; outside core the imports
  of its module), and of the versions of numba and numpy and the processor's name. numba's index has the
  features of the processor as well.
- ``words_at`` turns an address into *words*: bare pointers, indexed like arrays. They have no length, no
  owner and no negative indices, so that passing them costs nothing and loops over them vectorise; arrays
  cost a count of references at every call. ``bits`` and ``from_bits`` reinterpret a float.
- With ``NUMBA_DISABLE_JIT=1`` all of this runs as plain Python on numpy views, for coverage and readable
  traces.

No fastmath, no parallel: the same input gives the same bytes.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
import pkgutil
import tempfile
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar, cast, overload

# Intel's vector library rounds differently from the scalar functions, so that a result would depend on a
# value's position in a loop. It has to be disabled before numba loads.
os.environ["NUMBA_DISABLE_INTEL_SVML"] = "1"

import numpy as np

from core.kernels.native import pointers
from core.kernels.native.address import Addresses
from core.kernels.native.arguments import checked
from core.kernels.native.call_graph import calls
from core.kernels.native.inner_kernel import OPTIONS, InnerKernel
from core.kernels.native.signatures import resolved
from core.kernels.native.sources import reached_from

# numba and llvmlite have partial and sometimes wrong types, so they count as untyped.
numba: Any = importlib.import_module("numba")
llvm: Any = importlib.import_module("llvmlite.binding")
intrinsic: Any = importlib.import_module("numba.extending").intrinsic

F = TypeVar("F", bound=Callable[..., Any])

DISABLED: bool = bool(numba.config.DISABLE_JIT)

_ROOT = Path(__file__).parents[1]
# Generators and the trees' kernels do not use each other: an edit in one half recompiles that half only.
_GENERATORS = _ROOT / "streams"
_BESIDE = ("streamapp", "topics")
"""The other packages of this repository, whose kernels may use functions and constants of core."""
_entries: list[_Entry] = []
_called_at: dict[int, tuple[_Entry, ...]] = {}
"""By the id of an object that kernels call: the entry kernels at its addresses."""
_tables: list[Any] = []
"""Keeps the objects alive whose ids are above."""
_wanted: set[str] = set()
"""The modules for which kernels have been compiled."""
_compiling = threading.RLock()


@functools.cache
def _hash_of_core(generators: bool) -> bytes:
    digest = hashlib.sha256()
    for path in sorted(_ROOT.rglob("*.py")):
        if (_GENERATORS in path.parents) <= generators:
            digest.update(path.relative_to(_ROOT).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.digest()


def _source_hash(generators: bool, module: str, file: Path | None) -> str:
    """Return the hash of the sources that kernels of one half of core, or of an outside module, can reach."""
    digest = hashlib.sha256(_hash_of_core(generators))
    if file is not None:
        root = file.parents[module.count(".") + (file.name == "__init__.py")]
        for path in reached_from(file, root, {*_BESIDE, module.partition(".")[0]}):
            digest.update(path.relative_to(root).as_posix().encode())
            digest.update(path.read_bytes())
    cpu = numba.config.CPU_NAME or llvm.get_host_cpu_name()
    digest.update(f"{numba.__version__} {np.__version__} {cpu}".encode())
    return digest.hexdigest()[:20]


CHOSEN_BY = ("avx", "avx2", "avx512f", "fma", "fma4")
"""Features of a processor by which the mathematical functions of C libraries and numpy choose their code."""


def cpu_features() -> str:
    """Return the names in CHOSEN_BY that this processor has, joined by "+"; "plain": none."""
    has = llvm.get_host_cpu_features()
    return "+".join(name for name in CHOSEN_BY if has.get(name)) or "plain"


def _cache_base() -> Path:
    """Return the parent directory of the caches."""
    if numba_dir := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(numba_dir)
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        return Path(xdg) / "streamgrove"
    return Path.home() / ".cache" / "streamgrove"


@functools.cache
def cache_directory(generators: bool = False, module: str = "", file: Path | None = None) -> Path | None:
    """Return the directory of the compiled kernels, or None if none is writable.

    module, file: of kernels outside core.
    """
    try:
        path = _cache_base() / _source_hash(generators, module, file)
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            return path
    except (OSError, RuntimeError) as error:
        warnings.warn(
            f"kernels are compiled again by every process: no cache directory can be written ({error}); "
            "set NUMBA_CACHE_DIR to a writable directory",
            RuntimeWarning,
            stacklevel=2,
        )
        return None


@overload
def kernel(function: F, /) -> F: ...
@overload
def kernel(function: str, /, *, alone: bool = False) -> Callable[[F], F]: ...
def kernel(function: Any, /, *, alone: bool = False) -> Any:
    """Compile a function: ``@kernel`` an inner kernel, ``@kernel("void(int64[::1])")`` an entry kernel.

    An ``alone`` kernel serves a feature that most specs do not use: ``compile_for`` its module compiles it.
    """
    if callable(function):
        return function if DISABLED else InnerKernel(function, is_inlined=True)
    signature: str = function

    def decorate(body: Callable[..., Any]) -> Any:
        if DISABLED:
            return _silent(body)
        return _Entry(body, signature, body.__module__, alone)

    return decorate


def called(function: F) -> F:
    """Compile an inner function that is called, not inlined: a large function on a rare path."""
    return function if DISABLED else cast("F", InnerKernel(function, is_inlined=False))


def unchecked(entry: Any) -> Any:
    """Return an entry kernel as a function that does not look at the types of its arguments.

    For arrays that the caller has made or checked itself: numba's look at a tuple of arrays takes longer than
    a row. A kernel that has not been called yet is returned as it is.
    """
    return entry if DISABLED else entry.unchecked


def _silent(body: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a plain entry kernel: like compiled code it gives no warnings of infinities and overflow."""

    @functools.wraps(body)
    def entry(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return body(*arguments)

    return entry


class _Entry:
    """An entry kernel, compiled for its one signature at the first call, or when its owner is needed."""

    __slots__ = (
        "__wrapped__",
        "_call",
        "_dispatcher",
        "_is_busy",
        "_place",
        "_records",
        "_signature",
        "is_alone",
        "is_optional",
        "owner",
        "unchecked",
    )

    def __init__(
        self,
        body: Callable[..., Any],
        signature: str,
        owner: str,
        is_alone: bool,
        records: dict[int, Any] | None = None,
    ) -> None:
        """Take the function, its signature, and the module for which it is compiled.

        records: numba types, by parameter, that replace those of the signature (signatures.py).
        """
        generators = body.__module__.startswith("core.streams")
        file = Path(body.__code__.co_filename)
        is_elsewhere = "." in body.__module__ and _ROOT not in file.parents
        place = (body.__module__, file) if is_elsewhere else ()
        directory = cache_directory(generators, *place)
        if directory is not None:
            numba.config.CACHE_DIR = str(directory)
        self._dispatcher = numba.njit(cache=directory is not None, **OPTIONS)(body)
        self._signature = signature
        self._records = records
        self._call: Any = None
        self._place: tuple[Addresses, int] | None = None
        self.__wrapped__ = body
        self.owner = owner
        self.is_alone = is_alone or generators
        self.is_optional = False
        self._is_busy = False
        self.unchecked: Any = self
        _entries.append(self)

    def compile(self) -> None:
        """Compile (or load) the kernel and what it may call through addresses, once."""
        if self._call is not None:
            return
        with _compiling:  # a partition may be restored in another thread
            if self._call is not None or self._is_busy:  # busy: it calls itself through other kernels
                return
            self._is_busy = True
            try:
                for called_at in calls(self.__wrapped__, _called_at):
                    for entry in _called_at[called_at]:
                        if not entry.is_optional or entry.owner in _wanted:
                            entry.compile()
                self._dispatcher.compile(resolved(self._signature, self._records))
                if self._place is not None:
                    addresses, number = self._place
                    addresses.write(number, self._dispatcher)
            finally:
                self._is_busy = False
            self._dispatcher.disable_compile()
            (built,) = self._dispatcher.overloads.values()
            self.unchecked = built.entry_point
            # The last step: another thread may call at once.
            self._call = checked(built.entry_point, built.signature.args) or self._dispatcher

    def __call__(self, *arguments: Any) -> Any:
        if self._call is None:
            self.compile()
        return self._call(*arguments)

    def lie_at(self, addresses: Addresses, number: int, is_optional: bool) -> None:
        """Set the word for the kernel's address; optional: the owner needs it, not every caller."""
        self._place = addresses, number
        self.is_optional = is_optional


INTS = "CPointer(int64)"
FLOATS = "CPointer(float64)"


def outlined(entry: Any, is_optional: bool = False) -> Any:
    """Return an object through which other kernels call an entry kernel, which is compiled only once.

    For large functions that rarely run. numba links everything that a kernel calls into it and optimises it
    there: inner kernels and other entry kernels are compiled again in every kernel that uses them. Here the
    call goes through a word with the address, which ``_Entry.compile`` writes. An optional kernel is called
    for some plans only, whose plug-ins have it compiled (``compile_for`` its module).
    """
    if DISABLED:
        return entry
    body = entry.__wrapped__
    addresses = Addresses(f"{body.__module__}.{body.__qualname__}", entry._signature, 1)  # noqa: SLF001
    entry.lie_at(addresses, 0, is_optional)
    call = addresses.call(body)
    _called_at[id(call)] = (entry,)
    _tables.append(call)
    return call


def kernel_table(
    name: str,
    signature: str,
    parameters: list[str],
    members: dict[int, tuple[str, Any]],
    n: int,
    records: dict[int, dict[int, Any]] | None = None,
) -> Any:
    """Return an object that kernels call with a number below n and the parameters: it runs that member.

    members: by number, the module for which a kernel is compiled, and the inner kernel; records: by number,
    the numba types of a member's own records, by parameter. Each member becomes an entry kernel, compiled
    separately when its module is needed (``compile_for``).
    """
    addresses = Addresses(name, signature, n)
    entries = []
    for number, (owner, inner) in members.items():
        own = (records or {}).get(number)
        entry = _Entry(inner.py_func, signature, owner, is_alone=True, records=own)
        entry.lie_at(addresses, number, is_optional=True)
        entries.append(entry)
    call = addresses.call_numbered(parameters)
    _called_at[id(call)] = tuple(entries)
    _tables.append(call)
    return call


def compile_for(modules: Iterable[str]) -> float:
    """Compile or load the entry kernels of these modules; return the seconds.

    Every new plan calls this function: no kernel gets a plan whose plug-ins are not compiled.
    """
    modules = frozenset(modules)
    if modules <= _wanted:
        return 0.0
    start = time.perf_counter()
    with _compiling:
        for entry in tuple(_entries):
            if entry.owner in modules:
                entry.compile()
        # Their kernels that are imported later are compiled with the kernels that call them.
        _wanted.update(modules)
    return time.perf_counter() - start


def warm(modules: Iterable[str] | None = None) -> float:
    """Compile all entry kernels of core, or load them from the cache; return the seconds.

    modules: compile for these, and apart from them only the kernels that all specs need.
    """
    start = time.perf_counter()
    if modules is None:
        for module in pkgutil.walk_packages([str(_ROOT)], "core."):
            importlib.import_module(module.name)
    else:
        compile_for(modules)
    for entry in tuple(_entries):
        if modules is None or not entry.is_alone:
            entry.compile()
    return time.perf_counter() - start


_registered: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def register(words: Any) -> None:
    """Store an array by its address if there is no compiler: plain Python cannot read from an address."""
    if DISABLED:
        _registered[words.ctypes.data] = words


# Plain Python versions


def _plain_words_at(address: int) -> tuple[Any, Any]:
    words = _registered.get(int(address))
    if words is None:  # a part of other words
        words = next(
            whole[(address - start) // whole.itemsize :]
            for start, whole in _registered.items()
            if start <= address < start + whole.nbytes
        )
    return words, words.view(np.float64)


def _plain_row_of(array: Any, row: int) -> Any:
    return array[row]


def _plain_start_of(array: Any) -> Any:
    return array.reshape(-1)


def _plain_part(array: Any, start: int, n: int) -> Any:
    return array[start : start + n]


def _plain_tail(array: Any, start: int) -> Any:
    return array[start:]


def _plain_bits(value: float) -> Any:
    return np.float64(value).view(np.int64)


def _plain_from_bits(value: int) -> Any:
    return np.int64(value).view(np.float64)


def _plain_stay_apart() -> None:
    pass


def _plain_address_of(words: Any) -> int:
    return int(words.ctypes.data)


def _plain_prefetch(address: int) -> None:
    pass


def _plain_sum_after(words: Any, position: int) -> int:
    return int(words[position + 1 : pointers.LANES].sum())


def _compiled_words_at() -> Callable[[int], tuple[Any, Any]]:
    ints_at, floats_at = intrinsic(pointers.int_pointer), intrinsic(pointers.float_pointer)

    @kernel
    def words_at(address: int) -> tuple[Any, Any]:
        return ints_at(address), floats_at(address)

    return words_at


words_at: Callable[[Any], tuple[Any, Any]] = _plain_words_at if DISABLED else _compiled_words_at()
"""Return the words at an address as (int64[:], float64[:])."""

row_of: Callable[[Any, int], Any] = _plain_row_of if DISABLED else intrinsic(pointers.row_of)
"""Return the words of a row of a C-ordered array, which must outlive them."""

start_of: Callable[[Any], Any] = _plain_start_of if DISABLED else intrinsic(pointers.start_of)
"""Return the elements of a contiguous array, which must outlive them, without its owner and length."""

tail: Callable[[Any, int], Any] = _plain_tail if DISABLED else intrinsic(pointers.tail)
"""Return the words from ``start`` on."""

part: Callable[[Any, int, int], Any] = _plain_part if DISABLED else intrinsic(pointers.part)
"""Return the n words from ``start`` on."""

bits: Callable[[float], Any] = _plain_bits if DISABLED else intrinsic(pointers.bits)
"""Return the bits of a float64 as int64."""

from_bits: Callable[[Any], Any] = _plain_from_bits if DISABLED else intrinsic(pointers.from_bits)
"""Return the float64 with these bits."""

stay_apart: Callable[[], None] = _plain_stay_apart if DISABLED else intrinsic(pointers.stay_apart)
"""Keep the calling kernel a separate function: tight loops in large functions lack registers."""

address_of: Callable[[Any], int] = _plain_address_of if DISABLED else intrinsic(pointers.address_of)
"""Return the address of the first of some words."""

sum_after: Callable[[Any, int], Any] = _plain_sum_after if DISABLED else intrinsic(pointers.sum_after)
"""Return the sum of the int64 words after a position, among the first pointers.LANES of some words."""

prefetch: Callable[[int], None] = _plain_prefetch if DISABLED else intrinsic(pointers.prefetch)
"""Request the cache line at an address, which need not be valid."""
