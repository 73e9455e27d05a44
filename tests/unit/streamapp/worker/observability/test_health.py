"""When a worker is called dead, and when not ready; and the text of the pages."""

import asyncio
import threading

import pytest

from streamapp.worker.gauges import readiness_gauges
from streamapp.worker.observability.health import Check, Health, PartitionStatus, Stage
from streamapp.worker.observability.pages.checks import answer
from topics.tokens.token_source import TokenStatus


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def healthy() -> tuple[Health, Clock]:
    clock = Clock()
    return Health(clock=clock, beat=clock.now), clock


def failed(checks: list[Check]) -> list[str]:
    return [check.name for check in checks if not check.ok]


def test_a_worker_with_a_turning_loop_and_no_lag_lives() -> None:
    health, _ = healthy()
    assert failed(health.liveness()) == []


def test_a_loop_that_stands_still_is_dead() -> None:
    health, clock = healthy()
    clock.now += health.max_beat_age + 1
    assert failed(health.liveness()) == ["event-loop"]


def test_lag_alone_kills_nobody_as_long_as_offsets_are_committed() -> None:
    health, clock = healthy()
    for lag in range(100_000, 200_000, 1000):
        clock.now += health.max_stall / 2
        health.beat = clock.now
        health.lags(lag)
        health.committed()
    assert failed(health.liveness()) == []


def test_lag_without_commits_is_dead_but_not_while_the_broker_is_away() -> None:
    health, clock = healthy()
    health.lags(7)
    clock.now += health.max_stall + 1
    health.beat = clock.now
    health.lags(9)
    assert failed(health.liveness()) == ["progress"]
    health.broker_reachable = lambda: False
    assert failed(health.liveness()) == []
    health.lags(9)
    health.broker_reachable = lambda: True
    assert failed(health.liveness()) == [], "the outage is over, and is not held against the worker"
    clock.now += health.max_stall + 1
    health.beat = clock.now
    assert failed(health.liveness()) == ["progress"]
    health.lags(0)
    assert failed(health.liveness()) == []


def test_a_worker_whose_broker_does_not_answer_is_alive_and_not_ready() -> None:
    health, _ = healthy()
    health.assigned = True
    assert failed(health.readiness()) == []
    health.broker_reachable = lambda: False
    assert (failed(health.liveness()), failed(health.readiness())) == ([], ["broker"])
    health.assigned = False
    assert failed(health.readiness()) == ["assigned"], "it waits for the group in any case"


def test_the_page_says_what_the_broker_does_not_serve() -> None:
    health, _ = healthy()
    health.unserved = {"labels-3": "no leader is known", "labels-5": "no leader is known"}
    assert health.liveness()[1] == Check(
        "progress", True, "no lag; the broker does not serve labels-3 and 1 more (no leader is known)"
    )


def test_a_worker_is_ready_when_assigned_and_every_partition_is_live() -> None:
    health, _ = healthy()
    assert failed(health.readiness()) == ["assigned"]
    health.assigned = True
    assert failed(health.readiness()) == []
    why = PartitionStatus(Stage.STOPPED, "ValueError")
    health.partitions = {0: PartitionStatus(Stage.LIVE), 1: PartitionStatus(Stage.RESTORING), 2: why}
    assert failed(health.readiness()) == ["partition-1", "partition-2"]
    health.partitions = {0: PartitionStatus(Stage.LIVE)}
    health.stopping = True
    assert failed(health.readiness()) == ["running"]


def red(health: Health) -> set[str]:
    (family,) = readiness_gauges(health)
    values = {sample.labels["check"]: sample.value for sample in family.samples}
    assert {sample.name for sample in family.samples} == {"grove_not_ready"}
    assert set(values.values()) <= {0.0, 1.0}
    return {check for check, value in values.items() if value}


def test_each_red_check_is_a_gauge() -> None:
    health, _ = healthy()
    assert red(health) == {"assigned"}
    health.assigned = True
    health.partitions = {0: PartitionStatus(Stage.LIVE)}
    assert red(health) == set()
    health.partitions |= {3: PartitionStatus(Stage.STOPPED), 12: PartitionStatus(Stage.WAITS)}
    health.stopping, health.broker_reachable = True, lambda: False
    health.disk_failure, health.memory_failure = "full", "near"
    health.snapshots, health.awaited_schemas = lambda: "refused", lambda: "partition 3"
    health.token = lambda: TokenStatus(None, "")
    names = {"partitions" if name.startswith("partition-") else name for name in failed(health.readiness())}
    assert len(names) == 8
    assert red(health) == names


def test_the_page_says_ok_and_more_only_when_asked_or_when_something_failed() -> None:
    good, bad = Check("event-loop", True, "turned 0.1 s ago"), Check("partition-3", False, "restoring")
    assert answer("livez", [good], verbose=False) == (200, "ok")
    assert answer("livez", [good], verbose=True) == (
        200,
        "[+]event-loop ok: turned 0.1 s ago\nlivez check passed\n",
    )
    status, text = answer("readyz", [good, bad], verbose=False)
    assert status == 503
    assert text.splitlines()[1:] == ["[-]partition-3 failed: restoring", "readyz check failed"]


def test_a_worker_whose_token_cannot_be_renewed_is_not_ready_and_lives() -> None:
    health, _ = healthy()
    health.assigned = True
    statuses = {
        "no token yet": TokenStatus(None, ""),
        "valid for 7 s": TokenStatus(7.0, ""),
        "valid for 7 s; not renewed: the endpoint is away": TokenStatus(7.0, "the endpoint is away"),
        "ended 3 s ago; not renewed: the endpoint is away": TokenStatus(-3.0, "the endpoint is away"),
    }
    for text, status in statuses.items():
        health.token = lambda status=status: status
        (check,) = [check for check in health.readiness() if check.name == "token"]
        assert (check.detail, check.ok) == (text, text == "valid for 7 s")
        assert failed(health.liveness()) == []


def test_progress_of_a_restore_never_replaces_a_newer_status() -> None:
    """The thread of an abandoned restore reports while the partition goes live from another restore."""
    health, _ = healthy()
    health.partitions = {0: PartitionStatus(Stage.RESTORING)}
    abandoned = health.new_restore(0)
    health.new_restore(0)
    health.partitions[0] = PartitionStatus(Stage.LIVE)
    abandoned.note("replayed 1 of 2 records")
    assert health.statuses() == {0: PartitionStatus(Stage.LIVE)}
    assert failed(health.readiness()) == ["assigned"]


def test_a_partition_that_waits_again_has_no_progress() -> None:
    health, _ = healthy()
    health.partitions = {0: PartitionStatus(Stage.RESTORING)}
    report = health.new_restore(0)
    report.note("replayed 1 of 2 records")
    assert str(health.statuses()[0]) == "restoring: replayed 1 of 2 records"
    health.coming(0, PartitionStatus(Stage.WAITS, "no leader is known"))
    assert str(health.statuses()[0]) == "waits: no leader is known"


def test_a_late_report_does_not_hide_why_a_partition_waits() -> None:
    """The thread of an abandoned restore may continue while the next attempt has failed already."""
    health, _ = healthy()
    health.partitions = {0: PartitionStatus(Stage.RESTORING)}
    abandoned = health.new_restore(0)
    health.coming(0, PartitionStatus(Stage.WAITS, "no leader is known"))
    abandoned.note("replayed 1 of 2 records")
    assert str(health.statuses()[0]) == "waits: no leader is known"
    health.new_restore(0).note("replayed 2 of 2 records")
    abandoned.note("replayed 1 of 2 records")
    assert str(health.statuses()[0]) == "restoring: replayed 2 of 2 records"


def test_a_disk_that_does_not_answer_is_a_failure_until_it_answers(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    place = "streamapp.worker.observability.health"
    monkeypatch.setattr(f"{place}.DISK_SECONDS", 0.01)
    monkeypatch.setattr(f"{place}.LOOK_SECONDS", 0)
    health, answers = Health(assigned=True), threading.Event()

    def look() -> str:
        assert answers.wait(60)
        return ""

    async def until(names: list[str]) -> None:
        async with asyncio.timeout(60):
            while failed(health.readiness()) != names:  # noqa: ASYNC110 - a thread is at work, no event
                await asyncio.sleep(0)

    async def story() -> None:
        watching = asyncio.ensure_future(health.keep_watching_disk())
        await until(["state-directory"])
        assert "the disk of state.dir does not answer" in health.disk_failure
        answers.set()
        await until([])
        watching.cancel()

    health.disk = look
    asyncio.run(story())
    assert len([record for record in caplog.records if "does not answer" in record.message]) == 1


def test_a_broker_that_takes_no_snapshots_is_no_failure_of_the_disk() -> None:
    health, _ = healthy()
    health.assigned = True
    health.snapshots = lambda: "partition 3: a part of a snapshot is not written: NotEnoughReplicas"
    assert failed(health.readiness()) == ["snapshots"]
    assert failed(health.liveness()) == []
