"""Plug-ins: parameters are dataclass fields, checked when the plug-in is built.

    @dataclass(frozen=True, slots=True)
    class Plugin(Bound):
        delta: float = number(1e-7, above=0.0, below=1.0)

The error text has the value and the rule: ``delta=1.5 must be below 1.0``.

A plug-in with words in a model declares how they can be invalid: its module has ``PROBLEMS``, a tuple of
sentences, and a kernel ``problem`` that returns the number of the sentence that applies, from 1 on, or 0. It
must check every word that another kernel uses as an index, a count or a bound (core/model/soundness.py). If
no word is used so, ``PROBLEMS`` is empty.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from core import spelling
from core.errors import ParameterError
from core.kernels.records import Record, parameter_record


def number(
    default: float,
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
) -> Any:
    """Declare a float parameter with its range."""
    rules = {"at least": at_least, "above": above, "at most": at_most, "below": below}
    return dataclasses.field(default=default, metadata={"type": float, "rules": rules})


def period(default: float) -> Any:
    """Declare a labelled weight between recurring actions, or before the first action."""
    return number(default, at_least=1e-6, at_most=1e12)


MAX_COUNT: Final = 10**12
"""Largest count: kernels get parameters as float64, which represent it exactly."""


def count(default: int, *, at_least: int = 0, at_most: int = MAX_COUNT) -> Any:
    """Declare an integer parameter with its range."""
    rules = {"at least": at_least, "at most": at_most}
    return dataclasses.field(default=default, metadata={"type": int, "rules": rules})


def flag(default: bool) -> Any:
    """Declare a parameter that is true or false."""
    return dataclasses.field(default=default, metadata={"type": bool, "rules": {}})


def choice(default: str | None, *options: str | None) -> Any:
    """Declare a parameter with a fixed set of words (None stands for "off")."""
    return dataclasses.field(default=default, metadata={"options": options})


@dataclass(frozen=True, slots=True)
class Parameters:
    """Checked, frozen parameters; ``to_dict`` returns them."""

    family: ClassVar[str]
    NUMBERS: ClassVar[tuple[str, ...]] = ()
    """Names of what ``constants`` returns, for plug-ins that define it; else of the numeric parameters."""

    def __post_init__(self) -> None:
        for declared in dataclasses.fields(self):
            if declared.metadata:
                value = check(declared.name, getattr(self, declared.name), declared.metadata)
                object.__setattr__(self, declared.name, value)

    @property
    def name(self) -> str:
        """The plug-in's name: the name of its file."""
        return type(self).__module__.rpartition(".")[2]

    @property
    def spelled(self) -> str:
        """The plug-in's name as a spec spells it."""
        return spelling.of_spec(self.family, self.name)

    def to_dict(self) -> dict[str, Any]:
        """Return name and parameters as a spec writes them."""
        return {"name": self.spelled} | {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}

    def continues(self, before: Parameters) -> bool:
        """Return whether a model's state means the same under these parameters as under ``before``."""
        return self.name == before.name

    @classmethod
    @functools.cache
    def record(cls) -> type[Record]:
        """Return the record in which kernels find the numeric parameters by name, all as float64."""
        return parameter_record(cls, cls.NUMBERS or cls._numeric())

    def numbers(self) -> Record:
        """Return the numeric parameters as the record that kernels get."""
        floats = np.array([*self.constants(), 0.0])  # never empty
        return self.record()(floats.view(np.int64), floats, 0)

    @classmethod
    def _numeric(cls) -> tuple[str, ...]:
        return tuple(f.name for f in dataclasses.fields(cls) if f.metadata.get("type"))

    def constants(self) -> tuple[float, ...]:
        """Return the numeric parameters in the order of their fields, for the kernels."""
        return tuple(float(getattr(self, name)) for name in self._numeric())


def made_of(plugin: Any, parameters: dict[str, Any], owner: str) -> Any:
    """Return a plug-in with these parameters; raise ParameterError for one that it does not have."""
    names = [f.name for f in dataclasses.fields(plugin)]
    for name, value in parameters.items():
        if name not in names:
            msg = f"{name}={value!r} is no parameter of {owner!r}; {spelling.known(name, names)}"
            raise ParameterError(msg)
    return plugin(**parameters)


def check(name: str, value: Any, metadata: Any) -> Any:
    """Return a parameter's value in its declared type; raise ParameterError if it is refused."""
    if "options" in metadata:
        if value not in metadata["options"]:
            options = ", ".join("null" if o is None else repr(o) for o in metadata["options"])
            msg = f"{name}={value!r} must be one of {options}"
            raise ParameterError(msg)
        return value
    value = _typed(name, value, metadata["type"])
    for rule, limit in metadata["rules"].items():
        if limit is not None and not _HOLDS[rule](value, limit):
            msg = f"{name}={value} must be {rule} {limit}"
            raise ParameterError(msg)
    return value


def _typed(name: str, value: Any, kind: type) -> Any:
    number_given = isinstance(value, int | float) and not isinstance(value, bool)
    if kind is bool and isinstance(value, bool):
        return value
    if kind is int and number_given and (isinstance(value, int) or value.is_integer()):
        return int(value)
    if kind is float and number_given and abs(value) <= sys.float_info.max:  # neither inf, nan nor 10**400
        return float(value)
    words = {bool: "true or false", float: "a finite number", int: "a whole number"}
    msg = f"{name}={value!r} must be {words[kind]}"
    raise ParameterError(msg)


_HOLDS = {
    "at least": lambda value, limit: value >= limit,
    "above": lambda value, limit: value > limit,
    "at most": lambda value, limit: value <= limit,
    "below": lambda value, limit: value < limit,
}
