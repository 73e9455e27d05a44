"""Packed instances and labels: layout, groups, and everything that is wrong with them."""

import struct

import numpy as np
import pytest

from tests.unit.topics.codecs.samples import cells, classes, instance, label, only_flaw, reasons, run_of
from topics.codecs import decode_instances, decode_labels, encode_instances, encode_labels
from topics.codecs.packed.layout import HEADER
from topics.columns.records import Features
from topics.errors import CodecError

NAN, INF = float("nan"), float("inf")


def packed(
    values: list[float],
    *,
    kind: int = 1,
    flags: int = 0,
    label: int = 0,
    weight: float | None = None,
    identity: bytes = b"",
    tail: bytes = b"",
    form: str = "d",
    magic: bytes = b"\xd6\x47",
    version: int = 1,
    value_bytes: int | None = None,
    count: int | None = None,
) -> bytes:
    size = value_bytes or struct.calcsize(form)
    n = len(values) if count is None else count
    header = struct.pack("<2sBBBBHIi", magic, version, kind, size, flags, len(identity), n, label)
    eighth = b"" if weight is None else struct.pack("<d", weight)
    return header + eighth + struct.pack(f"<{len(values)}{form}", *values) + tail + identity


def test_the_writer_writes_the_documented_bytes() -> None:
    features = Features.of(None, [[1.0, NAN], [2.0, 3.0]])
    written = encode_instances(
        features, format="packed", ids=["x", "yz"], labels=["-7", "spam"], weights=np.array([0.5, 2.0])
    )
    assert written == [
        packed([1.0, NAN], flags=5, label=-7, weight=0.5, identity=b"x"),
        packed([2.0, 3.0], flags=7, label=4, weight=2.0, identity=b"yz", tail=b"spam"),
    ]
    assert HEADER.size == 16


def test_uniform_records_in_both_widths() -> None:
    decoded = decode_instances(
        run_of([packed([1.5, NAN], flags=1, label=2), packed([0.0, -3.0], flags=1, label=-1)])
    )
    assert cells(decoded) == [{0: 1.5, 1: None}, {0: 0.0, 1: -3.0}]
    assert classes(decoded) == ["2", "-1"]
    assert decoded.ids == ["3-100", "3-101"]
    assert decoded.features[0].names is None
    narrow = decode_instances(run_of([packed([1.5, NAN], form="f")]))
    assert cells(narrow) == [{0: 1.5, 1: None}]


def test_mixed_headers_keep_the_order_and_make_one_matrix_for_each_width() -> None:
    values = [
        packed([1, 2], identity=b"a"),
        packed([3], flags=1, label=5),
        packed([4, 5], identity=b"bcd", flags=7, label=3, weight=2.5, tail=b"dog"),
        packed([6, 7], form="f"),
        packed([8], flags=7, label=3, weight=0.5, tail=b"cat", identity="é".encode()),
    ]
    decoded = decode_instances(run_of(values))
    assert decoded.malformed == []
    assert decoded.ids == ["a", "3-101", "bcd", "3-103", "é"]
    assert classes(decoded) == [None, "5", "dog", None, "cat"]
    assert decoded.weight.tolist() == [1, 1, 2.5, 1, 0.5]
    assert cells(decoded) == [{0: 1, 1: 2}, {0: 3}, {0: 4, 1: 5}, {0: 6, 1: 7}, {0: 8}]
    assert [group.rows.tolist() for group in decoded.features] == [[0, 2, 3], [1, 4]]


def test_records_of_equal_length_with_different_label_texts() -> None:
    one = packed([1], flags=3, label=2, tail=b"ab", identity=b"cde")
    two = packed([1], flags=3, label=3, tail=b"abc", identity=b"de")
    decoded = decode_instances(run_of([one, two, one]))
    assert classes(decoded) == ["ab", "abc", "ab"]
    assert decoded.ids == ["cde", "de", "cde"]


@pytest.mark.parametrize(
    ("value", "reason", "words"),
    [
        (b"\xd6", "wrong-length", "1 bytes; the header alone has 16"),
        (packed([1.0])[:15], "wrong-length", "15 bytes; the header alone has 16"),
        (packed([1.0], magic=b"\xd6\x48"), "bad-header", "magic=d648 must be d647"),
        (packed([1.0], version=2), "bad-header", "version=2 must be 1"),
        (packed([1.0], kind=2), "bad-header", "kind=2 must be 1 (instance) on this topic"),
        (packed([1.0], value_bytes=2), "bad-header", "bytes of a value=2 must be 8 (float64) or 4 (float32)"),
        (packed([1.0], flags=8), "bad-header", "flags=0x08 must be within 0x07 for this kind"),
        (packed([1.0], flags=128), "bad-header", "flags=0x80 must be within 0x07 for this kind"),
        (packed([1.0], flags=3, label=0), "bad-header", "label=0 must be"),
        (packed([1.0], flags=3, label=-5), "bad-header", "label=-5 must be"),
        (packed([1.0], flags=2, label=1, tail=b"a"), "bad-header", "with flag 1"),
        (packed([1.0], count=2), "wrong-length", "24 bytes; the header has lengths for 32"),
        (packed([1.0, 2.0], count=1), "wrong-length", "32 bytes; the header has lengths for 24"),
        (packed([1.0], count=2**32 - 1), "wrong-length", "the header has lengths for 34359738376"),
        (packed([1.0], flags=3, label=2**31 - 1), "wrong-length", "the header has lengths for 2147483671"),
        (packed([]), "missing-field", "count=0: features must not be empty"),
        (packed([1.0, INF]), "not-finite", "feature 1 is infinite; NaN stands for a missing value"),
        (packed([-INF], form="f"), "not-finite", "feature 0 is infinite"),
        (
            packed([1.0], flags=4, weight=0.0),
            "bad-weight",
            "weight=0.0 must be above 0 and at most",
        ),
        (packed([1.0], flags=4, weight=NAN), "bad-weight", "weight=nan"),
        (packed([1.0], flags=4, weight=INF), "bad-weight", "weight=inf"),
        (packed([1.0], flags=4, weight=1e20), "bad-weight", "weight=1e+20 must be above 0 and at most 1e+09"),
        (packed([1.0], identity=b"\xff"), "wrong-type", "id must be UTF-8; byte 0 is not"),
        (packed([1.0], flags=3, label=2, tail=b"a\xff"), "wrong-type", "label must be UTF-8; byte 1 is not"),
    ],
)
def test_bad_instances(value: bytes, reason: str, words: str) -> None:
    reason_found, detail = only_flaw(instance(value))
    assert reason_found == reason
    assert words in detail


def test_good_records_go_on() -> None:
    good = packed([1.0, 2.0], flags=1, label=1)
    bad = packed([1.0, INF], flags=1, label=9)
    decoded = decode_instances(run_of([good, bad, good[:20], good]))
    assert reasons(decoded) == {1: "not-finite", 2: "wrong-length"}
    assert decoded.record.tolist() == [0, 3]
    assert decoded.label_values == ["1"]
    assert cells(decoded) == [{0: 1, 1: 2}] * 2


def test_labels() -> None:
    values = [
        packed([], kind=2, flags=1, label=4, identity=b"i1"),
        packed([], kind=2, flags=8, identity=b"i2"),
        packed([1.0], kind=2, flags=3 | 16, label=2, tail=b"ab", identity=b"i3") + "zoë".encode(),
        packed([], kind=2, flags=1 | 16, label=4, identity=b"i4"),
        packed([2.0], kind=2, flags=5, label=4, weight=3.0, identity=b"i5"),
    ]
    decoded = decode_labels(run_of(values))
    assert decoded.malformed == []
    assert decoded.ids == ["i1", "i2", "i3", "i4", "i5"]
    assert classes(decoded) == ["4", None, "ab", "4", "4"]
    assert decoded.annotators == [None, None, "zoë", None, None]
    assert decoded.weight.tolist() == [1, 1, 1, 1, 3]
    assert cells(decoded) == [None, None, {0: 1}, None, {0: 2}]


def test_labels_of_equal_length_whose_texts_are_not() -> None:
    one = packed([], kind=2, flags=19, label=2, tail=b"ab", identity=b"i") + b"cde"
    two = packed([], kind=2, flags=19, label=3, tail=b"abc", identity=b"i") + b"de"
    decoded = decode_labels(run_of([one, two, one]))
    assert classes(decoded) == ["ab", "abc", "ab"]
    assert decoded.annotators == ["cde", "de", "cde"]
    assert decoded.ids == ["i", "i", "i"]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (packed([], kind=2, flags=1), "missing-field"),
        (packed([], kind=2, identity=b"i"), "missing-field"),
        (packed([], kind=2, flags=9, identity=b"i"), "wrong-type"),
        (packed([], kind=1, flags=1, identity=b"i"), "bad-header"),
        (packed([], kind=2, flags=1, identity=b"i") + b"x", "wrong-length"),
        (packed([], kind=2, flags=17, identity=b"i") + b"\xff", "wrong-type"),
        (packed([INF], kind=2, flags=1, identity=b"i"), "not-finite"),
    ],
)
def test_bad_labels(value: bytes, reason: str) -> None:
    assert only_flaw(label(value))[0] == reason


@pytest.mark.parametrize("name", ["0", "7", "-7", "2147483647", "-2147483648"])
def test_whole_numbers_are_written_as_numbers(name: str) -> None:
    (value,) = encode_labels(["i"], [name], format="packed")
    assert len(value) == 16 + 1
    assert classes(label(value)) == [name]


@pytest.mark.parametrize("name", ["007", "-0", "+1", "2147483648", "-", "--1", "٣", "1.0", "a"])
def test_other_names_are_written_as_texts(name: str) -> None:
    (value,) = encode_labels(["i"], [name], format="packed")
    assert len(value) == 16 + 1 + len(name.encode())
    assert classes(label(value)) == [name]


def test_what_cannot_be_packed_is_refused() -> None:
    with pytest.raises(CodecError, match="feature 'b' holds strings; packed carries numbers only"):
        encode_instances(Features.of(["a", "b"], [[1.0, NAN]], {1: ["x"]}), format="packed")
    with pytest.raises(CodecError, match="id of 70000 bytes must have at most 65535"):
        encode_instances(Features.of(["a"], [[1.0]]), format="packed", ids=["x" * 70000])
