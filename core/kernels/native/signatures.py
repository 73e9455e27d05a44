"""Signatures of kernels as text: names of numba's types, and of the records and tuples of this project."""

from __future__ import annotations

import importlib
from typing import Any

numba: Any = importlib.import_module("numba")

_names: dict[str, Any] = {}


def name_type(name: str, numba_type: Any) -> None:
    """Let signatures use a name for a type; a name stands for one type only."""
    registered = _names.setdefault(name, numba_type)
    if registered is not numba_type:
        msg = (
            f"name={name!r} must name one type in signatures, not {registered} and {numba_type}; "
            "rename one class"
        )
        raise TypeError(msg)


def resolved(signature: str, others: dict[int, Any] | None = None) -> Any:
    """Return numba's signature of a text such as ``int64(PlanRecord, Tree, Row)``.

    others: types, by the number of a parameter, that take the place of those in the text. They must have the
    same representation, as all records have.
    """
    scope = {**vars(numba.types), **_names}
    signature_type = eval(signature, scope)  # noqa: S307
    parameters = [
        (others or {}).get(number, parameter) for number, parameter in enumerate(signature_type.args)
    ]
    return signature_type.return_type(*parameters)
