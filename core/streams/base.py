"""Base of all generators: options, schema, batches; and the lookup by name or by address.

Randomness has two flavours. ``counter`` (default): record i depends on the seed and on i alone, so that a
stream can be started at any record and cut in any way. ``java``: the draws of java.util.Random in MOA's
order, so that MOA's streams can be replayed bit by bit; to start at record i, the i records before it are
generated.

Two options are those of all streams: ``label_noise`` replaces labels, and ``recurring`` (of an address) lets
a second concept come and go (core/streams/drift.py).
"""

from __future__ import annotations

import dataclasses
import urllib.parse
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from core import registry, spelling
from core.errors import ParameterError
from core.kernels.jit import kernel
from core.numeric import rng
from core.plugin import Parameters, check, choice, count, number
from core.schema.schema import Schema

Batch = tuple[npt.NDArray[np.float64], npt.NDArray[np.int32]]
Writer = Callable[[int, npt.NDArray[np.float64], npt.NDArray[np.int32]], Any]

SCHEME = "gen:"
LARGEST_SEED: Final = 2**63 - 1
RECURRING = "recurring"
"""The option of an address: records until the second concept begins, and until the first one returns."""


@dataclass(frozen=True, slots=True)
class Generator(Parameters):
    """A stream: ``schema`` defines its columns and class codes, ``batches`` yields the records."""

    family: ClassVar[str] = "streams"

    seed: int = count(1, at_most=LARGEST_SEED)
    rng: str = choice("counter", "counter", "java")
    label_noise: float = number(0.0, at_least=0.0, at_most=1.0)
    """Share of records with another class than the concept's, each equally likely; drawn by record number."""

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """The attributes, and the classes in the order of their codes."""

    @abstractmethod
    def writer(self) -> Writer:
        """Return a function that fills x float64[m, d] and y int32[m] with the records from ``first`` on.

        In the java flavour the function starts a new sequence; calls must continue each other from record 0
        on.
        """

    def noisy_writer(self) -> Writer:
        """Return ``writer`` with the noise of labels."""
        write, n_classes = self.writer(), self.schema.n_classes
        if self.label_noise == 0.0 or n_classes < 2:
            return write
        key = rng.stream_key(self.seed, rng.GENERATOR_LABEL)

        def write_with_noise(first: int, x: npt.NDArray[np.float64], y: npt.NDArray[np.int32]) -> None:
            write(first, x, y)
            _replace_labels(key, self.label_noise, n_classes, first, y)

        return write_with_noise

    @property
    def next_seed(self) -> int:
        """The seed of the records of a second concept."""
        return self.seed % LARGEST_SEED + 1

    def other_concept(self) -> Generator | None:
        """Return a stream of another concept with the same attributes and classes; None: it has only one.

        It is the next of its functions, or the concept of the next ``model_seed``. Its records are others,
        by the next ``seed``.
        """
        fields = {field.name: field for field in dataclasses.fields(self)}
        for option in ("function", "model_seed"):
            if option in fields:
                last = fields[option].metadata["rules"]["at most"]
                following = getattr(self, option) % last + 1
                return dataclasses.replace(self, seed=self.next_seed, **{option: following})
        return None

    def batches(self, n: int | None = None, size: int = 8192, *, start: int = 0) -> Iterator[Batch]:
        """Yield the records ``start`` to ``start + n`` (None: for ever) as (x float64[m, d], y int32[m])."""
        write = self.noisy_writer()
        if self.rng == "java":
            for first in range(0, start, size):
                write(first, *self._columns(min(size, start - first)))
        position, end = start, None if n is None else start + n
        while end is None or position < end:
            x, y = self._columns(size if end is None else min(size, end - position))
            write(position, x, y)
            yield x, y
            position += len(y)

    def take(self, n: int, *, start: int = 0) -> Batch:
        """Return n records as one pair of arrays."""
        x, y = self._columns(n)
        n_filled = 0
        for some_x, some_y in self.batches(n, start=start):
            x[n_filled : n_filled + len(some_y)], y[n_filled : n_filled + len(some_y)] = some_x, some_y
            n_filled += len(some_y)
        return x, y

    def _columns(self, n: int) -> Batch:
        return np.empty((n, self.schema.n_attributes)), np.empty(n, np.int32)


def open_generator(name: str, **options: Any) -> Generator:
    """Return the generator of that name, for example ``open_generator("sea", function=2, seed=7)``."""
    plugin: type[Generator] = registry.plugin("streams", name)
    fields = {field.name: field for field in dataclasses.fields(plugin)}
    period = None if RECURRING in fields else options.pop(RECURRING, None)
    for option in options:
        if option not in fields:
            known = spelling.known(option, sorted({*fields, RECURRING}))
            msg = f"unknown option {option!r} of generator {name!r}; {known}"
            raise ParameterError(msg)
    generator = plugin(**options)
    return generator if period is None else _with_second_concept(generator, period)


def _with_second_concept(generator: Generator, period: float) -> Generator:
    """Return a stream whose concept changes after each ``period`` records, to and fro; 0: never."""
    period = check(RECURRING, period, {"type": float, "rules": {"at least": 0.0}})
    if period == 0.0:
        return generator
    before = dataclasses.replace(generator, label_noise=0.0)
    after = before.other_concept()
    if after is None:
        msg = (
            f"recurring={period:g} must be left out: {generator.name!r} has no second concept of its own; "
            f"give two streams: gen:drift?before=({generator.name})&after=({generator.name}?…)"
            f"&position={period:g}&width=1&recurring={period:g}"
        )
        raise ParameterError(msg)
    return open_generator(
        "drift",
        seed=generator.seed,
        rng=generator.rng,
        label_noise=generator.label_noise,
        before=before,
        after=after,
        position=period,
        width=1.0,
        recurring=period,
    )


def parse_address(address: str) -> tuple[Generator, int | None]:
    """Return generator and number of records (None: endless) of ``gen:NAME?option=value&…&n=1000000``."""
    if not address.startswith(SCHEME):
        msg = f"address={address!r} must look like gen:sea?function=1&noise=0.1&seed=1&n=1000000"
        raise ParameterError(msg)
    name, _, query = address[len(SCHEME) :].partition("?")
    plugin: type[Generator] = registry.plugin("streams", name)
    types = {RECURRING: float}
    types |= {field.name: field.metadata.get("type", str) for field in dataclasses.fields(plugin)}
    options: dict[str, Any] = {}
    n: int | None = None
    for option, text in _pairs(address, query):
        if option == "n":
            n = _value("n", text, int)
            if n < 0:
                msg = f"n={n} must be at least 0"
                raise ParameterError(msg)
        elif option in types:
            options[option] = _value(option, text, types[option])
        else:
            listed = spelling.known(option, sorted([*types, "n"]))
            msg = f"unknown option {option!r} of generator {name!r}; {listed}"
            raise ParameterError(msg)
    return open_generator(name, **options), n


def _pairs(address: str, query: str) -> list[tuple[str, str]]:
    """Return the options of an address in order; a value in brackets may contain an address."""
    pairs = []
    for part in _parts(query) if query else []:
        name, equals, text = part.partition("=")
        if not equals or not name:
            msg = f"address={address!r} must have options of the form name=value, joined by '&', not {part!r}"
            raise ParameterError(msg)
        if text.startswith("(") and text.endswith(")"):
            pairs.append((name, text[1:-1]))
        else:
            pairs.append((urllib.parse.unquote_plus(name), urllib.parse.unquote_plus(text)))
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        msg = f"address={address!r} must name every option once"
        raise ParameterError(msg)
    return pairs


def _parts(query: str) -> list[str]:
    """Split a query at each '&' that is outside of brackets."""
    parts, depth, begun = [], 0, 0
    for position, letter in enumerate(query):
        depth += (letter == "(") - (letter == ")")
        if letter == "&" and depth <= 0:
            parts.append(query[begun:position])
            begun = position + 1
    return [*parts, query[begun:]]


def _value(option: str, text: str, kind: type) -> Any:
    """Return an option's text in its declared type; the plug-in checks the range."""
    try:
        if kind is bool:
            return {"true": True, "false": False, "1": True, "0": False}[text.lower()]
        return kind(text)
    except (ValueError, KeyError) as error:
        words = {bool: "true or false", int: "a whole number", float: "a number"}
        msg = f"{option}={text!r} must be {words[kind]}"
        raise ParameterError(msg) from error


@kernel("void(uint64, float64, int64, int64, int32[::1])")
def _replace_labels(key, share: float, classes: int, first: int, y: npt.NDArray[np.int32]) -> None:
    """Replace a share of the labels y int32[m] of the records from ``first`` on: two draws of each record."""
    for row in range(y.size):
        draw = (first + row) << rng.DRAW_BITS
        if rng.uniform(key, draw) < share:
            y[row] = (y[row] + 1 + rng.integer(key, draw + 1, classes - 1)) % classes
