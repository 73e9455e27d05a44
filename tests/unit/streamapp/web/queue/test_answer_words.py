"""Words of answers: reasons to decline are the operator's, comments are kept only if they are allowed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from streamapp.cli.main import main
from streamapp.people.annotator_answers import answers_of
from streamapp.web.audit_log import AuditLog
from streamapp.web.queue.cards import Card, Refused
from streamapp.web.queue.label_queue import LabelQueue
from streamapp.web.store import Store
from tests.unit.streamapp.web.queue.requests import NOW, REQUEST, TERMS, ask

REASONS = ("unreadable", "two classes fit")


@pytest.fixture
def store() -> Iterator[Store]:
    made = Store(":memory:")
    yield made
    made.close()


def card_of(queue: LabelQueue) -> Card:
    ask(queue, REQUEST)
    card = queue.leases.next_card("ann", NOW)
    assert card is not None
    return card


def test_a_reason_is_needed_to_decline_and_must_be_one_of_the_list(store: Store) -> None:
    queue = LabelQueue(store, replace(TERMS, decline_reasons=REASONS, comments=True))
    card = card_of(queue)
    for reason, problem in ((None, "choose one of the reasons: unreadable, two"), ("other", "choose one")):
        with pytest.raises(Refused, match=problem):
            queue.actions.answer("ann", card.number, None, NOW, reason=reason)
    for comment in ("x" * 1025, "\ud800"):
        with pytest.raises(Refused, match="at most 1,024 characters"):
            queue.actions.answer("ann", card.number, None, NOW, reason="unreadable", comment=comment)
    queue.actions.answer("ann", card.number, None, NOW, reason="unreadable", comment="a smear")
    (answer,) = answers_of(entry for _, entry in AuditLog(store).waiting())
    assert (answer.label, answer.reason, answer.comment) == (None, "unreadable", "a smear")


def test_words_that_were_not_allowed_are_refused(store: Store) -> None:
    queue = LabelQueue(store, TERMS)
    card = card_of(queue)
    with pytest.raises(Refused, match="none of the reasons"):
        queue.actions.answer("ann", card.number, None, NOW, reason="unreadable")
    with pytest.raises(Refused, match="switched off"):
        queue.actions.answer("ann", card.number, "a", NOW, comment="a smear")
    queue.actions.answer("ann", card.number, None, NOW)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (" , ,", "must have 1 to 20 reasons, it has 0"),
        (",".join(map(str, range(21))), "must have 1 to 20 reasons, it has 21"),
        ("x" * 101, "100 printable characters"),
        ("bell\a", "100 printable characters"),
    ],
)
def test_a_list_of_reasons_that_cannot_be_one_is_refused(
    text: str, problem: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["web", "--decline-reasons", text, "--state", str(tmp_path / "web.sqlite")]) == 64
    assert problem in capsys.readouterr().err
