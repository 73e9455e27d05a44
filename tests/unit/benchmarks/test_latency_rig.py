"""What the latency rig is made of: what is produced when, whose load is counted, where time went."""

from __future__ import annotations

import json
import os
import socket
import struct
from collections import Counter

import orjson
import pytest

from benchmarks.chaos.wire import Producer, Record, decode_batches, encode_batch, encode_records, frame_batch
from benchmarks.rig.load import Machine, listener, load_between, threads_between
from benchmarks.rig.steady import MOST_PENDING, Link, Part, RefusedError, encoded
from benchmarks.rig.stream import model_keys
from benchmarks.rig.traced import means
from topics.clients.partitioner import partition_of


@pytest.mark.parametrize(("step_s", "steps"), [(0.005, 20), (1 / 500, 50)])
def test_each_record_is_sent_with_those_of_its_step_to_its_partition(step_s: float, steps: int) -> None:
    rate, seconds, partitions = 500, 0.1, 4
    found = list(encoded(rate, seconds, 8, partitions, step_s))
    assert len(found) == steps
    ids, keys = [], Counter[bytes | None]()
    for step, parts in enumerate(found):
        assert len({part.partition for part in parts}) == len(parts), "one batch of each partition"
        for part in parts:
            batch = frame_batch(part.body, part.records, part.times, Producer(1, 0, 0))
            ((behind, records),) = decode_batches(batch)
            assert behind == part.records == len(records)
            for record in records:
                due = int(orjson.loads(record.value or b"")["id"])
                assert step * step_s - 1e-6 <= due / 1e9 < (step + 1) * step_s + 1e-6
                assert record.time_ms == due // 1_000_000
                assert partition_of(record.key or b"", partitions) == part.partition
                ids.append(due)
                keys[record.key] += 1
    assert sorted(ids) == [number * 2_000_000 for number in range(50)]
    assert keys.keys() <= {key.encode() for key in model_keys(8, partitions)}


def test_a_batch_in_two_steps_is_the_one_made_at_once() -> None:
    records = [Record(b"k", b"v%d" % number, time_ms=7 + number) for number in range(3)]
    whole = encode_batch(records, Producer(5, 1, 9))
    assert frame_batch(encode_records(records), 3, (7, 9), Producer(5, 1, 9)) == whole


def answer(error: int) -> bytes:
    body = struct.pack(">iih1sIihqqqi", 0, 1, 1, b"t", 1, 3, error, 0, -1, 0, 0)
    return struct.pack(">i", len(body)) + body


def test_requests_wait_for_answers_to_those_before_and_errors_are_raised() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        link = Link(ours, b"\0\1t", Producer(1, 0))
        part = Part(3, encode_records([Record(b"k", b"v")] * 2), 2, (0, 0))
        for _ in range(MOST_PENDING):
            link.send([part], 0)
        link.answers(0.0)
        assert (link.pending, link.sequences[3]) == (MOST_PENDING, 2 * MOST_PENDING)
        whole = answer(0)
        theirs.sendall(whole[:9])
        link.answers(1.0)
        assert link.pending == MOST_PENDING, "half an answer is none"
        theirs.sendall(whole[9:] + answer(0))
        link.send([part], 0)
        assert link.pending == MOST_PENDING - 1
        theirs.sendall(answer(45))
        with pytest.raises(RefusedError, match="partition 3: error 45"):
            link.finish()


def test_who_listens_is_found_and_its_load_is_counted() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert listener(port) == os.getpid()
    assert listener(port) is None
    machine = Machine(os.getpid())
    first = machine.look({"system": os.getpid()}, os.getpid())
    while machine.look({}, os.getpid()).processes["reader"] < first.processes["reader"] + 0.1:
        pass  # works
    last = machine.look({"system": os.getpid()}, os.getpid())
    load = load_between(first, last)
    assert load.keys() == {"system", "broker", "reader", "broker's compilers", "others", "stolen", "idle"}
    assert load["system"] > 0
    assert load["broker's compilers"] == 0
    assert threads_between(first, last)["main"] > 0


def test_means_are_of_the_seconds_that_count() -> None:
    text = json.dumps(
        {
            "ages": {"fetched": {"9": [1, 500.0], "10": [2, 6.0], "11": [1, 6.0], "12": [1, 900.0]}},
            "seconds": {"rounds": {"10": [30, 0.06], "11": [10, 0.02]}, "commit": {"9": [1, 1.0]}},
        }
    )
    assert means(text, 10.0, 12.0) == ({"fetched": 4.0}, {"rounds": {"a_second": 20.0, "ms": 2.0}})
