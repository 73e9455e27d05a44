"""Answers of annotators, read from audit entries: each once, and none that was taken back."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, NamedTuple

from topics.columns.records import AuditEntry

AGREEMENT: Final = "agreement"
"""User of the entries with the votes of several annotators and their outcome."""
REMEMBERED: Final = 1000
"""Entries of an annotator that are remembered. Entries come again in batches of at most 500, and an undo
takes back an answer of the undo window.
"""


class Answer(NamedTuple):
    """The answer of one annotator to one label request or gold question."""

    annotator: str
    key: str  # model key
    instance_id: str
    request_id: str
    label: str | None  # None: declined
    at_ms: int
    seconds: float | None = None  # from the time at which the card was shown to the answer
    gold: str | None = None  # the settled class, if the card was a gold question
    reason: str | None = None  # why the annotator declined
    comment: str | None = None


class Change(NamedTuple):
    """An answer that came, or was taken back."""

    answer: Answer
    taken_back: bool = False


class AnswerReader:
    """Turns audit entries into changes of the answers.

    Entries of one annotator must come in the order of their partition; the order of annotators among each
    other makes no difference to the answers.
    """

    def __init__(self) -> None:
        self._recent: dict[str, OrderedDict[str, Answer | None]] = {}  # annotator → id of entry → its answer

    def take(self, entry: AuditEntry) -> Change | None:
        """Return the change of one entry; None if it repeats another entry or is about no answer.

        An undo of an answer that is not among the last 1,000 entries of its annotator is None, too.
        """
        recent = self._recent.setdefault(entry.user, OrderedDict())
        if entry.id in recent:
            return None
        change = self._taken_back(entry, recent) if entry.action == "undo" else _given(entry)
        recent[entry.id] = change.answer if change is not None and not change.taken_back else None
        if len(recent) > REMEMBERED:
            recent.popitem(last=False)
        return change

    @staticmethod
    def _taken_back(entry: AuditEntry, recent: OrderedDict[str, Answer | None]) -> Change | None:
        subject = (entry.key, entry.instance_id, entry.request_id)
        for number, answer in reversed(recent.items()):
            if answer is not None and (answer.key, answer.instance_id, answer.request_id) == subject:
                recent[number] = None
                return Change(answer, taken_back=True)
        return None


def answer_of(entry: AuditEntry) -> Answer | None:
    """Return the answer of an entry; entries of older releases have the class in `detail` alone."""
    if entry.action not in ("label", "decline") or entry.key is None or entry.instance_id is None:
        return None
    label = None if entry.action == "decline" else entry.label or entry.detail
    return Answer(
        *(entry.user, entry.key, entry.instance_id, entry.request_id or "", label),
        *(entry.at_ms, entry.seconds, entry.gold, entry.reason, entry.comment),
    )


def _given(entry: AuditEntry) -> Change | None:
    answer = answer_of(entry)
    return None if answer is None else Change(answer)


def answers_of(entries: Iterable[AuditEntry]) -> list[Answer]:
    """Return the answers that entries leave, in the order in which they came.

    >>> ann = AuditEntry("1", "ann", "label", 5, "k", "i", "r", label="a")
    >>> [answer.label for answer in answers_of([ann, ann])]
    ['a']
    >>> answers_of([ann, AuditEntry("2", "ann", "undo", 6, "k", "i", "r")])
    []
    """
    reader = AnswerReader()
    answers: list[Answer] = []
    for entry in entries:
        change = reader.take(entry)
        if change is None:
            continue
        if change.taken_back:
            last = len(answers) - 1 - answers[::-1].index(change.answer)
            del answers[last]
        else:
            answers.append(change.answer)
    return answers
