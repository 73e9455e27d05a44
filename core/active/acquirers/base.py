"""Acquirers: active feature acquisition, feature by feature, before a record is answered.

An *episode* is what goes on for one record from the first question to the answer. Its owner (the task) keeps
the record, which features are unknown, what was paid, and the episode's words; an acquirer is asked for the
next step. Everything is a function of model, words and record: the same episode asks the same.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from core.learners.protocol import Learner
from core.plugin import Parameters
from core.schema.schema import Schema

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

ONE_REGION: Final = "one_region"
"""What is known decides the answer: one decision region is left, of a tree one leaf."""
NONE_LEFT: Final = "none_left"
"""No hypothesis is left that agrees with what is known."""
EXHAUSTED: Final = "exhausted"
"""There is nothing left to ask for."""
BUDGET: Final = "budget"
"""What it would ask for costs more than is left for the record."""

MAX_TIMEOUT_MS: Final = 600_000
"""Labels wait as long for the answer of their instance (early labels)."""


class BuyingModel(Protocol):
    """A model, as an acquirer sees it."""

    plan: Any
    ints: Any

    @property
    def spec(self) -> Any:
        """What it was built from."""

    @property
    def schema(self) -> Schema:
        """What its records look like."""

    @property
    def first(self) -> int:
        """First word of the block that answers."""


class Step(NamedTuple):
    """What to do next: ask for features, or (none) answer."""

    features: tuple[int, ...] = ()
    """Columns, those to ask for together."""
    stop: str = ""
    """Why nothing more is asked for; empty if something is."""
    utility: float = math.nan
    """How much the (first) feature is wanted; NaN: the acquirer does not say."""
    words: Any = None
    """int64[w]: the episode's words from now on, None: they stay."""


@dataclass(frozen=True, slots=True)
class Acquirer(Parameters, ABC):
    """Decides before the answer, per record, which features to buy (ALGORITHMS sections 19 and 20)."""

    family: ClassVar[str] = "acquirers"
    buys: ClassVar[bool] = True
    """It may buy; else records are answered with what they bring."""
    writes: ClassVar[bool] = False
    """``open`` and ``hand_in`` change a model that is not frozen; labels are learned with their episodes."""
    compiled_with: ClassVar[tuple[str, ...]] = ()
    """Modules of the kernels that it calls, compiled before there is a plan with it."""

    @property
    def timeout_ms(self) -> int:
        """Return how long an answer waits for features, in ms of event time; a parameter of most."""
        return MAX_TIMEOUT_MS

    @property
    def limit(self) -> float:
        """Return what a record may cost."""
        return math.inf

    def check(self, learner: Learner) -> None:
        """Raise ParameterError if it cannot go with a learner."""

    def open(self, model: BuyingModel, x: Floats, unknown: Mask, number: int, frozen: bool) -> Ints:
        """Return the words of a new episode (int64[w]).

        x: float64[d] in the model's columns; unknown: bool[d], the features that may be asked for; number:
        of the record, of which random draws are a function; frozen: nothing will be learned from it.
        """
        return np.zeros(0, dtype=np.int64)

    @abstractmethod
    def step(self, model: BuyingModel, words: Ints, x: Floats, unknown: Mask, left: float) -> Step:
        """Return what to do next; left: what the record may still cost."""

    def observe(self, model: BuyingModel, words: Ints, column: int, value: float) -> Ints:
        """Return the words of an episode for which a value came (NaN: none that the model can place)."""
        return words

    def hand_in(self, model: BuyingModel, words: Ints, *, answered: bool = False) -> None:
        """Let a model that is not frozen know the episode of the record that it is about to answer.

        ``answered``: the answer was given before, and the record's label is what it learns next.
        """

    def weight(self, words: Ints) -> float:
        """Return the inverse of the probability with which so much of the record was to be bought."""
        return 1.0


def costs(schema: Schema) -> Floats:
    """Return float64[d]: what a value of each attribute costs; 1 where the schema does not say."""
    return np.array([attribute.cost for attribute in schema.attributes], dtype=np.float64)


def affordable(schema: Schema, columns: Sequence[int], left: float) -> tuple[int, ...]:
    """Return those of the columns that may be bought together, each if its price is still left."""
    price, found = costs(schema), []
    for column in columns:
        if price[column] <= left:
            found.append(column)
            left -= float(price[column])
    return tuple(found)
