"""Words: numbers at any place of a buffer, aligned or not, the lowest byte first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from core.kernels import jit
from core.kernels.jit import kernel
from core.kernels.native import pointers

_S1, _S2, _S3, _S4, _S5, _S6, _S7 = (np.uint64(8 * n) for n in range(1, 8))


@kernel
def word(data, at: int) -> Any:
    """Return the eight bytes at a place as uint64; compiled, this is one instruction."""
    return (
        np.uint64(data[at])
        | np.uint64(data[at + 1]) << _S1
        | np.uint64(data[at + 2]) << _S2
        | np.uint64(data[at + 3]) << _S3
        | np.uint64(data[at + 4]) << _S4
        | np.uint64(data[at + 5]) << _S5
        | np.uint64(data[at + 6]) << _S6
        | np.uint64(data[at + 7]) << _S7
    )


@kernel
def half_word(data, at: int) -> Any:
    """Return the four bytes at a place as uint64."""
    return (
        np.uint64(data[at])
        | np.uint64(data[at + 1]) << _S1
        | np.uint64(data[at + 2]) << _S2
        | np.uint64(data[at + 3]) << _S3
    )


def _plain_single(half: Any) -> float:
    return float(np.array([half], dtype=np.uint32).view(np.float32)[0])


def _single(_typing: Any, _half: Any) -> Any:
    return pointers.types.float64(pointers.types.uint64), _as_float


def _as_float(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    number = builder.trunc(arguments[0], pointers.ir.IntType(32))
    return builder.fpext(builder.bitcast(number, pointers.ir.FloatType()), pointers.ir.DoubleType())


single: Callable[[Any], Any] = _plain_single if jit.DISABLED else jit.intrinsic(_single)
"""Return the float32 with these bits, the lower half of a word, as float64."""
