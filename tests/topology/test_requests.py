"""What becomes of the labels that were asked for: each request ends once, and the model counts how."""

from __future__ import annotations

import pytest

from streamapp.worker.task.pending.entries import ENTRY_BYTES
from streamapp.worker.task.pending.pending import TICKS
from tests.topology.partition import ALWAYS, Partition, config

TTL = 1600
TICK = TTL // TICKS


def account(partition: Partition) -> tuple[int, int, int, int, int]:
    """Return asked, answered, declined, expired and outstanding requests."""
    summary = partition.model().summary()
    evaluation = partition.model().evaluation()
    counts = (summary.requests, summary.answered, summary.declined, summary.expired, summary.outstanding)
    assert counts == (
        evaluation.asked,
        evaluation.answered,
        evaluation.declined,
        evaluation.expired,
        evaluation.outstanding,
    )
    return counts


def asked(**settings: object) -> Partition:
    """Return a partition in which the labels of a, b, c and d were asked for."""
    partition = Partition(config(ALWAYS, pending_ttl_ms=TTL, **settings))
    partition.instances(*({"features": {"x": 1}, "id": name} for name in "abcd"))
    assert account(partition) == (4, 0, 0, 0, 4)
    return partition


def test_answered_and_declined_are_counted_at_once_and_once() -> None:
    partition = asked()
    partition.labels(
        {"id": "a", "label": "x"},
        {"id": "b", "declined": True},
        {"id": "a", "label": "y"},
        {"id": "b", "declined": True},
        {"id": "b", "label": "x"},
    )
    assert account(partition) == (4, 1, 1, 0, 2)


def test_a_request_expires_at_the_first_tick_after_its_time() -> None:
    partition = asked()
    partition.labels({"id": "a", "label": "x"}, {"id": "b", "declined": True}, at=TTL)
    partition.control("configure", spec={"seed": 2}, at=TTL + TICK - 1)
    assert account(partition) == (4, 1, 1, 0, 2)
    partition.labels({"id": "nobody", "label": "x"}, at=TTL + TICK)
    assert account(partition) == (4, 1, 1, 2, 0)
    partition.labels({"id": "c", "label": "x"}, {"id": "d", "declined": True}, at=TTL + TICK)
    partition.labels({"id": "nobody", "label": "x"}, at=5 * TTL)
    assert account(partition) == (4, 1, 1, 2, 0)


def test_a_label_that_is_late_and_learned_answers_a_request_that_did_not_expire_yet() -> None:
    partition = asked()
    own = {"label": "x", "features": {"x": 1}}
    partition.labels({"id": "a"} | own, at=TTL + 1)
    assert account(partition) == (4, 1, 0, 0, 3)
    partition.labels({"id": "b"} | own, at=TTL + TICK)
    assert account(partition) == (4, 1, 0, 3, 0)
    assert partition.model().summary().labels == 2


def test_a_repeated_instance_with_its_label_answers_the_request_of_the_first() -> None:
    partition = asked()
    partition.instances({"features": {"x": 1}, "id": "a", "label": "x"})
    assert partition.model().summary().labels == 1
    partition.labels({"id": "nobody", "declined": True}, at=TICK)
    assert account(partition) == (4, 1, 0, 0, 3)


def test_a_request_that_is_never_sent_is_declined() -> None:
    partition = asked()
    partition.instances({"features": {"x": 1}, "id": "a"})
    assert len(partition.requests) == 4
    partition.labels({"id": "nobody", "declined": True}, at=TICK)
    assert account(partition) == (5, 0, 1, 0, 4)


def test_instances_forgotten_for_lack_of_room_have_expired() -> None:
    partition = Partition(config(ALWAYS, pending_ttl_ms=TTL, pending_max_bytes=4 * (ENTRY_BYTES + 8)))
    partition.instances(*({"features": {"x": 1}, "id": f"i{i}"} for i in range(10)))
    waiting = partition.task.pending.waiting
    assert waiting < 10
    partition.labels({"id": "nobody", "declined": True}, at=TICK)
    assert account(partition) == (10, 0, 0, 10 - waiting, waiting)
    partition.labels({"id": "nobody", "declined": True}, at=3 * TTL)
    assert account(partition) == (10, 0, 0, 10, 0)


@pytest.mark.parametrize("command", ["reset", "delete"])
def test_a_model_that_begins_anew_owes_nothing(command: str) -> None:
    partition = asked()
    partition.instances({"features": {"x": 1}, "id": "a"})
    partition.control(command)
    partition.instances({"features": {"x": 1}, "id": "a"}, at=TICK)
    partition.labels({"id": "nobody", "declined": True}, at=TTL + TICK)
    assert account(partition) == (1, 0, 0, 0, 1)


def test_what_was_asked_at_random_stays_so_until_its_label_comes() -> None:
    spec = {"query": "conf_tree", "budget": {"limit": 1.0}, "evaluation": {"share": 0.25}}
    partition = Partition(config(spec, pending_ttl_ms=TTL))
    partition.instances({"features": {"x": 0}, "label": "x"})
    partition.instances(*({"features": {"x": i}, "id": f"i{i}"} for i in range(1, 40)))
    partition.labels(*({"id": f"i{i}", "label": "x"} for i in range(1, 40)), at=50)
    evaluation = partition.model().evaluation()
    assert evaluation.answered == len(partition.requests)
    # One of each four; the very first record was answered when no class was known, so it is not judged.
    assert evaluation.drawn_labels in (9, 10)
    assert evaluation.accuracy_unbiased == 1.0
