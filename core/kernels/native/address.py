"""Addresses: words that hold the addresses of compiled kernels, and calls through them.

A kernel that is called in the ordinary way is compiled into its caller. A kernel that is called through a
word is compiled once and separately, before or after its caller.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from core.kernels.native.signatures import resolved

numba: Any = importlib.import_module("numba")
cgutils: Any = importlib.import_module("numba.core.cgutils")
llvm: Any = importlib.import_module("llvmlite.binding")
ir: Any = importlib.import_module("llvmlite.ir")

NOT_COMPILED: Final = "kernel {} must be compiled before it is called: make a plan of a spec that names it"


class Addresses:
    """The addresses of some kernels of one signature; 0: not compiled yet."""

    def __init__(self, name: str, signature: str, n: int) -> None:
        """Take a unique name: cached code finds the words by it."""
        self.name = f"streamgrove.{name}"
        self.words = np.zeros(n, dtype=np.int64)
        numba_signature = resolved(signature)
        self._parameters, self._result = numba_signature.args, numba_signature.return_type
        llvm.add_symbol(self.name, self.words.ctypes.data)

    def write(self, number: int, dispatcher: Any) -> None:
        """Write the address of a kernel that numba has compiled for the signature."""
        (built,) = dispatcher.overloads.values()
        address = built.library.get_pointer_to_function(built.fndesc.llvm_func_name)
        if address == 0:
            msg = f"kernel={built.fndesc.qualname!r} must have an address"
            raise RuntimeError(msg)
        self.words[number] = address

    def call(self, function: Callable[..., Any]) -> Any:
        """Return a function for kernels that calls the only address, with the parameters of ``function``."""
        return self._intrinsic(
            [parameter.name for parameter in inspect.signature(function).parameters.values()]
        )

    def call_numbered(self, parameters: list[str]) -> Any:
        """Return a function for kernels that calls the address with a number, with these parameters."""
        return self._intrinsic(["member", *parameters])

    def _intrinsic(self, names: list[str]) -> Any:
        numbered = [numba.types.int64] if len(names) > len(self._parameters) else []

        def call(_typing: Any, *_given: Any) -> Any:
            return self._result(*numbered, *self._parameters), functools.partial(
                _call, self.name, bool(numbered)
            )

        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [inspect.Parameter(name, kind) for name in ["typing", *names]]
        )
        return numba.extending.intrinsic(call)


def _call(name: str, is_numbered: bool, context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Call the kernel at the address in a word; pass on its exception, or raise if there is no address."""
    calls, types, number = context.call_conv, signature.args, ir.Constant(ir.IntType(64), 0)
    if is_numbered:
        number, *arguments = arguments
        types = types[1:]
    pointer = calls.get_function_type(signature.return_type, types).as_pointer()
    words = builder.module.globals.get(name)
    if words is None:  # external: the linker finds it among the symbols
        words = ir.GlobalVariable(builder.module, pointer, name)
    function = builder.load(builder.gep(words, [number]))
    with cgutils.if_unlikely(builder, cgutils.is_null(builder, function)):
        calls.return_user_exc(builder, RuntimeError, (NOT_COMPILED.format(name),))
    status, result = calls.call_function(builder, function, signature.return_type, types, arguments)
    with cgutils.if_unlikely(builder, status.is_error):
        calls.return_status_propagate(builder, status)
    return result
