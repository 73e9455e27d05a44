"""Rows and labels become the records that the decoders understand, in the right order."""

import numpy as np
import pytest

from tests.unit.topics.memory_dataset import MemoryDataset, counting
from topics.clients.partitioner import partition_of
from topics.codecs import Limits, decode_instances, decode_labels
from topics.columns.records import RawRecords
from topics.replay import Delay, ReplayPlan
from topics.replay.arrow_blocks import BlockEmitter
from topics.replay.emission import RowEmitter, Rows
from topics.replay.owed import OwedLabels
from topics.replay.row_keys import KeyRing
from topics.replay.timeline import Timeline

INSTANCES, LABELS = "grove.instances", "grove.labels"
P = 8


def records(dataset, plan, cut=7):
    """Return (topic, key, value, partition, timestamp) of a whole replay made in chunks of `cut` rows."""
    timeline, owed = Timeline(plan), OwedLabels()
    emitter = (BlockEmitter if plan.format == "arrow" else RowEmitter)(plan, dataset, KeyRing(plan, P))
    made, first = [], 0
    for x, y in dataset.batches(cut):
        numbers = np.arange(first, first + len(y))
        first += len(y)
        codes = timeline.surviving(numbers, y)
        if plan.labels == "apart":
            owed.add(timeline.labels(numbers, codes, 0.0))
        with_instance = codes if plan.labels == "with" else np.full_like(codes, -1)
        rows = Rows(numbers, x, with_instance, timeline.places(numbers, 0.0), timeline.timestamps(numbers))
        made.append(emitter.emit(rows, owed.take(rows.place[-1])))
    made.append(emitter.emit(Rows.none(len(dataset.names)), owed.take(np.inf)))
    made.append(emitter.rest())
    return [
        record
        for out in made
        for record in zip(out.topics, out.keys, out.values, out.partitions, out.timestamps, strict=True)
    ]


def decoded(made, topic, decode):
    """Return one (key, id, label, values) a row of a topic, in order."""
    chosen = [r for r in made if r[0] == topic]
    n = len(chosen)
    raw = RawRecords(
        topic,
        0,
        list(range(n)),
        [r[4] for r in chosen],
        [r[1] for r in chosen],
        [r[2] for r in chosen],
        [()] * n,
    )
    batch = decode(raw, Limits())
    assert batch.malformed == []
    rows = [
        [batch.keys[k], id_, batch.label_values[c] if c >= 0 else None, {}]
        for k, id_, c in zip(batch.key.tolist(), batch.ids, batch.label.tolist(), strict=True)
    ]
    for group in batch.features:
        names = group.names or range(group.values.shape[1])
        for place, row in enumerate(group.rows.tolist()):
            for j, name in enumerate(names):
                word = group.strings[j][place] if j in group.strings else None
                number = float(group.values[place, j])
                rows[row][3][name] = word if word is not None else (None if np.isnan(number) else number)
    return [tuple(row) for row in rows]


@pytest.mark.parametrize("format", ["json", "packed", "arrow"])
def test_labelled_instances(format):
    made = records(counting(20), ReplayPlan(format=format, block_rows=6))
    names = [0, 1] if format == "packed" else ["f1", "f2"]
    assert decoded(made, INSTANCES, decode_instances) == [
        ("default", str(n), ("no", "yes")[n % 2], {names[0]: float(n), names[1]: n / 2}) for n in range(20)
    ]
    assert {r[3] for r in made} == {partition_of(b"default", P)}
    assert {r[0] for r in made} == {INSTANCES} and {r[4] for r in made} == {0}
    assert len(made) == (4 if format == "arrow" else 20)


def test_by_position_without_ids_or_labels():
    made = records(counting(3), ReplayPlan(by_name=False, ids=False, labels="none"))
    assert [r[2] for r in made] == [b'{"features":[%d.0,%s]}' % (n, str(n / 2).encode()) for n in range(3)]


@pytest.mark.parametrize("format", ["json", "arrow"])
def test_words_and_missing_values(format):
    dataset = MemoryDataset(
        [[1.5, 0], [np.nan, 1], [2, np.nan]], [0, 1, -1], values=[(), ("red", "blue")], names=["h", "colour"]
    )
    assert decoded(records(dataset, ReplayPlan(format=format)), INSTANCES, decode_instances) == [
        ("default", "0", "no", {"h": 1.5, "colour": "red"}),
        ("default", "1", "yes", {"h": None, "colour": "blue"}),
        ("default", "2", None, {"h": 2.0, "colour": None}),
    ]
    assert np.array_equal(dataset.x[:, 1], [0, 1, np.nan], equal_nan=True)  # the caller's rows are untouched


def test_packed_carries_codes():
    dataset = MemoryDataset([[0.0], [1.0]], [0, 1], values=[("red", "blue")])
    made = records(dataset, ReplayPlan(format="packed"))
    assert [r[3] for r in decoded(made, INSTANCES, decode_instances)] == [{0: 0.0}, {0: 1.0}]


@pytest.mark.parametrize("format", ["json", "packed", "arrow"])
def test_every_key_gets_the_whole_stream(format):
    made = records(counting(10), ReplayPlan(format=format, keys=("a", "b", "c"), block_rows=4))
    rows = decoded(made, INSTANCES, decode_instances)
    for key in "abc":
        assert [r[1] for r in rows if r[0] == key] == [str(n) for n in range(10)]
    assert {(r[1], r[3]) for r in made} == {(k, partition_of(k, P)) for k in (b"a", b"b", b"c")}


@pytest.mark.parametrize("format", ["json", "packed", "arrow"])
@pytest.mark.parametrize("spread", ["round-robin", "zipf"])
def test_rows_are_spread_over_keys(format, spread):
    plan = ReplayPlan(format=format, keys=("a", "b", "c"), spread=spread, block_rows=4)
    made = records(counting(50), plan)
    rows = decoded(made, INSTANCES, decode_instances)
    owner = KeyRing(plan, P).of(np.arange(50))
    assert sorted((int(r[1]), r[0]) for r in rows) == [(n, "abc"[owner[n]]) for n in range(50)]
    for key in "abc":
        ids = [int(r[1]) for r in rows if r[0] == key]
        assert ids == sorted(ids)


def order(made):
    """Return "i3" for instance 3 and "l3" for its label, in order of sending (records of one row)."""
    seen = []
    for topic, kind, decode in ((INSTANCES, "i", decode_instances), (LABELS, "l", decode_labels)):
        places = [n for n, r in enumerate(made) if r[0] == topic]
        rows = decoded(made, topic, decode)
        assert len(rows) == len(places)
        seen += [(place, kind + row[1]) for place, row in zip(places, rows, strict=True)]
    return [name for _, name in sorted(seen)]


@pytest.mark.parametrize("cut", [1, 2, 7, 100])
@pytest.mark.parametrize("format", ["json", "packed"])
def test_a_label_follows_so_many_rows_behind_its_instance(cut, format):
    plan = ReplayPlan(labels="apart", label_delay=Delay(2), format=format)
    expected = ["i0", "i1", "i2", "l0", "i3", "l1", "i4", "l2", "l3", "l4"]
    assert order(records(counting(5), plan, cut)) == expected
    plan = ReplayPlan(labels="apart", format=format)
    assert order(records(counting(3), plan, cut)) == ["i0", "l0", "i1", "l1", "i2", "l2"]


def test_labels_name_class_and_key():
    plan = ReplayPlan(labels="apart", label_delay=Delay(3), keys=("a", "b"), spread="round-robin")
    made = records(counting(6), plan)
    assert sorted(decoded(made, LABELS, decode_labels)) == sorted(
        (("a", "b")[n % 2], str(n), ("no", "yes")[n % 2], {}) for n in range(6)
    )
    assert all(r[3] == partition_of(r[1], P) for r in made)
    assert all(r[2] is None for r in decoded(made, INSTANCES, decode_instances))


@pytest.mark.parametrize("format", ["json", "arrow"])
def test_the_same_labels_are_lost_and_late_whatever_the_batches(format):
    plan = ReplayPlan(
        labels="apart",
        label_delay=Delay(5, "records", "exponential"),
        label_loss=0.3,
        format=format,
        block_rows=10,
    )
    runs = [decoded(records(counting(1000), plan, cut), LABELS, decode_labels) for cut in (1000, 64, 3)]
    assert [sorted(run) for run in runs[1:]] == [sorted(runs[0])] * 2
    if format == "json":
        assert runs[1] == runs[0] and runs[2] == runs[0]
    assert abs(len(runs[0]) - 700) < 4 * np.sqrt(1000 * 0.3 * 0.7)


def test_loss_takes_labels_out_of_their_instances():
    rows = decoded(records(counting(1000), ReplayPlan(label_loss=0.25)), INSTANCES, decode_instances)
    kept = [r for r in rows if r[2] is not None]
    assert len(rows) == 1000 and abs(len(kept) - 750) < 4 * np.sqrt(1000 * 0.25 * 0.75)
    assert all(r[2] == ("no", "yes")[int(r[1]) % 2] for r in kept)
    assert [
        r[2] for r in decoded(records(counting(9), ReplayPlan(label_loss=1.0)), INSTANCES, decode_instances)
    ] == [None] * 9


def test_rows_without_a_label_have_none():
    dataset = MemoryDataset([[1.0], [2.0], [3.0]], [0, -1, 1])
    made = records(dataset, ReplayPlan(labels="apart"))
    assert order(made) == ["i0", "l0", "i1", "i2", "l2"]


@pytest.mark.parametrize("cut", [1, 4, 100])
def test_own_event_time_and_delay_in_seconds(cut):
    plan = ReplayPlan(labels="apart", label_delay=Delay(0.25, "seconds"), start_ms=1_000_000, step_ms=100)
    made = records(counting(5), plan, cut)
    assert order(made) == ["i0", "i1", "i2", "l0", "i3", "l1", "i4", "l2", "l3", "l4"]
    assert [r[4] for r in made if r[0] == INSTANCES] == [1_000_000 + 100 * n for n in range(5)]
    assert [r[4] for r in made if r[0] == LABELS] == [1_000_250 + 100 * n for n in range(5)]


def test_own_event_time_and_delay_in_records():
    plan = ReplayPlan(labels="apart", label_delay=Delay(2), start_ms=500, step_ms=0.5)
    made = records(counting(4), plan)
    assert [r[4] for r in made if r[0] == INSTANCES] == [500, 500, 501, 501]
    assert [r[4] for r in made if r[0] == LABELS] == [501, 501, 502, 502]


def test_timestamps_of_one_topic_and_key_never_go_back():
    plan = ReplayPlan(
        labels="apart",
        label_delay=Delay(3.0, "seconds", "exponential"),
        start_ms=0,
        step_ms=20,
        keys=("a", "b"),
        spread="zipf",
    )
    made = records(counting(500), plan, 50)
    for topic in (INSTANCES, LABELS):
        stamps = [r[4] for r in made if r[0] == topic]
        assert stamps == sorted(stamps) and len(stamps) == 500


@pytest.mark.parametrize("spread", ["each", "zipf"])
@pytest.mark.parametrize("loss", [0.0, 0.8])
def test_a_block_of_labels_never_overtakes_its_instances(spread, loss):
    plan = ReplayPlan(
        format="arrow", labels="apart", label_loss=loss, block_rows=10, keys=("a", "b", "c"), spread=spread
    )
    made = records(counting(300), plan, 25)
    sent = set()
    for record in made:
        if record[0] == INSTANCES:
            sent |= {(r[0], r[1]) for r in decoded([record], INSTANCES, decode_instances)}
        else:
            assert {(r[0], r[1]) for r in decoded([record], LABELS, decode_labels)} <= sent
    assert len(sent) == (900 if spread == "each" else 300)


def test_blocks_are_full_but_the_last():
    made = records(counting(25), ReplayPlan(format="arrow", block_rows=10), cut=4)
    sizes = [len(decoded([record], INSTANCES, decode_instances)) for record in made]
    assert sizes == [10, 10, 5]
    made = records(counting(25), ReplayPlan(format="arrow", block_rows=10, start_ms=100, step_ms=1), cut=25)
    assert [r[4] for r in made] == [109, 119, 124]


def test_ids_with_a_prefix():
    made = records(counting(2), ReplayPlan(id_prefix="run7-", labels="apart"))
    assert [r[1] for r in decoded(made, INSTANCES, decode_instances)] == ["run7-0", "run7-1"]
    assert [r[1] for r in decoded(made, LABELS, decode_labels)] == ["run7-0", "run7-1"]
