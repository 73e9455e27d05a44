"""The task at any point of its journal is the one that was there."""

from __future__ import annotations

import random

import pytest

from streamapp.tools.offline.errors import OfflineError
from streamapp.tools.offline.time_travel import following, shortened
from streamapp.worker.journal.entry import Entry, Skip, Step
from tests.positions import at
from tests.property.test_task_cuts import SPECS, story
from tests.topology.partition import ALWAYS, config
from tests.unit.streamapp.tools.offline.archive import Archive


def played(seed: int, kind: str = "dearest", n: int = 240) -> Archive:
    """Return a partition that went through a story, with commits and two snapshots on the way."""
    spec = SPECS.get(kind) or SPECS[sorted(SPECS)[0]]
    archive = Archive(config(spec, models_max_classes=6), keeps_digests=True)
    draw = random.Random(seed)
    for number, record in enumerate(story(seed, n)):
        archive.feed(record)
        if draw.random() < 0.1:
            archive.commit()
        if number in (n // 3, n // 2):
            archive.journal.add(archive.snapshot())
    archive.commit()
    return archive


@pytest.mark.parametrize("kind", sorted(SPECS))
@pytest.mark.parametrize("piece", [1, 1000])
def test_the_state_before_every_instance_is_the_one_that_was_there(kind: str, piece: int) -> None:
    archive = played(5, kind)
    for offset in range(0, len(archive.digests), 7 if piece == 1 else 13):
        arrived = archive.travel(piece).to_record(offset)
        assert arrived.task.digest() == archive.digests[offset], offset
        assert arrived.positions["instances"] == offset


def test_right_behind_a_record_only_that_record_is_more() -> None:
    archive = Archive(config(ALWAYS), keeps_digests=True)
    for n in range(30):
        archive.instances({"features": {"x": n}, "id": str(n)})
    archive.commit()
    for offset in (0, 17, 28):
        arrived = archive.travel().to_record(offset, behind=True)
        assert arrived.task.digest() == archive.digests[offset + 1]


def test_committed_offsets_are_a_point_too() -> None:
    archive = played(3)
    arrived = archive.travel().to_committed(archive.commit())
    assert arrived is not None
    assert arrived.task.digest() == archive.task.digest()


def test_of_offsets_that_the_journal_does_not_show_yet_nothing_is_said() -> None:
    archive = played(3)
    positions = archive.commit()
    later = {**positions, "instances": positions["instances"] + 1}
    assert archive.travel().to_committed(later) is None


def test_a_commit_in_the_past_is_found_though_the_journal_goes_on() -> None:
    archive = Archive(config(ALWAYS), keeps_digests=True)
    archive.instances({"features": {"x": 1}})
    positions, digest = archive.commit(), archive.task.digest()
    archive.instances({"features": {"x": 2}})
    archive.commit()
    arrived = archive.travel().to_committed(positions)
    assert arrived is not None
    assert arrived.task.digest() == digest


def test_offsets_between_two_commits_are_no_point() -> None:
    archive = Archive(config(ALWAYS), keeps_digests=True)
    archive.instances({"features": {"x": 1}})
    archive.instances({"features": {"x": 2}})
    archive.commit()
    with pytest.raises(OfflineError, match="no commit at controls 0, instances 1, labels 0; the group"):
        archive.travel().to_committed(at(instances=1))


def test_what_was_not_processed_yet_is_not_guessed() -> None:
    archive = played(5)
    end = len(archive.digests)
    with pytest.raises(OfflineError, match=f"3:{end} was not processed yet; .* reach from 0 to {end - 1}$"):
        archive.travel().to_record(end)


def test_a_trimmed_journal_says_from_where_on_there_are_states() -> None:
    archive = Archive(config(ALWAYS), keeps_digests=True)
    for n in range(60):
        archive.instances({"features": {"x": n}, "id": str(n)})
        if n % 20 == 10:
            manifest = archive.snapshot()
            archive.journal.add(manifest)
    archive.commit()
    archive.trim(manifest.start)
    first = manifest.positions["instances"]
    with pytest.raises(OfflineError, match=f"instances 3:9 cannot be had: .* reach from {first} to 59$"):
        archive.travel().to_record(9)
    assert archive.travel().to_record(first).task.digest() == archive.digests[first]


def test_an_empty_journal_has_no_state() -> None:
    archive = Archive(config(ALWAYS), keeps_digests=True)
    with pytest.raises(OfflineError, match="nothing was processed of this partition yet"):
        archive.travel().to_record(0)


def test_a_damaged_snapshot_is_told_and_the_journal_is_gone_through(
    caplog: pytest.LogCaptureFixture,
) -> None:
    archive = played(5)
    archive.chunks.clear()
    assert archive.travel().to_record(50).task.digest() == archive.digests[50]
    end = len(archive.digests) - 1
    assert archive.travel().to_record(end).task.digest() == archive.digests[end]
    assert "a snapshot cannot be used" in caplog.text


def test_before_and_after_a_reset() -> None:
    archive = Archive(config(ALWAYS), keeps_digests=True)
    for n in range(10):
        archive.instances({"features": {"x": n}, "id": str(n), "label": "a"})
    archive.reset()
    for n in range(10, 20):
        archive.instances({"features": {"x": n}, "id": str(n), "label": "a"})
    archive.commit()
    for offset in (4, 9, 15):
        assert archive.travel().to_record(offset).task.digest() == archive.digests[offset], offset
    fresh = archive.travel().to_record(10).task
    assert len(fresh.models.keys) == 0


def test_an_entry_is_cut_at_the_record_and_its_ranges_too() -> None:
    steps = (
        Step("instances", 10, skipped=((2, 5),)),
        Step("labels", 7),
        Step("instances", 20, skipped=((12, 14),), refused=((15, 18),)),
    )
    entry = Entry(1, 3, "", at(), at(instances=20, labels=7), steps)
    before, aside = shortened(entry, 16)
    assert before.after == at(instances=16, labels=7)
    assert before.steps[2] == Step("instances", 16, ((12, 14),), ((15, 16),))
    assert aside is not None
    assert "too-many-models" in aside
    one = following(before, entry, 16)
    assert (one.before, one.after) == (at(instances=16, labels=7), at(instances=17, labels=7))
    assert one.steps == (Step("instances", 17, (), ((15, 17),)),)
    between, aside = shortened(entry, 10)
    assert (between.steps, between.after, aside) == (steps[:2], at(instances=10, labels=7), None)
    skipped, aside = shortened(entry, 3)
    assert skipped.steps == (Step("instances", 3, ((2, 3),)),)
    assert aside is not None
    assert "processing-error" in aside


def test_before_at_and_behind_a_record_that_was_skipped() -> None:
    archive = Archive(config(ALWAYS), keeps_digests=True)
    archive.to_skip = {("instances", 0), ("instances", 14), ("instances", 15)}
    for n in range(0, 30, 3):
        archive.instances(
            *({"features": {"x": n + i}, "id": str(n + i), "label": "ab"[n % 2]} for i in range(3))
        )
        if n == 6:
            archive.journal.add(archive.snapshot())
            archive.journal.add(Skip(1, "instances", 14, ""))
    archive.commit()
    for offset in (0, 12, 15, 18):
        arrived = archive.travel().to_record(offset)
        assert arrived.task.digest() == archive.digests[offset // 3], offset
        assert (arrived.dead_lettered is not None) == (("instances", offset) in archive.to_skip)
        if arrived.dead_lettered is not None:
            assert "skipped" in arrived.dead_lettered
    before, behind = (archive.travel().to_record(14, behind=behind).task for behind in (False, True))
    slot = before.models.keys.slot("m")
    assert before.models.cache.model(slot).snapshot() == behind.models.cache.model(slot).snapshot()
