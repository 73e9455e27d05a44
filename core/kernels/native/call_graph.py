"""Call graph: the kernels that a kernel may call through an address, found by the names in its code."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from types import CodeType, ModuleType
from typing import Any

from core.kernels.native.inner_kernel import InnerKernel


def calls(function: Callable[..., Any], ids: Container[int]) -> Iterator[int]:
    """Yield the ids of the wanted objects that a function, or an inner kernel that it calls, names.

    An attribute name is looked up in every module that is named, so that the result may have a few ids too
    many.
    """
    waiting, seen = [function], {id(function)}
    while waiting:
        for named in _named(waiting.pop()):
            if id(named) in seen:
                continue
            seen.add(id(named))
            if id(named) in ids:
                yield id(named)
            if isinstance(named, InnerKernel):
                waiting.append(named.py_func)


def _named(function: Any) -> Iterator[Any]:
    names = set(_names(function.__code__))
    for name in names:
        named = function.__globals__.get(name)
        yield named
        if isinstance(named, ModuleType):
            yield from (getattr(named, attribute, None) for attribute in names)
    yield from (cell.cell_contents for cell in function.__closure__ or ())


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
