"""What is said of a restore while it goes on."""

from __future__ import annotations

import pytest

from streamapp.worker.restore.restore_progress import LOG_SECONDS, RestoreProgress
from tests.unit.streamapp.worker.processing.rig import Worker, run


class Told:
    """A restore of partition 3, with a clock of its own."""

    def __init__(self) -> None:
        self.now = 100.0
        self.said: list[str] = []
        self.progress = RestoreProgress(3, self.said.append, lambda: self.now)


def test_it_says_how_many_of_how_many_records_are_replayed() -> None:
    told = Told()
    told.progress.reads("snapshot", "snapshot 4.17 of 1,200 units, 56,789 bytes")
    told.progress.begins("snapshot", 40_000)
    told.progress.replayed(12_345)
    assert told.said == [
        "reading snapshot 4.17 of 1,200 units, 56,789 bytes",
        "replayed 0 of 40,000 records",
        "replayed 12,345 of 40,000 records",
    ]
    assert (told.progress.done, told.progress.left) == (12_345, 27_655)


def test_the_log_has_its_begin_and_how_far_it_is_every_few_seconds(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    told = Told()
    told.progress.reads("older-snapshot", "snapshot 4.16 of 7 units, 89 bytes")
    told.progress.begins("older-snapshot", 1000)
    for _ in range(10):
        told.now += LOG_SECONDS / 4
        told.progress.replayed(100)
    assert [record.message for record in caplog.records] == [
        "partition 3: restoring from snapshot 4.16 of 7 units, 89 bytes",
        "partition 3: restoring, 1,000 records to replay after the newest whole snapshot",
        "partition 3: replayed 400 of 1,000 records in 5 s",
        "partition 3: replayed 800 of 1,000 records in 10 s",
    ]


def test_a_restore_without_anything_to_replay_says_so_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    told = Told()
    told.progress.reads("snapshot", "snapshot 4.17 of 7 units, 89 bytes")
    told.progress.begins("snapshot", 0)
    assert len(caplog.records) == len(told.said) == 1


def test_metrics_have_the_partitions_that_are_being_restored_and_no_others() -> None:
    replayed, remaining = "grove_restore_replayed_records", "grove_restore_remaining_records"
    found: list[dict[str, float]] = []

    async def story(w: Worker) -> None:
        def replay(progress: RestoreProgress) -> None:
            progress.begins("journal", 100)
            progress.replayed(30)
            found.extend((w.gauge(replayed), w.gauge(remaining)))

        w.kafka.while_restoring = replay
        await w.assign(3)
        assert found == [{"3": 30.0}, {"3": 70.0}]
        assert (w.gauge(replayed), w.gauge(remaining)) == ({}, {})

    run(story)
