"""Requests of a worker, as a proxy in front of its broker counts them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.broker

ROOT = Path(__file__).parents[2]


def test_a_commit_of_64_partitions_takes_one_request_of_each_kind() -> None:
    words = ["--guarantees", "exactly_once", "--partitions", "64", "--rates", "500", "--seconds", "3"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.broker_load", "--json", "--warm", "3", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    line = json.loads(done.stdout)
    requests = line["requests"]
    commits = requests["EndTxn"]
    assert commits > 0
    for kind in ("Produce", "AddOffsetsToTxn", "TxnOffsetCommit"):
        assert requests[kind] < 2 * commits, requests  # a step may be refused and repeated
    assert requests["Fetch"] > 0
    assert line["planned"]["requests_per_s"] < 100  # not one for each partition
    assert line["record_bytes"] > line["answer_bytes"] > 0
    assert min(line["bytes_produced_per_record"].values()) > 0
    assert line["read_mb_per_s"] > 0
