"""Runs of several partitions that are read in one go are read as each is by itself, whatever the bytes."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.test_columnar import KEYS, KINDS, LIMITS, runs
from tests.tiers import examples
from tests.unit.topics.codecs.compiled.same import assert_same
from topics.codecs import decode_instances
from topics.codecs.compiled.decode import InstanceDecoder
from topics.codecs.compiled.small_runs import small_runs
from topics.columns.records import Headers, RawRecords
from topics.columns.spans import RecordSpans

ODD: list[bytes | None] = [None, b"", b"\xd6", b"\xff", b"\x00\x00\x00\x00\x01{}", b" " * 2_000_000]


def run_of_partition(
    partition: int,
    values: list[bytes | None],
    keys: list[bytes | None] | None = None,
    headers: list[Headers] | None = None,
) -> RawRecords:
    """Return a run as it is fetched: over one buffer, of which it is a part."""
    n = len(values)
    offsets = range(1000 * partition, 1000 * partition + n + 2)
    spans = RecordSpans.of(
        offsets,
        [1_800_000_000_000] * (n + 2),
        [b"before", *(keys or [b"m"] * n), b"behind"],
        [b"{}", *values, b"[]"],
        [(), *(headers or [()] * n), ()],
    )
    return RawRecords.over("grove.instances", partition, spans.part(1, n + 1))


def compare(decode: InstanceDecoder, raws: list[RawRecords]) -> int:
    """Compare the results for runs with those for each alone; return how many runs were read together."""
    read_in_one_go = small_runs(raws, LIMITS, decode._shapes, decode._key_texts)
    decoded = decode.decode(raws, LIMITS)
    for raw, batch, one in zip(raws, decoded, read_in_one_go, strict=True):
        expected = decode_instances(raw, LIMITS)
        assert_same(decode(raw, LIMITS), expected)
        assert_same(batch, expected)
        if one is not None:
            assert_same(one, expected)
    return sum(one is not None for one in read_in_one_go)


@settings(max_examples=examples(100))
@given(st.integers(0, 2**63))
def test_together_as_by_itself(seed: int) -> None:
    rng, decode = random.Random(seed), InstanceDecoder()
    keys = rng.sample(KEYS, rng.randint(1, len(KEYS))) if rng.random() < 0.3 else KEYS[:4]
    kinds = rng.sample(KINDS, rng.randint(1, len(KINDS))) if rng.random() < 0.3 else KINDS[:1]
    written = list(runs(seed, 24, 12))
    for values in written:
        if rng.random() < 0.02:
            values[rng.randrange(len(values))] = rng.choice(ODD)
    for turn in range(0, 24, 8):
        some = written[turn : turn + 8]
        compare(
            decode,
            [
                run_of_partition(
                    partition, values, rng.choices(keys, k=len(values)), rng.choices(kinds, k=len(values))
                )
                for partition, values in enumerate(some)
            ],
        )


def plain(partition: int, labels: str) -> list[bytes | None]:
    return [
        b'{"id":"%d-%d","features":{"a":%.2f,"b":"%s"},"label":"%s","weight":2}'
        % (partition, at, at / 7, b"red" if at % 3 else b"blue", label.encode())
        for at, label in enumerate(labels)
    ]


def test_plain_runs_are_read_together_and_others_do_not_keep_them_from_it() -> None:
    decode = InstanceDecoder()
    steady = [run_of_partition(p, plain(p, labels)) for p, labels in enumerate(["abab", "ba", "c", "bcab"])]
    decode(run_of_partition(9, plain(9, "abcabcabc")), LIMITS)  # learns the shape
    assert compare(decode, steady) == 4
    bad = plain(4, "aa")
    bad[1] = b'{"id":"x"'
    assert compare(decode, [*steady, run_of_partition(4, bad)]) == 4
    nobodys = run_of_partition(5, plain(5, "ab"), keys=[b"m", None])
    assert compare(decode, [*steady, nobodys]) == 4


def test_ids_that_are_not_given_are_of_the_run_s_own_partition() -> None:
    decode = InstanceDecoder()
    values: list[bytes | None] = [b'{"features":[%d,2]}' % at for at in range(9)]
    nulls: list[bytes | None] = [b'{"id":null,"features":[%d,2]}' % at for at in range(9)]
    for column in (values, nulls):
        decode(run_of_partition(7, column), LIMITS)
    assert compare(decode, [run_of_partition(p, values) for p in range(3)]) == 3
    assert compare(decode, [run_of_partition(p, nulls) for p in range(3)]) == 3
    mixed = [run_of_partition(0, values), run_of_partition(1, nulls)]
    assert compare(decode, mixed) == 2


def test_nothing_is_known_at_first() -> None:
    assert compare(InstanceDecoder(), [run_of_partition(p, plain(p, "ab")) for p in range(2)]) == 0


def test_a_trickle_of_runs_below_the_kernel_s_worth_is_read_together_from_the_second_round_on() -> None:
    decode = InstanceDecoder()
    trickle = [run_of_partition(p, plain(p, labels)) for p, labels in enumerate(["ab", "b", "ca", "abb"])]
    assert compare(decode, trickle) == 0
    assert compare(decode, trickle) == 4


def test_a_round_without_any_good_record_of_json_teaches_nothing() -> None:
    decode = InstanceDecoder()
    bad: list[list[bytes | None]] = [
        [b"{", b"", None],
        [b"[1]"] * 3,
        [b"\xd6"] * 3,
        [b"\x00\x00\x00\x00\x01{}"],
    ]
    for _ in range(2):
        assert compare(decode, [run_of_partition(p, values) for p, values in enumerate(bad)]) == 0
