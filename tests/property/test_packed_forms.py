"""Packed instances are decoded by the kernel to what the codec makes of them, whatever the bytes."""

import random
import struct
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.test_columnar import KEYS, LIMITS, Both, compare_many
from tests.tiers import examples
from tests.unit.topics.codecs.compiled.same import assert_same
from tests.unit.topics.codecs.samples import run_of
from topics.codecs import decode_instances, encode_instances, encode_labels
from topics.codecs.compiled.decode import InstanceDecoder
from topics.codecs.packed.compiled.packed_forms import MAX_FORMS, read_instances, read_labels
from topics.codecs.packed.layout import (
    DECLINED,
    HAS_ANNOTATOR,
    HAS_LABEL,
    HAS_WEIGHT,
    HEADER,
    INSTANCE,
    LABEL,
    MAGIC,
    PREDICTION,
    TEXT,
    VERSION,
)
from topics.codecs.screening import screen
from topics.columns.records import Features

BITS64 = (
    *(0, 1 << 63, 0x3FF0000000000000, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000),
    *(0x7FF0000000000001, 0xFFF8DEADBEEF0001, 1, 0x000FFFFFFFFFFFFF, 0x7FEFFFFFFFFFFFFF),
)
BITS32 = (0, 1 << 31, 0x3F800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFDEAD01, 1, 0x7F7FFFFF)
WEIGHTS = (1.0, 2.5, 1e9, 1e9 + 1, 0.0, -0.0, -1.0, 5e-324, float("nan"), float("inf"))
LABELS = (0, 1, -1, 7, 2**31 - 1, -(2**31))
CLASSES = (b"yes", b"no", b"1", "blü".encode(), "\U0001f600".encode(), b"\xff", b"\xed\xa0\x80", b"\xc0\x80")
IDS = (
    *(b"", b"a", b"order-7", "é".encode(), b"i" * 64, b"i" * 65, b"\xe2\x82", b"\xf4\x90\x80\x80"),
    *("é".encode() * 32, "é".encode() * 33, "\U0010ffff".encode(), b"\xe0\x9f\x80", b"\xf0\x8f\x80\x80"),
)


class Producer:
    """Writes records of one form, now and then with an odd part, a wrong byte or another length."""

    def __init__(self, rng: random.Random, oddness: float) -> None:
        self._rng, self._oddness = rng, oddness
        self._width, self._count = rng.choice([8, 8, 4]), rng.randint(1, 5)
        self._flags = rng.choice([0, HAS_LABEL, HAS_LABEL, HAS_LABEL | TEXT]) | rng.choice([0, HAS_WEIGHT])
        self._ids = rng.choice([IDS[:1], IDS[1:4], IDS[:4]])
        self._kind = rng.choice([INSTANCE] * 6 + [LABEL] * 4)
        if self._kind == LABEL:
            self._flags |= rng.choice([0, 0, 0, HAS_ANNOTATOR])
            self._count = rng.choice([0, 0, 0, self._count])

    def record(self) -> bytes:
        rng = self._rng
        flags, width, count, kind = self._flags, self._width, self._count, self._kind
        if self._is_odd():
            flags = rng.choice(
                [rng.randrange(256), flags ^ rng.choice([TEXT, HAS_LABEL, HAS_WEIGHT, DECLINED])]
            )
        if self._is_odd():
            width, count = rng.choice([(8, 0), (4, count), (8, count + 1), (2, count), (8, 1 << 31)])
        if self._is_odd():
            kind = rng.choice([INSTANCE, LABEL, PREDICTION, 0, 255])
        text = rng.choice(CLASSES if self._is_odd() else CLASSES[:5]) if flags & TEXT else b""
        name = rng.choice(IDS if self._is_odd() else self._ids)
        label = len(text) if flags & TEXT else rng.choice(LABELS)
        if self._is_odd():
            label = rng.choice([0, -1, len(text) + 1, 2**31 - 1])
        record = bytearray(HEADER.pack(MAGIC, VERSION, kind, width, flags, len(name), count, label))
        if flags & HAS_WEIGHT:
            record += struct.pack("<d", rng.choice(WEIGHTS if self._is_odd() else WEIGHTS[:3]))
        for _ in range(min(count, 8)):
            record += self._value(width)
        record += text + name
        if flags & HAS_ANNOTATOR:
            record += rng.choice(IDS if self._is_odd() else IDS[:4])
        if self._is_odd():
            at = rng.randrange(len(record))
            record[at : at + rng.randint(0, 2)] = rng.randbytes(rng.randint(0, 2))
        return bytes(record)

    def _is_odd(self) -> bool:
        return self._rng.random() < self._oddness / 8

    def _value(self, width: int) -> bytes:
        rng = self._rng
        if rng.random() < self._oddness:
            return (
                struct.pack("<I", rng.choice(BITS32)) if width == 4 else struct.pack("<Q", rng.choice(BITS64))
            )
        return struct.pack("<f" if width == 4 else "<d", rng.choice([rng.uniform(-9, 9), float("nan"), -0.0]))


def runs(seed: int, n_runs: int, rows: int) -> Iterator[list[bytes | None]]:
    """Yield the values of runs by a few producers that take turns."""
    rng = random.Random(seed)
    oddness = rng.choice([0.0, 0.02, 0.3])
    producers = [Producer(rng, oddness) for _ in range(rng.choice([1, 1, 2, 4, 12]))]
    for _ in range(n_runs):
        yield [rng.choice(producers).record() for _ in range(rng.randint(1, rows))]


@settings(max_examples=examples(200))
@given(st.integers(0, 2**63))
def test_both_ways_lead_to_the_same(seed: int) -> None:
    both, rng = Both(), random.Random(seed)
    keys = KEYS[:4] if rng.random() < 0.7 else KEYS
    for values in runs(seed, 4, 40):
        both.compare(values, rng.choices(keys, k=len(values)))


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_ten_million_records_lead_to_the_same() -> None:
    compare_many(runs, 10_000_000, 2000)


@given(st.lists(st.binary(max_size=40).map(lambda tail: MAGIC + tail), min_size=8))
def test_whatever_the_bytes(values: list[bytes | None]) -> None:
    Both().compare(values)


def test_sound_records_are_read_by_the_kernel_whatever_their_form() -> None:
    """Else the comparison compares the codec with itself."""
    forms = [
        encode_instances(Features.of(None, np.ones((9, count))), format="packed", labels=labels, ids=ids)
        for count, labels, ids in (
            (3, None, None),
            (3, ["0", "1", "2"] * 3, None),
            (5, ["yes", "né", "3"] * 3, [f"é{i}" for i in range(9)]),
        )
    ]
    values = [value for turn in zip(*forms, strict=True) for value in turn]
    (batch,) = screen(run_of(values), LIMITS)[0].values()
    parts, is_rest = read_instances(batch, LIMITS)
    assert [len(part) for part in parts] == [9, 9, 6, 3]  # a whole number is no text
    assert not is_rest.any()


def test_more_forms_than_a_run_may_have() -> None:
    values = [
        encode_instances(Features.of(None, np.full((1, 1 + i % (MAX_FORMS + 2)), i)), format="packed")[0]
        for i in range(60)
    ]
    raw = run_of(values)
    assert_same(InstanceDecoder()(raw, LIMITS), decode_instances(raw, LIMITS))


def test_one_wide_record_does_not_make_room_for_all() -> None:
    wide, narrow = (
        encode_instances(Features.of(None, np.ones((1, count))), format="packed")[0] for count in (100_000, 2)
    )
    raw = run_of([wide, *[narrow] * 2000])
    (batch,) = screen(raw, LIMITS)[0].values()
    parts, _ = read_instances(batch, LIMITS)
    assert [part.features[0].values.shape for part in parts] == [(1, 100_000), (2000, 2)]
    buffer = parts[0].features[0].values.base
    assert buffer is not None
    assert buffer.nbytes < 2_000_000
    assert_same(InstanceDecoder()(raw, LIMITS), decode_instances(raw, LIMITS))


@pytest.mark.parametrize("labels", [["a", "b"] * 10, ["3", "-7"] * 10, [None] * 20], ids=str)
@pytest.mark.parametrize("annotators", [None, ["ann", "blü"] * 10])
@pytest.mark.parametrize("count", [0, 3])
def test_sound_labels_are_left_to_no_codec(
    labels: list[str | None], annotators: list[str | None] | None, count: int
) -> None:
    n = 20
    ids = [f"id {row}" for row in range(n)]
    features = Features.of(None, np.ones((n, count))) if count else None
    values = encode_labels(ids, labels, annotators=annotators, features=features, format="packed")
    batches, _ = screen(run_of(list(values)), LIMITS)
    parts, is_rest = read_labels(batches["packed"], LIMITS)
    assert not is_rest.any()
    (part,) = parts
    assert [part.label_values[code] if code >= 0 else None for code in part.label.tolist()] == labels
    assert list(part.ids) == ids
    assert part.annotators == (annotators or [None] * n)
    assert [group.values.shape for group in part.features] == ([(n, count)] if count else [])


def test_an_annotator_without_a_name_is_none() -> None:
    records = [
        HEADER.pack(MAGIC, VERSION, LABEL, 8, HAS_LABEL | HAS_ANNOTATOR, 1, 0, 7) + b"i" + annotator
        for annotator in [b"", b"ann"] * 5
    ]
    (batch,) = screen(run_of([*records]), LIMITS)[0].values()
    (part,), is_rest = read_labels(batch, LIMITS)
    assert not is_rest.any()
    assert part.annotators == [None, "ann"] * 5
    Both().compare([*records])
