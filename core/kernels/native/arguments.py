"""Arguments: a check of an entry kernel's arguments that is cheaper than numba's.

numba determines the type of a record by code in Python, which takes some microseconds for each argument. The
functions here compare classes instead.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from core.kernels.native.record_types import RecordType

numba: Any = importlib.import_module("numba")
numpy_support: Any = importlib.import_module("numba.np.numpy_support")
types: Any = numba.types


def checked(function: Callable[..., Any], parameters: Sequence[Any]) -> Callable[..., Any] | None:
    """Return a compiled function with a check of its arguments; None: numba has to check them.

    numba checks arguments without records, for it is fast then, and tuples that contain arrays.
    """
    classes = [_class_of(parameter) for parameter in parameters]
    if None in classes or not any(isinstance(parameter, RecordType) for parameter in parameters):
        return None
    arrays = [
        (position, numpy_support.as_dtype(parameter.dtype), parameter.ndim)
        for position, parameter in enumerate(parameters)
        if isinstance(parameter, types.Array)
    ]

    def call(*arguments: Any) -> Any:
        for argument, kind in zip(arguments, classes, strict=True):
            if not isinstance(argument, kind):
                msg = f"argument {argument!r} must be of the class {kind.__name__}"
                raise TypeError(msg)
        for position, dtype, dimensions in arrays:
            array = arguments[position]
            if array.dtype != dtype or array.ndim != dimensions or not array.flags.carray:
                msg = f"array {array!r} must be {dtype}[{dimensions} dimensions], contiguous and writable"
                raise TypeError(msg)
        return function(*arguments)

    return call


def _class_of(parameter: Any) -> Any:
    """Return the class of the arguments for a parameter; object: a number; None: not known."""
    if isinstance(parameter, RecordType):
        return parameter.record
    if isinstance(parameter, types.Number | types.Boolean):
        return object
    if isinstance(parameter, types.Array):
        return np.ndarray if parameter.layout == "C" else None
    if isinstance(parameter, types.BaseNamedTuple):
        is_plain = all(isinstance(member, types.Number | types.Boolean) for member in parameter)
        return parameter.instance_class if is_plain else None
    return None
