"""Kernels without a compiler, on words that refuse every index outside of them, negative ones too.

What numpy would wrap around or cut off, compiled code would read or write somewhere in the process.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np

from core.kernels import jit


class Hole(Exception):
    """A kernel left its words."""


class Guarded(np.ndarray):
    """An array that refuses what compiled code would not notice."""

    def __getitem__(self, index: Any) -> Any:
        """Return what is there, if it is inside."""
        self._judge(index)
        return super().__getitem__(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        """Write, if it is inside."""
        self._judge(index)
        super().__setitem__(index, value)

    def __iter__(self) -> Iterator[Any]:
        """Iterate: numpy would ask for one index too many, to find the end."""
        return (self[at] for at in range(len(self)))

    def _judge(self, index: Any) -> None:
        for one, size in zip(index if isinstance(index, tuple) else (index,), self.shape, strict=False):
            if isinstance(one, slice):
                start, stop = one.start or 0, size if one.stop is None else one.stop
                if not 0 <= start <= stop <= size:
                    message = f"slice {start}:{stop} of {size} words"
                    raise Hole(message)
            elif isinstance(one, Integral) and not 0 <= int(one) < size:
                message = f"index {one} of {size} words"
                raise Hole(message)


class GuardedNumpy:
    """numpy, whose new arrays are guarded."""

    def __getattr__(self, name: str) -> Any:
        """Return what numpy has of this name."""
        return getattr(np, name)

    def empty(self, *given: Any, **named: Any) -> Any:
        """Return a guarded array, full of what no kernel may have read before it wrote it."""
        made = np.empty(*given, **named)
        made[...] = 77 if made.dtype.kind in "iub" else np.nan
        return made.view(Guarded)

    def zeros(self, *given: Any, **named: Any) -> Any:
        """Return a guarded array of zeros."""
        return np.zeros(*given, **named).view(Guarded)


def _words_at(address: int) -> tuple[Any, Any]:
    words = jit._plain_words_at(address)[0].view(Guarded)  # which also finds a part of other words
    return words, words.view(np.float64)


def _row_of(array: Any, row: int) -> Any:
    return array.view(Guarded)[row].view(Guarded)


def _start_of(array: Any) -> Any:
    return array.reshape(-1).view(Guarded)


def _part(array: Any, start: int, n: int) -> Any:
    return array.view(Guarded)[start : start + n]


def guard() -> None:
    """Guard the kernels of this process, which must run without a compiler; those imported later are not."""
    if not jit.DISABLED:
        message = "kernels must run as plain Python: set NUMBA_DISABLE_JIT=1"
        raise RuntimeError(message)
    plain = {
        jit._plain_words_at: _words_at,
        jit._plain_row_of: _row_of,
        jit._plain_start_of: _start_of,
        jit._plain_part: _part,
    }
    for name, module in list(sys.modules.items()):
        if not name.startswith("core.") or name == "core.kernels.jit":
            continue
        for local, value in list(vars(module).items()):
            if callable(value) and getattr(value, "__hash__", None) and value in plain:
                setattr(module, local, plain[value])
        if hasattr(module, "np") and any(map(is_kernel, vars(module).values())):
            module.np = GuardedNumpy()  # type: ignore[attr-defined]


def is_kernel(value: Any) -> bool:
    """Return whether a member of a module was made by numba's decorators, or takes what they take."""
    return callable(value) and value is jit.kernel
