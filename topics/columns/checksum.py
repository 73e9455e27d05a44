"""Checksums: CRC-32C of record batches, by the processor's instruction where it has one, else by tables.

The tables give the same result for eight bytes as the instruction (Kounavis and Berry, *A systematic approach
to building high performance software-based CRC generators*, 2005: slicing by 8). Either way each step needs
the result of the step before. So the kernel works on three parts of a batch side by side and combines the
three checksums; appending zeros to a part has a known effect on its checksum (Gopal et al., *Fast CRC
computation for iSCSI polynomial using CRC32 instruction*, 2011).
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from core.kernels import jit
from core.kernels.jit import kernel, start_of
from core.kernels.native import pointers
from topics.columns.words import word

POLYNOMIAL: Final = 0x82F63B78
"""Castagnoli's polynomial, lowest power first."""
PART: Final = 512
"""Bytes of each of the three parts; a multiple of 8."""

_SLICES: Final = 8
_VALUES: Final = 256
_ZEROS_AT: Final = _SLICES * _VALUES
_ALL: Final = np.uint64(0xFFFF_FFFF)
_BYTE: Final = np.uint64(0xFF)
_ZERO: Final = np.uint64(0)
_S1, _S2, _S3, _S4, _S5, _S6, _S7 = (np.uint64(8 * n) for n in range(1, 8))


def _tables() -> npt.NDArray[np.uint32]:
    """Return uint32[12 * 256]: tables for a byte followed by 0 to 7 zeros, and for a checksum followed by
    PART zeros.
    """
    slices = np.empty((_SLICES, _VALUES), dtype=np.uint64)
    first = np.arange(_VALUES, dtype=np.uint64)
    for _ in range(8):
        first = (first >> np.uint64(1)) ^ (first & np.uint64(1)) * np.uint64(POLYNOMIAL)
    slices[0] = first
    for number in range(1, _SLICES):
        slices[number] = _behind_zero(slices[number - 1], first)
    zeros = np.concatenate([np.arange(_VALUES, dtype=np.uint64) << np.uint64(8 * n) for n in range(4)])
    for _ in range(PART):
        zeros = _behind_zero(zeros, first)
    return np.concatenate([slices.ravel(), zeros]).astype(np.uint32)


def _behind_zero(crc: npt.NDArray[np.uint64], first: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    return (crc >> np.uint64(8)) ^ first[crc & np.uint64(0xFF)]


TABLES: Final = _tables()


@kernel("int64(Array(uint8, 1, 'C', readonly=True), int64, int64, uint32[::1])")
def crc32c(data, start, end, tables) -> Any:
    """Return the CRC-32C of the bytes from `start` to before `end`; `tables` is TABLES."""
    # Bare pointers: an array costs a count of references at every call.
    return checksum(start_of(data), start, end, start_of(tables))


@kernel
def checksum(bytes_, start, end, table) -> Any:
    """Return the CRC-32C of the bytes from `start` to before `end`, for another kernel."""
    crc, at = _ALL, start
    while end - at >= 3 * PART:
        second, third = _ZERO, _ZERO
        for word_at in range(at, at + PART, 8):
            crc = step(table, crc, word(bytes_, word_at))
            second = step(table, second, word(bytes_, word_at + PART))
            third = step(table, third, word(bytes_, word_at + 2 * PART))
        crc = _behind_part(table, _behind_part(table, crc) ^ second) ^ third
        at += 3 * PART
    while end - at >= 8:
        crc = step(table, crc, word(bytes_, at))
        at += 8
    while at < end:
        crc = (crc >> _S1) ^ np.uint64(table[np.int64((crc ^ np.uint64(bytes_[at])) & _BYTE)])
        at += 1
    return np.int64(crc ^ _ALL)


@kernel
def step_by_tables(table, crc, eight) -> Any:
    """Return the checksum after eight more bytes."""
    eight = eight ^ crc
    return np.uint64(
        table[7 * _VALUES + np.int64(eight & _BYTE)]
        ^ table[6 * _VALUES + np.int64(eight >> _S1 & _BYTE)]
        ^ table[5 * _VALUES + np.int64(eight >> _S2 & _BYTE)]
        ^ table[4 * _VALUES + np.int64(eight >> _S3 & _BYTE)]
        ^ table[3 * _VALUES + np.int64(eight >> _S4 & _BYTE)]
        ^ table[2 * _VALUES + np.int64(eight >> _S5 & _BYTE)]
        ^ table[_VALUES + np.int64(eight >> _S6 & _BYTE)]
        ^ table[np.int64(eight >> _S7)]
    )


@kernel
def _behind_part(table, crc) -> Any:
    """Return a checksum after PART more zeros."""
    return np.uint64(
        table[_ZEROS_AT + np.int64(crc & _BYTE)]
        ^ table[_ZEROS_AT + _VALUES + np.int64(crc >> _S1 & _BYTE)]
        ^ table[_ZEROS_AT + 2 * _VALUES + np.int64(crc >> _S2 & _BYTE)]
        ^ table[_ZEROS_AT + 3 * _VALUES + np.int64(crc >> _S3)]
    )


def x86_step(module: Any, builder: Any, crc: Any, eight: Any) -> Any:
    """Write the instruction of SSE 4.2."""
    wide = pointers.ir.IntType(64)
    kind = pointers.ir.FunctionType(wide, [wide, wide])
    name = "llvm.x86.sse42.crc32.64.64"
    return builder.call(pointers.cgutils.get_or_insert_function(module, kind, name), [crc, eight])


def arm_step(module: Any, builder: Any, crc: Any, eight: Any) -> Any:
    """Write the instruction of ARMv8's extension CRC32."""
    wide, narrow = pointers.ir.IntType(64), pointers.ir.IntType(32)
    kind = pointers.ir.FunctionType(narrow, [narrow, wide])
    function = pointers.cgutils.get_or_insert_function(module, kind, "llvm.aarch64.crc32cx")
    return builder.zext(builder.call(function, [builder.trunc(crc, narrow), eight]), wide)


Step = Callable[[Any, Any, Any, Any], Any]
_INSTRUCTIONS: Final[Mapping[str, tuple[str, frozenset[str], Step]]] = {
    # The feature as LLVM spells it, and the names of processors that imply it.
    "x86_64": ("crc32", frozenset({"x86-64-v2", "x86-64-v3", "x86-64-v4"}), x86_step),
    "aarch64": ("crc", frozenset(), arm_step),
}


def instruction(machine: str, cpu: str, features: str) -> Step | None:
    """Return the function that emits a processor's CRC instruction; None if the processor has none or may
    have none.

    `cpu` and `features` are the target that kernels are compiled for, as LLVM spells it ("+crc32,-avx").
    numba keeps both with each kernel in its cache, so a kernel with the instruction is never loaded on a
    processor without it.
    """
    feature, names, write = _INSTRUCTIONS.get(machine, ("", frozenset[str](), x86_step))
    listed = features.split(",")
    if feature and (f"+{feature}" in listed or (cpu in names and f"-{feature}" not in listed)):
        return write
    return None


def _here() -> Step | None:
    """Return the function that emits the instruction of the processor that numba compiles for."""
    if jit.DISABLED:
        return None
    codegen = jit.numba.core.registry.cpu_target.target_context.codegen()
    _, cpu, features = codegen.magic_tuple()
    machine = {"arm64": "aarch64", "AMD64": "x86_64"}.get(platform.machine(), platform.machine())
    return instruction(machine, cpu, features)


INSTRUCTION: Final = _here()


def _step(_typing: Any, _table: Any, crc: Any, eight: Any) -> Any:
    number = pointers.types.uint64

    def write(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        assert INSTRUCTION is not None
        return INSTRUCTION(builder.module, builder, *arguments[1:])

    return number(_table, number, number), write


step: Callable[[Any, Any, Any], Any] = step_by_tables if INSTRUCTION is None else jit.intrinsic(_step)
"""Return the checksum after eight more bytes."""
