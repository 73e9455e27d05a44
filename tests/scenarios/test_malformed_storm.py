"""Twenty thousand malformed records between good ones: the good are answered, the bad kept aside."""

import io
import random
import struct
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pyarrow as pa
import pytest

from tests.broker.workers import PATIENCE, Installation
from tests.conftest import Broker
from tests.tiers import examples
from topics.clients.partitioner import partition_of
from topics.codecs import decode_predictions

pytestmark = pytest.mark.broker

BAD = examples(20_000)
GOOD = examples(4_000)
PARTITIONS = 3
VARIANTS = 5
KEYS = (b"north", b"south", b"east", b"west")
MAX_BYTES = 2048
MAX_ROWS = 50
SETTINGS = {
    "GROVE_MODEL_SPEC": '{"learner": {"name": "h-tree"}, "query": {"name": "never"}}',
    "GROVE_MODELS_MAX_CLASSES": "2",
    "GROVE_RECORD_MAX_BYTES": str(MAX_BYTES),
    "GROVE_BLOCK_MAX_ROWS": str(MAX_ROWS),
}

Headers = list[tuple[str, bytes]]
Place = tuple[str, int, int]  # topic, partition, offset


class Bad(NamedTuple):
    """A record that cannot be processed, and the reason known from how it was made."""

    source: str  # instances, labels or controls
    reason: str
    value: bytes | None
    key: bytes | None
    headers: Headers


def packed(count: int = 3, **fields: Any) -> bytes:
    """Return a packed record with `count` features that are all 1, by default a sound instance."""
    given: dict[str, Any] = {"magic": b"\xd6\x47", "version": 1, "kind": 1, "size": 8, "flags": 0}
    given |= {"said": count, "label": 0}
    assert fields.keys() <= given.keys() | {"rest", "id_bytes"}
    given |= fields
    header = (given["magic"], given["version"], given["kind"], given["size"], given["flags"])
    start = struct.pack("<2sBBBBHIi", *header, given.get("id_bytes", 0), given["said"], given["label"])
    rest: bytes = given.get("rest", struct.pack(f"<{count}d", *[1.0] * count))
    return start + rest


def block(rows: int, names: tuple[str, ...] = ("a", "b", "c"), **options: Any) -> bytes:
    """Return an Arrow block of sound instances."""
    table = pa.table([pa.array([1.0] * rows, pa.float64())] * len(names), names=list(names))
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue()


def empty_block() -> bytes:
    schema = pa.schema([("a", pa.float64())])
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, schema):
        pass
    return sink.getvalue()


def of_any_source(v: int) -> Iterator[tuple[str, bytes | None]]:
    """Yield (reason, value) of what is bad wherever it stands; v: number of the variant."""
    yield "null-value", None
    yield "not-json", b""
    yield "not-json", b'{"id": "x%d", "features": {"a": %d' % (v, v)
    yield "not-json", b'{"features": {"a": %d}} {}' % v
    yield "not-json", b'{"features": {"a": %d},}' % v
    yield "not-json", b'{"id": "\xff%d"}' % v
    yield "not-json", b'\xef\xbb\xbf{"features": {"a": %d}}' % v
    yield "not-json", b"\x00\x00%d" % v
    yield "not-json", b'{"a": 0%d}' % v
    yield "not-finite", b'{"features": {"a": NaN, "b": %d}}' % v
    yield "not-finite", b'{"features": {"b": %d, "a": Infinity}}' % v
    yield "not-finite", b'{"features": [%d, -Infinity]}' % v
    yield "not-finite", b'{"features": {"a": 1e999, "b": %d}}' % v
    yield "wrong-type", b"[%d, 2, 3]" % v
    yield "wrong-type", b'"text %d"' % v
    yield "wrong-type", b"%d" % v
    yield "wrong-type", b"null"
    yield "too-large", b'{"features": {"a": 1}, "rest": "%s"}' % (b"x" * (MAX_BYTES + v))
    yield "too-large", b"\xd6\x47" + bytes(MAX_BYTES - 1 + v)


def of_instances(v: int) -> Iterator[tuple[str, bytes | None]]:
    yield "wrong-type", b'{"features": %d}' % v
    yield "wrong-type", b'{"features": {"a": {"b": %d}}}' % v
    yield "wrong-type", b'{"features": {"a": 1, "b": [%d]}}' % v
    yield "wrong-type", b'{"features": {"a": 1}, "id": [%d]}' % v
    yield "wrong-type", b'{"features": {"a": 1}, "id": ""}'
    yield "wrong-type", b'{"features": {"a": 1}, "label": {"x": %d}}' % v
    yield "wrong-type", b'{"features": {"a": 1}, "label": %d.5}' % v
    yield "wrong-type", b'{"features": {"a": 1}, "weight": "%d"}' % v
    yield "wrong-type", b'{"features": {"": %d}}' % v
    yield "missing-field", b'{"id": "x%d"}' % v
    yield "missing-field", b'{"id": "x%d", "features": null}' % v
    yield "missing-field", b'{"id": "x%d", "features": {}}' % v
    yield "missing-field", b'{"id": "x%d", "features": []}' % v
    yield "missing-field", packed(0, label=v)
    yield "bad-weight", b'{"features": {"a": %d}, "weight": 0}' % v
    yield "bad-weight", b'{"features": {"a": 1}, "weight": -%d.5}' % v
    yield "bad-weight", b'{"features": {"a": 1}, "label": "yes", "weight": 1e%d}' % (20 + v % 280)
    yield "bad-weight", packed(flags=4, label=v, rest=struct.pack("<4d", float("nan"), 1, 2, 3))
    yield "wrong-schema", orjson.dumps({"features": [1.0] * (4 + v)})
    yield "wrong-schema", packed(4 + v)
    yield "wrong-schema", b'{"features": {"a": "word %d", "b": 1, "c": 1}}' % v
    yield "too-many-classes", b'{"features": {"a": 1, "b": 1, "c": 1}, "label": "other %d"}' % v
    yield "wrong-length", packed(said=4 + v)
    yield "wrong-length", packed(said=2)
    yield "wrong-length", packed()[: 3 + v]
    yield "wrong-length", packed()[: -1 - v]
    yield "wrong-length", packed(id_bytes=1 + v)
    yield "wrong-length", packed() + bytes(1 + v)
    yield "bad-header", packed(version=2 + v)
    yield "bad-header", packed(kind=2)
    yield "bad-header", packed(size=3)
    yield "bad-header", packed(flags=64)
    yield "bad-header", packed(magic=b"\xd6\x48", label=v)
    yield "not-finite", packed(label=v, rest=struct.pack("<3d", 1, float("inf"), 2))
    yield "wrong-type", packed(flags=3, label=2, rest=struct.pack("<3d", 1, v, 2) + b"\xff\xfe")
    yield "bad-block", b"\xff%d" % v
    yield "bad-block", b"\xff\xff\xff\xff" + bytes(12 + v)
    yield "bad-block", block(3)[: 100 + 8 * v]
    yield "bad-block", block(3, ("a", "a", "b"))
    yield "bad-block", block(20 + v, compression="zstd")
    yield "bad-block", empty_block()
    yield "too-many-rows", block(MAX_ROWS + 1 + v, ("a",))


def of_labels(v: int) -> Iterator[tuple[str, bytes | None]]:
    yield "missing-field", b'{"id": "g%d"}' % v
    yield "missing-field", b'{"label": "yes", "weight": %d}' % (v + 1)
    yield "missing-field", b'{"id": "g%d", "label": null, "declined": false}' % v
    yield "wrong-type", b'{"id": "g%d", "label": "yes", "declined": true}' % v
    yield "wrong-type", b'{"id": "g%d", "label": "yes", "declined": "no"}' % v
    yield "wrong-type", b'{"id": "g%d", "label": ["yes"]}' % v
    yield "wrong-type", b'{"id": {"x": %d}, "label": "yes"}' % v
    yield "wrong-type", b'{"id": "g%d", "label": ""}' % v
    yield "wrong-type", b'{"id": "g%d", "label": "yes", "features": "none"}' % v
    yield "bad-weight", b'{"id": "g%d", "label": "yes", "weight": 0}' % v
    yield "wrong-schema", orjson.dumps({"id": f"g{v}", "label": "yes", "features": [0.5] * (5 + v)})
    yield "wrong-length", packed(kind=2, flags=1, id_bytes=2 + v)
    yield "bad-header", packed(label=v)
    yield "bad-block", b"\xff\xff\xff\xff\x00%d" % v


def of_controls(v: int) -> Iterator[tuple[str, bytes | None]]:
    yield "missing-field", b'{"spec": {"seed": %d}}' % v
    yield "wrong-type", b'{"command": %d}' % v
    yield "unknown-command", b'{"command": "craete", "n": %d}' % v
    yield "bad-control", b'{"command": "freeze", "frozen": "x%d"}' % v
    yield "bad-control", b'{"command": "create", "spec": {"learner": {"name": "x%d"}}}' % v
    yield "bad-control", b'{"command": "delete", "x%d": 1}' % v
    yield "bad-control", b'{"command": "configure", "spec": %d}' % v
    yield "unknown-content-type", packed(label=v)


def all_kinds() -> list[Bad]:
    """Return a few hundred bad records."""
    storms = []
    sound = {
        "instances": b'{"features": {"a": 1, "b": 2, "c": 3}}',
        "labels": b'{"id": "g1", "label": "yes"}',
        "controls": b'{"command": "delete"}',
    }
    makers = {"instances": of_instances, "labels": of_labels, "controls": of_controls}
    for v in range(VARIANTS):
        key = KEYS[v % len(KEYS)]
        for source, own in makers.items():
            for reason, value in (*of_any_source(v), *own(v)):
                if source == "controls" and value and value[:1] == b"\xd6" and len(value) <= MAX_BYTES:
                    reason = "unknown-content-type"
                storms.append(Bad(source, reason, value, key, [("trace", b"%d" % v)] if v % 2 else []))
            good = sound[source]
            storms += [
                Bad(source, "missing-key", good, None, []),
                Bad(source, "missing-key", good, b"", []),
                Bad(source, "bad-key", good, b"\xff\xfe%d" % v, []),
                Bad(source, "bad-key", good, b"north\xc3", [("trace", b"\x00\xff")]),
                Bad(source, "unknown-content-type", good, key, [("content-type", b"text/x%d" % v)]),
                Bad(source, "unknown-content-type", good, key, [("Content-Type", b"application/xml")]),
                Bad(source, "missing-field", good, key, [("content-type", b"application/cloudevents+json")]),
            ]
        for kind, reason in ((b"vnd.grove.packed", "bad-header"), (b"vnd.apache.arrow.stream", "bad-block")):
            header = ("content-type", b"application/" + kind)
            storms.append(Bad("instances", reason, sound["instances"], key, [header]))
    return storms


def good_value(i: int) -> bytes:
    """Return instance g<i>; one in five packed, one in three with a label."""
    a, b = i % 10, i % 7
    if i % 5 == 4:
        name = b"g%d" % i
        return packed(id_bytes=len(name), rest=struct.pack("<3d", a, b, 1.0) + name)
    instance = {"id": f"g{i}", "features": {"a": a, "b": b, "c": 1.0}}
    return orjson.dumps(instance if i % 3 else instance | {"label": "yes" if a > 4 else "no"})


def send(place: Installation, kinds: list[Bad]) -> None:
    """Send everything in one order by chance; a bad record tells its number in the header `storm`."""
    producer = place.producer(**{"linger.ms": 20, "queue.buffering.max.messages": 1_000_000})
    names, chance = place.names, random.Random(17)
    homes = {key: partition_of(key, PARTITIONS) for key in KEYS}
    for n, key in enumerate(KEYS):  # what is wrong with features and classes shows beside a model
        for label in ("yes", "no"):
            value = orjson.dumps(
                {"id": f"first-{n}-{label}", "features": {"a": 1, "b": 1, "c": 1}, "label": label}
            )
            producer.produce(names.instances, value, key, homes[key])
    assert producer.flush(PATIENCE) == 0
    order = [True] * GOOD + [False] * BAD
    chance.shuffle(order)
    good = bad = 0
    for is_good in order:
        if is_good:
            key = KEYS[good % len(KEYS)]
            producer.produce(names.instances, good_value(good), key, homes[key])
            good += 1
        else:
            bad_record = kinds[bad % len(kinds)]
            partition = homes.get(bad_record.key or b"", bad % PARTITIONS)
            headers: list[tuple[str, str | bytes | None]] = [*bad_record.headers, ("storm", b"%d" % bad)]
            producer.produce(
                getattr(names, bad_record.source),
                bad_record.value,
                bad_record.key,
                partition,
                headers=headers,
            )
            bad += 1
    assert producer.flush(PATIENCE) == 0


def sent(place: Installation) -> dict[Place, Any]:
    """Return the bad records as they lie on their topics."""
    message_at = {}
    for topic in (place.names.instances, place.names.labels, place.names.controls):
        for message in place.raw(topic):
            if message.headers() and message.headers()[-1][0] == "storm":
                message_at[topic, message.partition(), message.offset()] = message
    return message_at


def test_every_good_record_is_answered_and_every_bad_one_kept_aside(broker: Broker, tmp_path: Path) -> None:
    place = Installation(
        broker.bootstrap_servers, "storm.", PARTITIONS, tmp_path, module="streamapp worker", settings=SETTINGS
    )
    kinds = all_kinds()
    assert len(kinds) > 500 and len({kind.reason for kind in kinds}) > 15
    send(place, kinds)
    with place.worker("w") as worker:
        worker.wait_until_ready()
        place.wait_for_lag_0(alive=[worker])
        assert worker.page("/readyz")[0] == 200
        assert worker.terminate() == 0

    answered = decode_predictions([message.value() for message in place.raw(place.names.predictions)])
    assert answered.malformed == []
    ids: dict[int, list[int]] = defaultdict(list)
    assert None not in answered.ids
    for name in map(str, answered.ids):
        if name.startswith("g"):
            ids[int(name[1:]) % len(KEYS)].append(int(name[1:]))
    assert ids == {k: list(range(k, GOOD, len(KEYS))) for k in range(len(KEYS))}, "each once, in order"
    assert len(answered.ids) == GOOD + 2 * len(KEYS), "and nothing else"

    originals = sent(place)
    assert len(originals) == BAD
    wrong: Counter[tuple[str, str, bytes | None]] = Counter()
    for letter in place.raw(place.names.dead_letters):
        headers = letter.headers()
        ours = dict(headers)
        at = (
            ours["__streams.errors.topic"].decode(),
            int(ours["__streams.errors.partition"]),
            int(ours["__streams.errors.offset"]),
        )
        original = originals.pop(at, None)
        assert original is not None, f"{at} is no bad record, or is here twice"
        assert (letter.key(), letter.value()) == (original.key(), original.value()), at
        assert letter.partition() == original.partition()
        assert headers[: len(original.headers())] == original.headers(), at
        expected = kinds[int(ours["storm"]) % len(kinds)]
        reason = ours["grove-dlq-reason"].decode()
        if reason != expected.reason:
            wrong[expected.reason, reason, (expected.value or b"")[:80]] += 1
    assert not wrong
    assert not originals, f"{len(originals)} bad records have no dead letter"
