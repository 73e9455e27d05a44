import json
from dataclasses import astuple
from datetime import UTC, datetime

import pytest

from benchmarks.rig.member import Member, MemberFailed
from benchmarks.rig.systems import Options
from topics.definitions import TopicNames

BEGAN = 1_800_000_000.0


def line(seconds, message):
    time = datetime.fromtimestamp(BEGAN + seconds, UTC).isoformat(timespec="milliseconds")
    return json.dumps({"time": time, "level": "INFO", "logger": "x", "message": message}) + "\n"


@pytest.fixture
def member(tmp_path):
    member = Member("bench-0", Options("localhost:1"), TopicNames("x."), 4, "g", tmp_path)
    member.started = BEGAN
    return member


def test_a_start_is_read_from_what_the_worker_said(member, tmp_path):
    before = line(-9, "assigned partitions [0, 1, 2, 3]")
    said = [
        "no JSON\n",
        line(2.5, "assigned partitions [0, 2]"),
        line(3, "partition 0 is restored: 120 records replayed in 0.3 s"),
        line(3.25, "partition 0 is live"),
        line(3.5, "partition 2 is restored: 30 records replayed in 0.2 s"),
        line(4, "partition 2 is live"),
        line(9, "assigned partitions [2]"),
    ]
    (tmp_path / "bench-0.log").write_text(before + "".join(said))
    member._mark = len(before)
    assert member.owned() == {2}
    began = member.began()
    assert began is not None
    assert astuple(began) == (pytest.approx(2.5), pytest.approx(4.0), 150, pytest.approx(0.5))


def test_without_partitions_nothing_is_owned(member, tmp_path):
    (tmp_path / "bench-0.log").write_text(line(1, "pages at http://127.0.0.1:1"))
    assert member.owned() == set()
    (tmp_path / "bench-0.log").write_text(line(1, "assigned partitions []"))
    assert member.owned() == set()


def test_metrics_that_do_not_come_are_no_zero(member, tmp_path):
    (tmp_path / "bench-0.log").write_text("what it said last\n")
    with pytest.raises(MemberFailed, match="(?s)bench-0 gave no metrics.*what it said last"):
        member.metric("grove_snapshots_total")
