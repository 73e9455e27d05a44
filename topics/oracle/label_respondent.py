"""Labels: the respondent to label requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from topics.codecs import decode_label_requests, encode_labels
from topics.definitions import TopicNames
from topics.oracle.drawn_answers import ANSWERED, Answerer, Outcome
from topics.oracle.label_index import LabelIndex
from topics.oracle.oracle_plan import OraclePlan
from topics.oracle.respondent import Decision
from topics.readers.dataset import Dataset


class LabelRespondent:
    """Answers with the true class of a row or with a wrong class, or declines."""

    def __init__(self, plan: OraclePlan) -> None:
        self._plan = plan

    def topics(self, names: TopicNames) -> tuple[str, str]:
        return names.label_requests, names.labels

    def read(self, dataset: Dataset, stopped: Callable[[], bool]) -> None:
        index = LabelIndex.read(dataset, stopped)
        self._classes = index.classes
        self._answerer = Answerer(self._plan, index)

    def decide(self, values: Sequence[bytes]) -> list[Decision | None]:
        requests = decode_label_requests(values)
        answers = self._answerer.answer(requests.instance_ids)
        record = np.arange(len(requests)) if requests.record is None else requests.record
        decisions: list[Decision | None] = [None] * len(values)
        labels = [self._classes[code] if code >= 0 else None for code in answers.code.tolist()]
        annotators = None if self._plan.annotator is None else [self._plan.annotator] * len(labels)
        written = encode_labels(requests.instance_ids, labels, annotators=annotators)
        for row, number in enumerate(record.tolist()):
            outcome = Outcome(int(answers.outcome[row]))
            value = written[row] if outcome in ANSWERED else None
            decisions[number] = Decision(
                requests.instance_ids[row], outcome, value, float(answers.delay[row])
            )
        return decisions
