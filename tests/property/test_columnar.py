"""Records of known shapes are decoded to what the codec makes of them, whatever the bytes."""

import json
import random
from collections.abc import Callable, Iterator

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from tests.unit.topics.codecs.compiled.same import assert_same
from tests.unit.topics.codecs.samples import run_of
from topics.codecs import Limits, decode_instances, decode_labels
from topics.codecs.compiled.decode import InstanceDecoder, LabelDecoder
from topics.columns.records import Headers, RawRecords

LIMITS = Limits(text_max_bytes=64)
WHOLE = "0 -0 1 -1 01 +1 12345678901234567890 18446744073709551616 -9223372036854775809 999999999999999999"
TINY = (
    "1e-400 5e-324 2.2250738585072011e-308 0.000000000000000000000000000001 123456789012345678e-40 1e-99999"
)
LARGE = (
    "1e308 1.8e308 1.7976931348623157e308 1e22 1e23 1e99999 1e100000 1000000000 1000000001 9007199254740993"
)
MORE = "-0.0 0.0 0e5 -0e1 1. .5 1e 1e+ 1E-5 1e+05 0.1 123.456 0.30000000000000004 3.14159265358979323846"
NUMBERS = tuple(f"{WHOLE} {TINY} {LARGE} {MORE}".split())
OTHERS = (
    *("null", "true", "false", "nul", "truE", "NaN", "Infinity", "[]", "{}", "[1]", "", " 1"),
    *('""', '"a"', '"red"', '"blü"', '"a\\"b"', '"\\u0041"', '"\\ud83d\\ude00"', '"tab\t"', '"x'),
    *(f'"{"l" * n}"' for n in (16, 17, 64, 65)),
    *(f'"{"é" * n}"' for n in (16, 17, 32, 33)),
    *('"' + r"\u00e9" * n + '"' for n in (2, 10, 11, 33)),
)
STRINGS = (
    *('"é"', r'"\u00e9"', r'"\u00E9"', '"e\u0301"', '"\U0001f600"', r'"\uD83D\uDE00"'),
    *('"\u20ac\uffff\U0010ffff"', r'"a\nb"', r'"\"\\\/\b\f\n\r\t"', r'"\u0000"', r'"\u0022"'),
    *(r'"red\u0020"', '"red "', r'"\uffff"', r'"\ue000"', '"\x7f"'),
)
"""Strings beyond plain ASCII, all of them good."""
BROKEN = (
    *(r'"\ud800"', r'"\udc00"', r'"\ud83d\u0041"', r'"\ud83dx"', r'"\ud83d\"', r'"\ud83d\ud83d"'),
    *(r'"\u12"', r'"\u12g4"', r'"\u/000"', r'"\u:000"', r'"\u@aaa"', r'"\u`aaa"', r'"\U0041"'),
    *(r'"\x41"', '"\\', r'"\"', r'"\u', '"\ud800"', '"a\x1f"'),
)
VALUES = (*NUMBERS, *OTHERS, *STRINGS, *BROKEN)
MEMBERS = ("id", "features", "label", "weight", "extra", "features ", "declined", "annotator")
USUAL = {
    "id": ["1", '"x"', *STRINGS],
    "label": ["0", '"yes"', "null", "true", *STRINGS],
    "weight": ["1", "2.5", "null"],
    "declined": ["false", "null"],
    "annotator": ['"ann"', "7", "null", '"\\u00e9"', '"é"'],
}


def value(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.5:
        return rng.choice(VALUES)
    if kind < 0.7:
        return repr(rng.uniform(-1, 1) * 10.0 ** rng.randint(-30, 30))
    return str(rng.randint(-100, 100)) if kind < 0.85 else f"{rng.uniform(0, 100):.4f}"


class Producer:
    """Writes records of one order and one spelling, now and then with an odd value or a wrong byte."""

    def __init__(self, rng: random.Random, oddness: float) -> None:
        self._rng, self._oddness = rng, oddness
        self._members = rng.sample(MEMBERS, rng.randint(1, len(MEMBERS)))
        usual = [name for name in ("id", "features", "label") if name not in self._members]
        self._members += usual if rng.random() < 0.8 else []
        self._members += rng.sample(MEMBERS, 1) if rng.random() < 0.05 else []  # a member twice
        self._names = [
            rng.choice(["a", "b", "é", "a b", "", "c", "dd"]) + str(i) for i in range(rng.randint(1, 4))
        ]
        self._by_name = rng.random() < 0.7
        self._comma, self._colon = rng.choice([(",", ":"), (", ", ": "), (" ,\n", " : ")])
        if rng.random() < 0.05:
            self._names[0] = ""
        self._usual = {name: self._plain(name) for name in (*self._members, *self._names)}

    def record(self) -> bytes:
        cells = [self._cell(name) for name in self._names]
        if self._by_name:
            named = zip(self._names, cells, strict=True)
            features = "{" + self._comma.join(json.dumps(n) + self._colon + c for n, c in named) + "}"
        else:
            features = "[" + self._comma.join(cells) + "]"
        written = [
            json.dumps(name) + self._colon + (features if name == "features" else self._cell(name))
            for name in self._members
        ]
        text = bytearray(("{" + self._comma.join(written) + "}").encode(errors="surrogatepass"))
        if self._rng.random() < self._oddness / 4:
            strange = [at for at, byte in enumerate(text) if byte >= 128 or byte == ord("\\")]
            at = self._rng.choice(strange or range(len(text)))
            text[at : at + self._rng.randint(0, 2)] = self._rng.randbytes(self._rng.randint(0, 2))
        return bytes(text)

    def _plain(self, name: str) -> str:
        return self._rng.choice(USUAL.get(name, ["1", "2.5", '"x"', "null", "true", '"é"', '"y"']))

    def _cell(self, name: str) -> str:
        if self._rng.random() < self._oddness:
            return value(self._rng)
        usual = self._usual[name]
        if usual in STRINGS:
            return self._rng.choice(STRINGS)
        return f"{self._rng.uniform(0, 9):.4f}" if usual == "2.5" else usual


def runs(seed: int, n_runs: int, rows: int) -> Iterator[list[bytes | None]]:
    """Yield the values of runs by a few producers that take turns."""
    rng = random.Random(seed)
    producers = [Producer(rng, rng.choice([0.0, 0.02, 0.3])) for _ in range(rng.choice([1, 1, 2, 4, 12]))]
    for _ in range(n_runs):
        yield [rng.choice(producers).record() for _ in range(rng.randint(1, rows))]


class Both:
    """Decodes runs in both ways, as instances and as labels."""

    def __init__(self) -> None:
        self._instances, self._labels = InstanceDecoder(), LabelDecoder()

    def compare(
        self,
        values: list[bytes | None],
        keys: list[bytes | None] | None = None,
        headers: list[Headers] | None = None,
    ) -> None:
        """The codecs get lists, we get them in turns with spans over one buffer, as they are fetched."""
        raw = run_of(values, keys=keys, headers=headers)
        ours = [
            RawRecords.over(raw.topic, raw.partition, raw.spans),
            run_of(values, keys=keys, headers=headers),
        ]
        instances, labels = decode_instances(raw, LIMITS), decode_labels(raw, LIMITS)
        for decoder in ours if len(values) % 2 else reversed(ours):
            assert_same(self._instances(decoder, LIMITS), instances)
            assert_same(self._labels(decoder, LIMITS), labels)


def compare_many(
    runs_of: Callable[[int, int, int], Iterator[list[bytes | None]]], least: int, rows: int, first: int = 0
) -> tuple[int, int]:
    """Compare runs, seed after seed; return how many records they were, and the seed after the last one.

    runs_of: a seed, how many runs, their rows at most → the runs; least: records.
    """
    seen, seed = 0, first
    while seen < least:
        both = Both()
        for values in runs_of(seed, 20, rows):
            both.compare(values)
            seen += len(values)
        seed += 1
    return seen, seed


@settings(max_examples=examples(100))
@given(st.integers(0, 2**63))
def test_both_ways_lead_to_the_same(seed: int) -> None:
    both = Both()
    for values in runs(seed, 4, 40):
        both.compare(values)


KEYS = (b"m", b"n", "é".encode(), b"key of sixteen b", None, b"", b"\xff", b"k" * 65)
KINDS: tuple[Headers, ...] = (
    (),
    [("content-type", b"application/json")],
    [("Content-Type", b"application/cloudevents+json"), ("a", None)],
    [("a", b"1"), ("content-type", b"text/plain")],
    [("content-type", b"application/vnd.grove.packed")],
    [("\N{REPLACEMENT CHARACTER}", None)],
)


@settings(max_examples=examples(100))
@given(st.integers(0, 2**63))
def test_whatever_the_keys_and_headers(seed: int) -> None:
    both, rng = Both(), random.Random(seed)
    keys = rng.sample(KEYS, rng.randint(1, len(KEYS))) if rng.random() < 0.5 else KEYS[:4]
    kinds = rng.sample(KINDS, rng.randint(1, len(KINDS))) if rng.random() < 0.5 else KINDS[:1]
    odd: list[bytes | None] = [None, b"", b"\xd6", b"\xff", b"\x00\x00\x00\x00\x01{}", b" " * 2_000_000]
    for values in runs(seed, 3, 30):
        n = len(values)
        if rng.random() < 0.3:
            values[rng.randrange(n)] = rng.choice(odd)
        both.compare(values, rng.choices(keys, k=n), rng.choices(kinds, k=n))


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_ten_million_records_lead_to_the_same() -> None:
    compare_many(runs, 10_000_000, 2000)


@given(st.lists(st.binary(max_size=30) | st.sampled_from([orjson.dumps({"features": [1, 2.5]})]), min_size=8))
def test_whatever_the_bytes(values: list[bytes | None]) -> None:
    both = Both()
    for _ in range(3):
        both.compare(values)


def test_most_records_of_a_steady_producer_take_the_short_way() -> None:
    """Else the comparison compares the codec with itself."""
    decode = InstanceDecoder()
    record = b'{"id":"%d","features":{"a":%.3f,"b":"red"},"label":"yes","weight":2}'
    values = [record % (i, i / 7) for i in range(100)]
    first = decode(run_of(values), LIMITS)
    assert len(decode._shapes) == 1
    plain_rows = decode._shapes.scan(values, LIMITS)
    assert [len(rows) for rows, _ in plain_rows] == [100]
    assert_same(decode(run_of(values), LIMITS), first)
    labels = LabelDecoder()
    values = [b'{"id":%d,"label":"yes","annotator":"a%d"}' % (i, i % 3) for i in range(100)]
    asked = labels(run_of(values), LIMITS)
    assert [len(rows) for rows, _ in labels._shapes.scan(values, LIMITS)] == [100]
    assert_same(labels(run_of(values), LIMITS), asked)


@pytest.mark.parametrize("cell", STRINGS)
def test_escapes_and_what_is_not_ascii_take_the_short_way(cell: str) -> None:
    decode = InstanceDecoder()
    records = [f'{{"id":"é{i}","features":{{"a":{cell},"é":{i}}},"label":{cell}}}' for i in range(20)]
    values: list[bytes] = [record.encode() for record in records]
    for _ in range(2):
        assert_same(decode(run_of([*values]), LIMITS), decode_instances(run_of([*values]), LIMITS))
    assert [len(rows) for rows, _ in decode._shapes.scan(values, LIMITS)] == [20]


def test_a_text_that_is_spelled_in_several_ways_is_one() -> None:
    decode = InstanceDecoder()
    cells = ['"é"', '"\\u00e9"', '"e"', '"\\u00E9"', '"\\u0065"'] * 4
    values: list[bytes | None] = [f'{{"features":[{cell}],"label":{cell}}}'.encode() for cell in cells]
    for _ in range(2):
        decoded = decode(run_of(values), LIMITS)
    assert decoded.label_values == ["é", "e"]
    assert decoded.label.tolist() == [0, 0, 1, 0, 1] * 4
    assert decoded.features[0].strings == {0: ["é", "é", "e", "é", "e"] * 4}


def test_a_shape_that_is_not_used_gives_way() -> None:
    decode = InstanceDecoder()
    for turn in range(20):
        values = [b'{"features":{"a%d":%d}}' % (turn, i) for i in range(10)]
        for _ in range(2):
            raw = run_of(values)
            assert_same(decode(raw, LIMITS), decode_instances(raw, LIMITS))
        assert len(decode._shapes.scan(values, LIMITS)) == 1
    assert len(decode._shapes) == 8


def test_a_buffer_is_not_read_past_its_end() -> None:
    """Values that end where the shape goes on."""
    decode = InstanceDecoder()
    whole = b'{"features":{"a":1.25,"b":true,"c":"xyz"},"label":null}'
    decode(run_of([whole] * 8), LIMITS)
    cut = [whole[:n] for n in range(1, len(whole) + 1)]
    raw = run_of(cut)
    decoded = decode(raw, LIMITS)
    assert_same(decoded, decode_instances(raw, LIMITS))
    assert np.array_equal(decoded.record, [len(cut) - 1])
