"""Reviews: the answers of a model in both tasks, and the labels of the alternative task."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace

import numpy as np

from core.active.label_account import NOT_SAMPLED
from streamapp.tools.whatif.compared_answers import Answer, answers_in
from streamapp.worker.task.label_review import ReviewedRun
from streamapp.worker.task.task import Task
from topics.columns.records import Labels


class AsItWas:
    """Collects the answers of the model; changes nothing."""

    def __init__(self, task: Task, key: str) -> None:
        self.answers: dict[str, Answer] = {}  # of the current run, by place
        self._task, self._key = task, key

    def answered(self, run: ReviewedRun) -> None:
        self.answers |= {answer.place: answer for _, answer in answers_in(run, self._task, self._key)}

    def arrived(self, labels: Labels) -> Labels:
        return labels


class AsItWouldBe:
    """Collects the answers of the alternative task, and decides which labels it learns."""

    def __init__(self, task: Task, key: str) -> None:
        self.answers: dict[str, Answer] = {}  # of the current run, by place
        self.chosen: set[str] = set()
        """Places of the current run whose label the spec's strategy would request."""
        self.given: tuple[Mapping[str, Answer], Set[str]] | None = None
        """Answers of the current run as they were, and places whose label was requested: the requests that
        this task makes, too. None: it makes the requests of its strategy."""
        self.unwanted: Set[str] = frozenset()
        """Ids whose label came because it was requested, although this task did not request it."""
        self._task, self._key = task, key

    def answered(self, run: ReviewedRun) -> None:
        pending, replies = self._task.pending, run.replies
        for row, answer in answers_in(run, self._task, self._key):
            self.answers[answer.place] = answer
            if answer.chosen:
                serial = int(pending.serials(run.names[row : row + 1])[0])
                if pending.state_of(serial, int(run.clocks[row]))[1] not in ("open", "settled"):
                    self.chosen.add(answer.place)
            if self.given is not None:
                answers, asked = self.given
                then = answers.get(answer.place)
                replies.asked[row] = answer.place in asked
                replies.sampled[row] = NOT_SAMPLED if then is None else then.sampled
                replies.importance[row] = 0.0 if then is None else then.importance

    def arrived(self, labels: Labels) -> Labels:
        """Return the labels, with unwanted labels declined."""
        if not self.unwanted or self._key not in labels.keys:
            return labels
        label = labels.label.copy()
        for row in np.flatnonzero(labels.key == labels.keys.index(self._key)).tolist():
            if labels.ids[row] in self.unwanted:
                label[row] = -1
        return replace(labels, label=label)
