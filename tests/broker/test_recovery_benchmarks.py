"""The benchmarks of restart, restore, snapshots and scaling run as their pages say, on little."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.rig.core_share import NoCoreShares, core_share

pytestmark = [pytest.mark.broker, pytest.mark.nightly]

ROOT = Path(__file__).parents[2]


def run(broker, module, *words):
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{module}", "--json", *words],
        cwd=ROOT,
        env={**os.environ, "GROVE_KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap_servers},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_partition_is_restored_on_a_warm_and_on_a_wiped_disk(broker):
    warm, wiped = run(broker, "restore", "--what", "models", "--models", "300")
    for line, disk in ((warm, "warm"), (wiped, "wiped")):
        assert (line["what"], line["disk"], line["models"], line["all_models"]) == ("models", disk, 300, True)
        assert line["records_replayed"] == 0  # all of it is in the snapshot
        assert line["restore_seconds"] > 0
        assert line["megabytes"] > 2


def test_a_tail_is_replayed(broker):
    (line,) = run(broker, "restore", "--what", "tail", "--formats", "packed", "--records", "50000")
    assert line["records_replayed"] == 50_000
    assert line["ratio"] == pytest.approx(
        line["replayed_records_per_second"] / line["live_records_per_second"], rel=0.05
    )


def test_a_worker_is_killed_and_two_are_added(broker):
    words = ["--guarantees", "exactly_once", "--rate", "200", "--partitions", "4", "--calm", "1"]
    words += ["--session-ms", "60000"]  # nobody is given up because it gets no CPU
    restart, scale_up, replaced, rolling = run(broker, "restart", *words)
    assert (restart["what"], scale_up["what"]) == ("restart", "scale-up 2 to 4")
    assert (restart["killed"]["partitions"], restart["others"]["partitions"]) == (2, 2)
    moved, kept = scale_up["moved"]["partitions"], scale_up["kept"]["partitions"]
    # Each of two workers gives one away. If the new ones join one after the other, with a rebalance each, the
    # assignor may let a third one move.
    assert (moved, kept) in {(2, 2), (3, 1)}
    assert restart["killed"]["silence"] > restart["start_up_seconds"] / 2
    assert (replaced["what"], rolling["what"]) == ("killed under a parent", "rolling restart under a parent")
    assert (replaced["killed"]["partitions"], rolling["all"]["partitions"]) == (2, 4)
    steps = replaced["steps"]
    assert list(steps) == ["noticed", "topics_checked", "kernels_ready", "assigned", "live"]
    assert list(steps.values()) == sorted(steps.values())
    # A prepared process has loaded modules and kernels, which is most of a start.
    assert 0 < replaced["cpu_seconds"] < restart["cpu_seconds"] / 2
    gaps = [restart["killed"], restart["others"], scale_up["moved"], scale_up["kept"]]
    for gap in (*gaps, replaced["killed"], rolling["all"]):
        assert gap["silence"] > 0
        assert gap["delay"] > 0


def test_snapshots_on_and_off(broker):
    words = ["--models", "200", "--attributes", "30", "--records", "300000", "--partitions", "2"]
    (line,) = run(broker, "snapshot_cost", *words, "--repeats", "1", "--interval", "0.2")
    assert line["megabytes"] > 0.5
    assert line["snapshots_of_all"] > 0
    assert line["megabytes_written"] > 0
    assert line["rate_ratio"] == pytest.approx(
        line["rows_per_second_on"] / line["rows_per_second_off"], rel=0.02
    )


def test_two_workers_are_held_to_their_shares(broker):
    try:
        with core_share(os.getpid(), os.cpu_count() or 1):
            pass
    except NoCoreShares:
        pytest.skip("the cgroups of CPU cannot be written here")
    words = [
        "--workers",
        "1,2",
        "--partitions",
        "4",
        "--models",
        "20",
        "--records",
        "60000",  # some seconds: a worker must not be done before the clock runs
        "--share",
        "0.05",
    ]
    lines = run(broker, "scaling", *words)
    assert [(line["workers"], line["keys"]) for line in lines] == [
        (1, "uniform"),
        (1, "zipf"),
        (2, "uniform"),
        (2, "zipf"),
    ]
    for line in lines:
        assert line["records"] >= 0.95 * 60_000 * line["workers"]
        assert 0 < line["share_used"]["most"] < 1.2  # the kernel settles its accounts by period
        assert line["measured_to_predicted"] > 0
    assert lines[1]["hottest_share"] > 3 * lines[0]["hottest_share"]
    assert lines[2]["partitions_a_worker"] == [2, 2]
