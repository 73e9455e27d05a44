"""Utility: UFODT buys the feature with the largest utility per cost, until the class is decided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from core.active.acquirers.base import (
    MAX_TIMEOUT_MS,
    Acquirer,
    BuyingModel,
    Dependence,
    Floats,
    Ints,
    Mask,
    Step,
    affordable,
    costs,
)
from core.errors import ParameterError
from core.learners.protocol import Learner
from core.learners.ufodt import open_episode
from core.learners.ufodt.open_episode import OpenEpisode, Question, answer_next, hand_in
from core.plugin import count

FINISH: Final = "finish"
"""The words belong to another acquirer: the model was configured in between."""


@dataclass(frozen=True, slots=True)
class Plugin(Acquirer):
    """The feature with the largest utility per cost, until one class is left: ``{"name": "utility"}``.

    The default of ``ufodt``, and its method for streams (Rahbar, Ye, Chen and Chehreghani 2023, Algorithm 1).
    The hypotheses are drawn from the posterior at the moment when the record comes. The parameter
    ``record_budget`` of ``ufodt`` limits the cost of a record. When the label of a record comes, the model
    learns from it with the features that were bought. A frozen model requests in the same way, learns
    nothing, and answers with the mean of its posterior.
    """

    writes: ClassVar[bool] = True
    compiled_with: ClassVar[tuple[str, ...]] = (open_episode.__name__,)

    batch: int = count(1, at_least=1, at_most=1000)
    """Number of features that are requested at once: the best features, as far as the budget allows."""
    timeout_ms: int = count(60_000, at_least=1, at_most=MAX_TIMEOUT_MS)
    """How long an answer waits for its features, in ms of event time."""

    def check(self, learner: Learner) -> None:
        """Refuse a learner without hypotheses."""
        if learner.name != "ufodt":
            msg = f"acquire='utility' must go with the learner 'ufodt', not {learner.spelled!r}; take 'path'"
            raise ParameterError(msg)

    def open(self, model: BuyingModel, x: Floats, unknown: Mask, number: int, frozen: bool) -> Ints:
        """Draw the episode. For a frozen model the draw depends on the record's number alone."""
        episode = OpenEpisode.begin(model, x, number=number if frozen else -1)
        for column in np.flatnonzero(~unknown).tolist():
            if episode.is_unknown(column):  # a value without an outcome in the episode
                episode.observe(column, np.nan)
        return episode.packed()

    def step(self, model: BuyingModel, words: Ints, x: Floats, unknown: Mask, left: float) -> Step:
        episode = OpenEpisode.unpacked(model.plan, words)
        if episode is None:
            return Step(stop=FINISH)
        question = episode.next_feature()
        if question.feature is None:
            return Step(stop=question.reason or FINISH, words=episode.packed())
        columns = self._best(model, episode, question)
        return Step(columns, utility=question.utility, words=episode.packed())

    def observe(self, model: BuyingModel, words: Ints, column: int, value: float) -> Ints:
        episode = OpenEpisode.unpacked(model.plan, words)
        if episode is None or not episode.is_unknown(column):
            return words
        episode.observe(column, value)
        return episode.packed()

    def depends_on(self, x: Floats, unknown: Mask) -> Dependence:
        """Return NOTHING: an episode that is open does not read the model."""
        return Dependence.NOTHING

    def hand_in(self, model: BuyingModel, words: Ints, *, answered: bool = False) -> None:
        episode = OpenEpisode.unpacked(model.plan, words)
        if episode is None:
            return
        if answered:
            episode.close()
            hand_in(model, episode)
        else:
            answer_next(model, episode)

    def _best(self, model: BuyingModel, episode: OpenEpisode, question: Question) -> tuple[int, ...]:
        """Return the columns with the best utility per cost, the best column first."""
        first, utility = question.feature, np.array(question.utilities)
        assert first is not None
        if self.batch == 1:
            return (first,)
        ratio = utility if model.spec.learner.criterion == "random" else utility / costs(model.schema)
        others = [c for c in np.argsort(-ratio, kind="stable").tolist() if utility[c] >= 0.0 and c != first]
        budget = model.spec.learner.record_budget
        left = budget - episode.cost - costs(model.schema)[first] if budget > 0.0 else np.inf
        return (first, *affordable(model.schema, others, left)[: self.batch - 1])
