"""Open episode: an episode in a separate buffer, whose questions and answers come from outside a run.

    episode = OpenEpisode.begin(model, known)        # known: float64[d], NaN where it has to be bought
    question = episode.next_feature()                # feature None: it has a reason to stop
    episode.observe(question.feature, 3.5)
    shares = episode.finish(model)                   # enters the account
    hand_in(model, episode)                          # and the next label of the model is this episode's

With ``answer_next(model, episode)`` instead of ``finish``, the model's next answer is that of this episode,
as if the model had bought the same features.

Its words (int64) are its whole state: episodes with equal plan and words continue alike. Beginning, finishing
and handing in write to the model; questions and answers between them do not read it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from core.errors import SchemaError, SnapshotError
from core.kernels import jit
from core.kernels.jit import kernel, row_of, words_at
from core.layout.model import WORD, Floats, Ints, ModelHeader
from core.layout.plan import plan_at
from core.learners.ufodt import answering, hypotheses
from core.learners.ufodt import episode as ep
from core.learners.ufodt import words as w
from core.learners.ufodt.shared import MOST_EPISODES, REASONS, account_of
from core.learners.ufodt.words import Episode, UfodtBlock, parameters_of
from core.tree import allocation


@dataclass(frozen=True, slots=True)
class Question:
    """The next question of an episode."""

    feature: int | None
    """The column; None: the episode stops."""
    reason: str | None
    """The reason to stop (shared.py:REASONS)."""
    utility: float
    """The score that the feature was chosen by, not divided by its cost."""
    utilities: tuple[float, ...]
    """The utility of each feature that may be requested, -1 for the rest, to request several at once."""


@kernel("void(int64, int64, int64, int64, float64[:, ::1], float64, int64)", alone=True)
def _begin(
    plan_address: int, address: int, first: int, episode_address: int, x, budget: float, number: int
) -> None:
    """Open an episode outside the model's words; x: float64[1, d], NaN: not known.

    first: the first word of the block that answers. number: the episode's; below 0: the model's next number,
    which is counted.
    """
    plan, episode = plan_at(plan_address), _episode_at(episode_address)
    ints, floats = words_at(address)
    block, values = UfodtBlock(ints, floats, first), row_of(x, 0)
    account, episode_number = account_of(plan, block), number & (MOST_EPISODES - 1)
    if number < 0:
        episode_number = account.episodes & (MOST_EPISODES - 1)
        account.episodes = episode_number + 1
    ep.begin(plan, block, episode, episode_number, budget)
    for column in range(plan.attributes):
        if w.outcome_of(plan, episode, column, values[column]) >= 0:
            ep.observe(plan, episode, column, values[column], w.KNOWN)


@kernel
def _episode_at(address: int) -> Episode:
    """Return the episode at an address."""
    ints, floats = words_at(address)
    return Episode(ints, floats, 0)


@kernel("int64(int64, int64, float64[:, ::1], boolean)", alone=True)
def _look(plan_address: int, episode_address: int, out, answers: bool) -> int:
    """Return the next feature and write the utilities; or, with ``answers``, the class and its shares."""
    plan, episode = plan_at(plan_address), _episode_at(episode_address)
    words = hypotheses.workspace(plan, episode)
    space, results = hypotheses.space_in(words), row_of(out, 0)
    if episode.classes > 0:
        hypotheses.build(plan, episode, space)
    if answers:
        best = ep.answer(plan, episode, space, results)
    else:
        best = ep.plan_next(plan, episode, space)
        if best >= 0:
            for column in range(plan.attributes):
                results[column] = space.utilities[column]
    words[0] = 0  # the workspace is alive up to here
    return best


@kernel("boolean(int64, int64, int64, float64)", alone=True)
def _observe(plan_address: int, episode_address: int, column: int, value: float) -> bool:
    return ep.observe(plan_at(plan_address), _episode_at(episode_address), column, value, w.BOUGHT)


@kernel("int64(int64, int64, int64, int64, float64[:, ::1], int64)", alone=True)
def _finish(plan_address: int, address: int, first: int, episode_address: int, out, best: int) -> int:
    """Enter an answered episode into the account; return the class: best, or the posterior's.

    first: the first word of the block that answers.
    """
    plan, episode = plan_at(plan_address), _episode_at(episode_address)
    ints, floats = words_at(address)
    block = UfodtBlock(ints, floats, first)
    if parameters_of(plan).by_posterior != 0.0:
        best = answering.answer_observed(plan, block, episode, row_of(out, 0))
    ep.enter(plan, block, episode)
    return best


class OpenEpisode:
    """An episode of a model, in separate words."""

    __slots__ = ("plan", "words")

    def __init__(self, plan: Any, words: Ints) -> None:
        """Take a plan (core/plan.py:Plan) of UFODT and int64[plan.blocks.episode_words]."""
        self.plan = plan
        self.words = words
        jit.register(words)

    @classmethod
    def begin(
        cls, model: Any, values: Floats, budget: float | None = None, *, number: int = -1
    ) -> OpenEpisode:
        """Open an episode; known: float64[d], NaN where it has to be bought; budget: default the spec's.

        number: the number that its random numbers follow from, and the model stays as it is; below 0: the
        model's next number.
        """
        plan = model.plan
        if budget is None:
            budget = plan.spec.learner.record_budget
        words = allocation.aligned_words(plan.blocks.episode_words)
        episode = cls(plan, words)
        x = np.ascontiguousarray(values, dtype=np.float64).reshape(1, -1)
        if x.shape[1] != plan.schema.n_attributes:
            msg = f"known must have {plan.schema.n_attributes} values, one per attribute, not {x.shape[1]}"
            raise SchemaError(msg)
        addresses = plan.address, model.ints.ctypes.data, model.first, words.ctypes.data
        _begin(*addresses, x, float(budget), number)
        return episode

    @classmethod
    def resume(cls, plan: Any, data: bytes) -> OpenEpisode:
        """Return the episode of ``to_bytes``; SnapshotError if the bytes are no episode of this plan."""
        n = plan.blocks.episode_words
        if len(data) != n * WORD:
            msg = f"episode has {len(data)} bytes; with this schema it must have {n * WORD}"
            raise SnapshotError(msg)
        words = allocation.aligned_words(n)
        words[:] = np.frombuffer(data, dtype="<i8")
        if (problem := plan.blocks.episode_problem(words)) is not None:
            raise SnapshotError(problem)
        return cls(plan, words)

    def to_bytes(self) -> bytes:
        """Return the state of the episode."""
        return self.words.astype("<i8").tobytes()

    def packed(self) -> Ints:
        """Return int64[n]: the state, and the size of its schema: classes, room of nominal attributes."""
        dims = self.plan.words.dims
        return np.concatenate((np.array([dims.classes, *dims.rooms], dtype=np.int64), self.words))

    @classmethod
    def unpacked(cls, plan: Any, packed: Ints) -> OpenEpisode | None:
        """Return the episode of ``packed``; None if it is invalid. The plan's schema may have grown since."""
        dims = plan.words.dims
        head = 1 + len(dims.rooms)
        if len(packed) <= head:
            return None
        was = replace(dims, classes=int(packed[0]), rooms=tuple(packed[1:head].tolist()))
        before = plan.blocks if was == dims else plan.spec.learner.blocks(was)
        if len(packed) - head != before.episode_words:
            return None
        words = allocation.aligned_words(plan.blocks.episode_words)
        if before is plan.blocks:
            words[:] = packed[head:]
        else:
            plan.blocks.copy_episode(before, packed[head:].copy(), words)
        return None if plan.blocks.header_problem(words) is not None else cls(plan, words)

    def carry(self, plan: Any) -> OpenEpisode:
        """Return the episode under the plan of a schema that has grown."""
        words = allocation.aligned_words(plan.blocks.episode_words)
        plan.blocks.copy_episode(self.plan.blocks, self.words, words)
        return OpenEpisode(plan, words)

    def next_feature(self) -> Question:
        """Return the next question; a repeated call returns the same one."""
        utilities = np.full((1, self.plan.schema.n_attributes), -1.0)
        feature = int(_look(self.plan.address, self.words.ctypes.data, utilities, False))
        return Question(
            feature if feature >= 0 else None,
            None if feature >= 0 else self.reason,
            float(self.header.utility),
            tuple(utilities[0].tolist()),
        )

    def observe(self, feature: int, value: float) -> bool:
        """Take in a value that was bought (the code of a nominal one); return whether it is charged.

        False: the value is missing (NaN) or has no outcome in the episode; the feature is unavailable then.
        Raises SchemaError for a feature that cannot be requested (any more).
        """
        if self.header.state != w.OPEN or not self.is_unknown(feature):
            msg = f"feature={feature} must be one that the episode may still ask for"
            raise SchemaError(msg)
        return bool(_observe(self.plan.address, self.words.ctypes.data, feature, float(value)))

    def predict(self) -> tuple[int, Floats]:
        """Return class (-1: none is known) and float64[K] shares given the observations so far.

        They are computed with the episode's theta, without the model.
        """
        header = self.header
        state = header.state
        shares = np.zeros((1, max(self.plan.schema.n_classes, 1)))
        best = int(_look(self.plan.address, self.words.ctypes.data, shares, True))
        header.state = state
        return best, shares[0]

    def finish(self, model: Any) -> tuple[int, Floats]:
        """Return the prediction, and enter the episode into the model's account; it has no more questions."""
        if self.header.state != w.OPEN:
            return self.predict()
        best, shares = self.predict()
        self.header.state = w.ANSWERED
        addresses = self.plan.address, model.ints.ctypes.data, model.first, self.words.ctypes.data
        return int(_finish(*addresses, shares.reshape(1, -1), best)), shares

    def close(self) -> None:
        """Note that the episode was answered: its label comes next."""
        self.header.state = w.ANSWERED

    def is_unknown(self, feature: int) -> bool:
        """Return whether a feature may still be requested."""
        places = self.plan.blocks.places  # a look at one word: a record of a wide model has thousands
        return bool(self.words[places["status"] - places["episode"] + feature] == w.UNKNOWN)

    def _array(self, name: str) -> Any:
        """Return an array of the episode, [attribute]; the methods of Episode are for compiled code."""
        return self.plan.blocks.episode_arrays(self.words)[name]

    @property
    def header(self) -> Episode:
        """The first words of the episode, by name."""
        return Episode.over(self.words)

    @property
    def reason(self) -> str:
        """The reason to stop; "finish" while there are further questions."""
        return REASONS[int(self.header.reason)]

    @property
    def cost(self) -> float:
        """The sum of the costs of the features bought."""
        return float(self.header.cost)

    def features(self, status: int = w.BOUGHT) -> tuple[int, ...]:
        """Return the columns of the features with a status, bought by default."""
        return tuple(np.flatnonzero(self._array("status") == status).tolist())

    def observed(self) -> Floats:
        """Return float64[d]: the values observed, NaN elsewhere."""
        return np.where(self._array("outcome") >= 0, self._array("value"), np.nan)


def hand_in(model: Any, episode: OpenEpisode) -> None:
    """Make a finished episode the model's last one: the next label that the model learns belongs to it.

    Call ``ModelTable.learn`` with one row, ``episode.observed()``, after this, so that evaluation, drift
    detector and counters see the label like any other.
    """
    if episode.header.state == w.OPEN:
        msg = "episode must be finished before its label is learned: it must not see it"
        raise SchemaError(msg)
    _put(model, episode, w.ANSWERED)


def answer_next(model: Any, episode: OpenEpisode) -> None:
    """Write an open episode into the model: the model's next answer, which is counted, is the episode's.

    Call ``ModelTable.answer`` with one row, ``episode.observed()``, after this; a label that comes with the
    row is learned as this episode's. The episode object stays as it was.
    """
    if episode.header.state != w.OPEN:
        msg = "episode must be open to be answered; it was answered before"
        raise SchemaError(msg)
    _put(model, episode, w.OPEN)


def _put(model: Any, episode: OpenEpisode, state: int) -> None:
    """Write an episode into the words of a model's last episode."""
    if episode.plan is not model.plan:
        episode = episode.carry(model.plan)
    start = model.first + model.plan.blocks.places["episode"]
    model.ints[start : start + len(episode.words)] = episode.words
    last = Episode(model.ints, model.ints.view(np.float64), start)
    last.state, last.version = state, ModelHeader.over(model.ints).labels
