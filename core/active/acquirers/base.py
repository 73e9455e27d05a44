"""Acquirers: active feature acquisition, feature by feature, before a record is answered.

An *episode* covers one record from the first request for a feature to the answer. Its owner (the task) keeps
the record, the unknown features, the cost so far, and the episode's words; the acquirer decides the next
step. Every step is a function of model, words and record: an episode that is repeated requests the same
features.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar, Final, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from core.learners.protocol import Learner
from core.plugin import Parameters
from core.schema.schema import Columns, Schema

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

ONE_REGION: Final = "one_region"
"""The known features decide the answer: one decision region is left, or one leaf of a tree."""
NONE_LEFT: Final = "none_left"
"""No hypothesis agrees with the known features."""
EXHAUSTED: Final = "exhausted"
"""No feature is left to request."""
BUDGET: Final = "budget"
"""The next feature costs more than the record's budget has left."""

MAX_TIMEOUT_MS: Final = 600_000
"""Largest timeout. Early labels wait for the answer of their instance as long."""


class Dependence(IntEnum):
    """The answers of a model that may change the next step of another record's episode."""

    NOTHING = 0
    """No answer does."""
    LABELS = 1
    """An answer whose record has a label, which the model learns at once."""
    ANSWERS = 2
    """Any answer."""


class BuyingModel(Protocol):
    """The parts of a model that an acquirer uses."""

    plan: Any
    ints: Any

    @property
    def spec(self) -> Any:
        """The model's spec."""

    @property
    def schema(self) -> Schema:
        """The schema of the model's records."""

    @property
    def first(self) -> int:
        """First word of the block that answers."""


class Step(NamedTuple):
    """The next step of an episode: request features, or answer if there are none."""

    features: tuple[int, ...] = ()
    """Columns of the features that are requested together."""
    stop: str = ""
    """Reason to stop; empty if features are requested."""
    utility: float = math.nan
    """Utility of the (first) feature; NaN: the acquirer does not report it."""
    words: Any = None
    """int64[w]: the new words of the episode, None: unchanged."""


@dataclass(frozen=True, slots=True)
class Acquirer(Parameters, ABC):
    """Decides before the answer, per record, which features to buy."""

    family: ClassVar[str] = "acquirers"
    buys: ClassVar[bool] = True
    """Whether the acquirer may buy features; if not, records are answered as they came."""
    writes: ClassVar[bool] = False
    """Whether ``open`` and ``hand_in`` change a model that is not frozen; labels then need their episodes."""
    compiled_with: ClassVar[tuple[str, ...]] = ()
    """Modules of the kernels that the acquirer calls, compiled before its first plan exists."""

    @property
    def timeout_ms(self) -> int:
        """Return how long an answer waits for features, in ms of event time; usually a parameter."""
        return MAX_TIMEOUT_MS

    @property
    def limit(self) -> float:
        """Return the most that the features of a record may cost."""
        return math.inf

    def check(self, learner: Learner) -> None:
        """Raise ParameterError if the acquirer does not support a learner."""

    def open(self, model: BuyingModel, x: Floats, unknown: Mask, number: int, frozen: bool) -> Ints:
        """Return the words of a new episode (int64[w]).

        x: float64[d] in the model's columns; unknown: bool[d], the features that may be requested; number:
        the record's number, which determines random draws; frozen: nothing will be learned from the record.
        """
        return np.zeros(0, dtype=np.int64)

    @abstractmethod
    def step(self, model: BuyingModel, words: Ints, x: Floats, unknown: Mask, left: float) -> Step:
        """Return the next step of an episode; left: what the record may still cost."""

    def observe(self, model: BuyingModel, words: Ints, column: int, value: float) -> Ints:
        """Return the words of an episode after a value came (NaN: a value that the model does not have)."""
        return words

    def depends_on(self, x: Floats, unknown: Mask) -> Dependence:
        """Return which answers to other records may change what this episode's next call returns.

        The model gives such answers before that call, all others are answered together. ``open`` of an
        acquirer that writes depends on every answer.
        """
        return Dependence.ANSWERS

    def hand_in(self, model: BuyingModel, words: Ints, *, answered: bool = False) -> None:
        """Give a model that is not frozen the episode of the record that it answers next.

        ``answered``: the answer was given earlier, and the model learns the record's label next.
        """

    def weight(self, words: Ints) -> float:
        """Return the inverse of the probability with which this part of the record was to be bought."""
        return 1.0


_COSTS: Final[WeakKeyDictionary[Columns, Floats]] = WeakKeyDictionary()


def costs(schema: Schema) -> Floats:
    """Return float64[d]: the cost of a value of each attribute; 1 where the schema does not declare it."""
    price = _COSTS.get(schema.columns)
    if price is None:
        price = np.array([attribute.cost for attribute in schema.attributes], dtype=np.float64)
        price.flags.writeable = False
        _COSTS[schema.columns] = price
    return price


def affordable(schema: Schema, columns: Sequence[int], left: float) -> tuple[int, ...]:
    """Return the columns that may be bought together, in order: each price must fit into the rest."""
    price, bought = costs(schema), []
    for column in columns:
        if price[column] <= left:
            bought.append(column)
            left -= float(price[column])
    return tuple(bought)
