"""Comparison: two tasks process the log of a partition, one with an alternative spec of one model."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

import numpy as np

from core.active.label_account import SAMPLED_FOR_EVALUATION
from core.evaluation import section_of
from core.spec import Spec
from core.state_version import STATE_VERSION
from streamapp.tools.offline.errors import OfflineError
from streamapp.tools.whatif.accuracy import Accuracy
from streamapp.tools.whatif.compared_answers import Answer, requested
from streamapp.tools.whatif.held_spec import Beginning, HeldSpec, spec_of
from streamapp.tools.whatif.reviews import AsItWas, AsItWouldBe
from streamapp.tools.whatif.sent_answers import SentAnswers
from streamapp.worker.restore.journal_replay import UNLIMITED
from streamapp.worker.task.effects.effects import Effects
from streamapp.worker.task.models.model_keys import NO_MODEL
from streamapp.worker.task.models.quota import ModelQuota
from streamapp.worker.task.pending.name_columns import Names
from streamapp.worker.task.task import CODE, Task, TaskRun
from topics.columns.records import Labels

Labelling = Literal["same-labels", "wanted-labels"]
"""The labels that the alternative model learns: all that came, or the wanted labels that were requested."""

SPARE: Final = 1000
"""Number of waiting answers, beyond twice the instances that the task remembers, at which ended answers are
forgotten."""


class Waiting(NamedTuple):
    """Two answers to an instance whose label may come."""

    was: str | None
    would_be: str | None
    asked: bool
    wanted: bool
    sampled: int
    importance: float


class Difference(NamedTuple):
    """A record whose answer differs; `would_be` None: the spec's model refuses it."""

    was: Answer
    would_be: Answer | None


class Chances(NamedTuple):
    """Sums over the records that a strategy with known chances has scored (core/active/label_query.py)."""

    represented: float = 0.0
    squares: float = 0.0
    chosen: int = 0


@dataclass(slots=True)
class Figures:
    """Counts since the comparison began."""

    records: int = 0
    equal: int = 0
    same_class: int = 0
    first: Difference | None = None
    first_class: Difference | None = None
    spent: int = 0
    wanted: int = 0
    existing: int = 0  # wanted, and requested
    came: int = 0  # of the existing: the label came
    own: int = 0  # labels that came with their record, or before it
    unasked: int = 0  # labels that came later without a request


class Comparison:
    """Processes runs in both tasks; `process` takes the place of `Task.process` in a replay."""

    def __init__(self, key: str, given: str, sent: SentAnswers) -> None:
        """`given`: the spec, as JSON or a preset's name."""
        self.key = key
        self.sent = sent
        self.figures, self.accuracy = Figures(), Accuracy()
        self.was_spec: Spec | None = None
        self.labelling: Labelling = "same-labels"
        self.beginning: Beginning = "created-later"
        self._given = given
        self._starts = False
        self._given_second: Task | None = None
        self._second: Task | None = None
        self._was: AsItWas
        self._would_be: AsItWouldBe
        self._held: HeldSpec
        self._log: Task
        self._waiting: dict[str, Waiting] = {}
        self._chances_before = Chances()

    @property
    def second(self) -> Task:
        """The task with the alternative spec, at the end of the log."""
        assert self._second is not None
        return self._second

    @property
    def spec(self) -> Spec:
        """The spec that the model would have."""
        return self._held.spec

    @property
    def overridden(self) -> int:
        """Controls that set another spec, and had no effect."""
        return self._held.overridden

    def start(self, second: Task | None) -> None:
        """Compare from the next run on; `second`: another task at the same point (None: no record was read).

        Nothing is done before that run: with it, the logged task has the configuration of the log.
        """
        self._starts, self._given_second = True, second

    def end(self) -> None:
        """Raise OfflineError if nothing was compared."""
        if self._second is None or not self.figures.records:
            message = (
                f"no record of the model {self.key!r} was answered in this part of the log; 'grove models "
                "list' shows all models and how many records each has answered, an earlier --since begins "
                "earlier"
            )
            raise OfflineError(message)

    def worth(self) -> float | None:
        """Return of how many labels with equal chances the labels with known chances are worth.

        None: the model was reset or replaced, and its counters began again.
        """
        tally, before, after = self.accuracy.chances, self._chances_before, self._chances()
        represented, squares, chosen = (b - a for a, b in zip(before, after, strict=True))
        if not (represented > 0.0 and squares > 0.0 and chosen > 0):
            return None
        return represented * represented / squares * tally.labels / max(chosen, tally.labels)

    def process(self, task: Task, run: TaskRun) -> Effects:
        """Let the logged task process a run, and the alternative task after it."""
        if not self._starts:
            return task.process(run)
        if self._second is None:
            self._begin(task, self._given_second or Task(task.partition, task.config, ModelQuota(UNLIMITED)))
        due = self._due(run) if run.source == "labels" else {}
        self._was.answers.clear()
        effects = task.process(run)
        self._learn_spec()
        asked = requested(effects.requests, run.raw, self.key.encode())
        self._would_be.unwanted = set(filter(self._is_unwanted, due))
        wanted = self._process_second(run, asked)
        self._compare(asked, wanted)
        self._count_labels(due)
        self.sent.compare(effects.answers, run.raw)
        return effects

    # -- the alternative task -------------------------------------------------------------------------------

    def _begin(self, log: Task, second: Task) -> None:
        if second.config != log.config:
            second.configure(log.config)
        self._log, self._second = log, second
        self._was, self._would_be = AsItWas(log, self.key), AsItWouldBe(second, self.key)
        log.review(self._was)
        second.review(self._would_be)
        # The spec has the meaning that it would have today, under the settings of the worker.
        spec = replace(log.config, state_version=STATE_VERSION).spec(self._given)
        spec.check_together()
        self._check_features(spec, "the spec")
        self._held = HeldSpec(self.key, spec, second)
        self._learn_spec()
        self._chances_before = self._chances()
        self.beginning = self._held.hold()

    def _learn_spec(self) -> None:
        """Note the spec of the model once it exists; it decides which labels the alternative task learns."""
        if self.was_spec is not None or self._log.models.keys.slot(self.key) == NO_MODEL:
            return
        spec = spec_of(self._log, self.key)
        assert spec is not None
        self._check_features(spec, "the model")
        self.was_spec = spec
        self.labelling = "same-labels" if asks_alike(spec, self.spec) else "wanted-labels"

    def _check_features(self, spec: Spec, owner: str) -> None:
        if spec.acquirer is not None:
            message = (
                f"{owner} buys features (acquire={spec.acquire.spelled!r}): the log has only the features "
                'that were bought, so other answers cannot be computed; compare specs with "acquire": "none"'
            )
            raise OfflineError(message)

    def _process_second(self, run: TaskRun, asked: Set[str]) -> Set[str]:
        """Let the alternative task process a run; return the places of the labels that its strategy wants."""
        second, review = self._second, self._would_be
        assert second is not None
        if second.config != self._log.config:
            second.configure(self._log.config)
            self._held.hold()
        second.models.keys.quota.closed = self._log.models.keys.quota.closed
        review.answers.clear()
        review.chosen.clear()
        if run.source == "controls":
            self._held.control(run, self._log)
            return frozenset()
        is_same = self.labelling == "same-labels"
        review.given = (self._was.answers, asked) if is_same else None
        effects = second.process(run)
        return set(review.chosen) if is_same else requested(effects.requests, run.raw, self.key.encode())

    def _is_unwanted(self, name: str) -> bool:
        """Whether the label of a waiting instance came only because it was requested in the log."""
        waiting = self._waiting[name]
        return self.labelling == "wanted-labels" and waiting.asked and not waiting.wanted

    # -- answers and labels ---------------------------------------------------------------------------------

    def _compare(self, asked: Set[str], wanted: Set[str]) -> None:
        figures, keeps_all = self.figures, self._log.config.pending_keep == "all"
        figures.spent += len(asked)
        figures.wanted += len(wanted)
        figures.existing += len(asked & wanted)
        for place, was in self._was.answers.items():
            would_be = self._would_be.answers.get(place)
            figures.records += 1
            if would_be is not None and would_be.same_as(was):
                figures.equal += 1
            else:
                figures.first = figures.first or Difference(was, would_be)
            label = None if would_be is None else would_be.label
            if would_be is not None and label == was.label:
                figures.same_class += 1
            else:
                figures.first_class = figures.first_class or Difference(was, would_be)
            if was.own_label is not None:
                figures.own += 1
                self._score(Waiting(was.label, label, False, False, was.sampled, 0.0), was.own_label)
                continue
            self.accuracy.without_label += place not in asked
            if place in asked or (keeps_all and was.id not in self._waiting):
                self._waiting[was.id] = Waiting(
                    was.label, label, place in asked, place in wanted, was.sampled, was.importance
                )
        if len(self._waiting) > 2 * len(self._log.pending) + SPARE:
            self._forget_ended()

    def _due(self, run: TaskRun) -> dict[str, str | None]:
        """Return the waiting instances that have their first label in a run, with it (None: declined)."""
        batch = run.batch
        if batch is None:
            (batch,) = CODE["labels"].decode([run.raw], self._log.config.limits)
        assert isinstance(batch, Labels)
        if self.key not in batch.keys:
            return {}
        due: dict[str, str | None] = {}
        for row in np.flatnonzero(batch.key == batch.keys.index(self.key)).tolist():
            name, code = batch.ids[row], int(batch.label[row])
            if name in self._waiting and name not in due:
                due[name] = batch.label_values[code] if code >= 0 else None
        states = self._states([*due])
        return {name: label for name, label in due.items() if states[name] == "open"}

    def _count_labels(self, due: dict[str, str | None]) -> None:
        """Count the labels of waiting instances that the task has learned."""
        states = self._states([*due])
        for name, label in due.items():
            if states[name] != "settled":
                continue  # refused, or too late
            waiting = self._waiting.pop(name)
            if label is None:
                continue
            self.figures.came += waiting.asked and waiting.wanted
            self.figures.unasked += not waiting.asked
            self._score(waiting, label)

    def _score(self, waiting: Waiting, label: str) -> None:
        if waiting.was is None and waiting.would_be is None:
            return  # neither model knew a class
        self.accuracy.add(
            waiting.was == label,
            waiting.would_be == label,
            reserved=waiting.sampled == SAMPLED_FOR_EVALUATION,
            importance=waiting.importance,
        )

    def _states(self, names: list[str]) -> dict[str, str]:
        """Return the states of instances in the task as it was, at its clock."""
        pending, clock = self._log.pending, self._log.clock
        if not names or clock is None:
            return dict.fromkeys(names, "unknown")
        serials = pending.serials(Names.of([(self.key, name) for name in names])).tolist()
        return {name: pending.state_of(serial, clock)[1] for name, serial in zip(names, serials, strict=True)}

    def _forget_ended(self) -> None:
        states = self._states([*self._waiting])
        self._waiting = {name: each for name, each in self._waiting.items() if states[name] == "open"}

    def _chances(self) -> Chances:
        """Return the sums of the model as it was; zeros if it does not exist."""
        slot = self._log.models.keys.slot(self.key)
        if slot == NO_MODEL:
            return Chances()
        model = self._log.models.cache.peek(slot)
        section = section_of(model.plan, model.ints)
        return Chances(float(section.represented), float(section.squares), int(section.chosen))


def asks_alike(first: Spec, second: Spec) -> bool:
    """Return whether two specs request labels by the same strategy, budget and reserved share."""
    return (first.query, first.budget, first.evaluation.share) == (
        second.query,
        second.budget,
        second.evaluation.share,
    )
