"""Pointers: the instructions behind the functions of core/kernels/jit.py that turn addresses into words.

Each function takes the typing context and the types of the arguments, and returns a signature and a generator
of instructions, as numba's ``intrinsic`` expects.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

LANES: Final = 16
"""Words among which ``sum_after`` adds."""

numba: Any = importlib.import_module("numba")
ir: Any = importlib.import_module("llvmlite.ir")
types: Any = numba.types
cgutils: Any = importlib.import_module("numba.core.cgutils")
arrayobj: Any = importlib.import_module("numba.np.arrayobj")


def int_pointer(_typing: Any, _address: Any) -> Any:
    """From an address to int64 words."""
    return types.CPointer(types.int64)(types.int64), _cast_to_pointer


def float_pointer(_typing: Any, _address: Any) -> Any:
    """From an address to float64 words."""
    return types.CPointer(types.float64)(types.int64), _cast_to_pointer


def _cast_to_pointer(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))


def part(_typing: Any, words: Any, _start: Any, _n: Any) -> Any:
    """From words, a position and a number to the words there."""
    return words(words, types.intp, types.intp), _step


def _step(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    return builder.gep(arguments[0], [arguments[1]])


def row_of(_typing: Any, array: Any, _row: Any) -> Any:
    """From a C-ordered array and a row to the elements of the row."""
    return types.CPointer(array.dtype)(array, types.intp), _first_word


def _first_word(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return the pointer to the first element of a row of a C-ordered array."""
    array = arrayobj.make_array(signature.args[0])(context, builder, arguments[0])
    columns = cgutils.unpack_tuple(builder, array.shape)[1]
    return builder.gep(array.data, [builder.mul(arguments[1], columns)])


def start_of(_typing: Any, array: Any) -> Any:
    """From a contiguous array to its elements."""
    return types.CPointer(array.dtype)(array), _first_element


def _first_element(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return arrayobj.make_array(signature.args[0])(context, builder, arguments[0]).data


def bits(_typing: Any, _value: Any) -> Any:
    """From a float64 to its bits as int64."""
    return types.int64(types.float64), _bitcast


def from_bits(_typing: Any, _value: Any) -> Any:
    """From bits as int64 to the float64."""
    return types.float64(types.int64), _bitcast


def _bitcast(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.bitcast(arguments[0], context.get_value_type(signature.return_type))


def address_of(_typing: Any, words: Any) -> Any:
    """From words to their address."""
    return types.int64(words), _pointer_as_number


def _pointer_as_number(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.ptrtoint(arguments[0], context.get_value_type(signature.return_type))


def stay_apart(_typing: Any) -> Any:
    """Forbid the inlining of the calling function."""
    return types.void(), _refuse_inlining


def _refuse_inlining(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
    builder.function.attributes.discard("alwaysinline")
    builder.function.attributes.add("noinline")
    return context.get_dummy_value()


def prefetch(_typing: Any, _address: Any) -> Any:
    """Request the cache line at an address."""
    return types.void(types.int64), _call_prefetch


def _call_prefetch(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(ir.VoidType(), [byte, number, number, number]), "llvm.prefetch.p0"
    )
    # Arguments: for writing, to be kept in all caches, data.
    builder.call(function, [builder.inttoptr(arguments[0], byte), number(1), number(3), number(1)])
    return context.get_dummy_value()


def tail(_typing: Any, words: Any, _start: Any) -> Any:
    """From words and a position to the words from there on."""
    return words(words, types.intp), _step


def sum_after(_typing: Any, words: Any, _position: Any) -> Any:
    """From int64 words and a position to the sum of the words after it, among the first LANES."""
    return types.int64(words, types.intp), _add_masked


def _add_masked(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    """Add with vectors of a fixed length: a loop would spend more on its bounds than on 16 additions."""
    words, position = arguments
    word, lanes = ir.IntType(64), ir.VectorType(ir.IntType(64), LANES)
    values = builder.load(builder.bitcast(words, lanes.as_pointer()), align=8)
    first = builder.insert_element(ir.Constant(lanes, ir.Undefined), position, ir.Constant(ir.IntType(32), 0))
    same = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    limits = builder.shuffle_vector(first, ir.Constant(lanes, ir.Undefined), same)
    is_after = builder.icmp_signed(">", ir.Constant(lanes, list(range(LANES))), limits)
    kept = builder.select(is_after, values, ir.Constant(lanes, [0] * LANES))
    add = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(word, [lanes]), f"llvm.vector.reduce.add.v{LANES}i64"
    )
    return builder.call(add, [kept])
