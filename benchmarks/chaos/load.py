"""The load of the workers: instances as JSON, packed and as blocks, with malformed records among them.

Row i of the stream is row i of the oracle's data set, so its label is known. The load records what it wrote
and where; the checker compares the outputs with that.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import orjson
from confluent_kafka import Producer

from benchmarks.chaos.raw_client import RawClient, RawClientError
from benchmarks.chaos.wire import Record
from benchmarks.rig.stream import NAMES, Rows, generate
from topics.clients.partitioner import partition_of
from topics.codecs import encode_instances
from topics.columns.records import Features

Kind = Literal["row", "block", "malformed"]

BLOCK_SHARE, BLOCK_ROWS = 0.02, 20
PACKED_SHARE = 0.05  # under separate keys, since their features have no names
MALFORMED_SHARE = 0.01
HEADERS_SHARE = 0.005  # with header names that no client library writes
PACKED_MODELS = 2
LABELLED_SHARE = 0.2
"""Share of instances with their label; labels of the rest have to be requested."""
WITHHELD_SHARE = 0.15  # share of records for models that buy features, if there are any
BROUGHT_SHARE = 0.3  # share of their features that are in the record
WITHHELD_BLOCK_SHARE, WITHHELD_BLOCK_ROWS = 0.1, 5  # share of these records in blocks, and their rows
MALFORMED = (
    b"{not json",
    b"[]",
    b'{"features":{"a1":"NaN"',
    b'{"id":7,"features":true}',
    b'{"features":{"a1":1},"label":"yes","weight":-1}',
    b'{"features":{"a1":1},"label":"yes","weight":1e20}',
)
PACKED_TYPE = b"application/vnd.grove.packed"
HEADERS: dict[bytes, Kind] = {  # outcome of a row as JSON with such a header and the value PACKED_TYPE
    "größe".encode("latin-1"): "malformed",
    b"content-type\0x": "malformed",  # its name ends at the NUL
    b"x\0content-type": "row",
    b"": "row",
}

STEP_S = 0.02


@dataclass(frozen=True, slots=True)
class Sent:
    """A record of the instances topic, and its expected outcome."""

    kind: Kind
    key: str
    ids: tuple[str, ...]


class Load:
    """A producer with a fixed rate in its own thread, until it is stopped."""

    def __init__(
        self,
        servers: str,
        topic: str,
        partitions: int,
        models: int,
        rate: float,
        seed: int,
        buying: Sequence[str] = (),
    ) -> None:
        """`rate` is in rows per second; `buying` holds keys of models whose records lack features."""
        self.sent: dict[tuple[int, int], Sent] = {}  # by partition and offset, once acknowledged
        self.brought: dict[
            tuple[str, str], frozenset[str]
        ] = {}  # features in a buying model's instance, by key and id
        self.rows = 0
        self.failed = 0
        self._buying = tuple(buying)
        self._keys = tuple(f"model-{number:02d}" for number in range(models))
        self._packed_keys = tuple(f"packed-{number}" for number in range(PACKED_MODELS))
        self._raw = [RawClient(servers, topic, number) for number in range(partitions)]
        self._topic, self._partitions, self._rate = topic, partitions, rate
        self._draw = random.Random(seed)
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "enable.idempotence": True,
                "linger.ms": 5,
                "delivery.timeout.ms": 300_000,
                "log_level": 0,
            }
        )
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)

    @property
    def keys(self) -> tuple[str, ...]:
        return self._keys + self._packed_keys + self._buying

    def write_data(self, path: Path, rows: int, seed: int) -> None:
        """Write the data set of the rows, which the oracle also reads."""
        self._data: Rows = generate(rows, self._keys, seed=seed)
        labels = np.where(self._data.y == 1, "yes", "no")
        with path.open("w", encoding="ascii") as file:
            file.write(",".join((*NAMES, "class")) + "\n")
            for x, label in zip(self._data.x.tolist(), labels.tolist(), strict=True):
                file.write(",".join(map(repr, x)) + f",{label}\n")
        self._labels = labels

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End producing; return when all records are acknowledged."""
        self._stopped.set()
        self._thread.join()
        self._producer.flush()
        for client in self._raw:
            client.close()

    def _run(self) -> None:
        began = time.monotonic()
        while not self._stopped.wait(STEP_S) and self.rows < len(self._data):
            due = min(int((time.monotonic() - began) * self._rate), len(self._data))
            while self.rows < due:
                self._send()
            self._producer.poll(0)

    def _send(self) -> None:
        if self._buying and self._draw.random() < WITHHELD_SHARE:
            self._send_withheld(self._draw.choice(self._buying))
            return
        draw = self._draw.random()
        key = self._draw.choice(self._keys)
        if draw < MALFORMED_SHARE:
            self._produce(Sent("malformed", key, ()), self._draw.choice(MALFORMED))
        elif draw < MALFORMED_SHARE + BLOCK_SHARE:
            self._send_block(key)
        elif draw < MALFORMED_SHARE + BLOCK_SHARE + PACKED_SHARE:
            self._send_packed(self._draw.choice(self._packed_keys))
        elif draw < MALFORMED_SHARE + BLOCK_SHARE + PACKED_SHARE + HEADERS_SHARE:
            self._send_with_header(key, self._draw.choice(list(HEADERS)))
        else:
            row, document = self._row()
            self._produce(Sent("row", key, (str(row),)), document)

    def _row(self) -> tuple[int, bytes]:
        """Return the number of the next row, and the row as JSON."""
        row = self.rows
        document: dict[str, Any] = {
            "id": str(row),
            "features": dict(zip(NAMES, self._data.x[row].tolist(), strict=True)),
        }
        if self._draw.random() < LABELLED_SHARE:
            document["label"] = str(self._labels[row])
        self.rows += 1
        return row, orjson.dumps(document)

    def _send_packed(self, key: str) -> None:
        row = self.rows
        self.rows += 1
        label = str(self._labels[row]) if self._draw.random() < LABELLED_SHARE else None
        features = Features.of(None, self._data.x[row : row + 1])
        (value,) = encode_instances(features, format="packed", ids=[str(row)], labels=[label])
        self._produce(Sent("row", key, (str(row),)), value)

    def _send_withheld(self, key: str) -> None:
        """Send a record for which a model has to buy most features: a row as JSON, or a block with empty
        cells.
        """
        is_block = self._draw.random() < WITHHELD_BLOCK_SHARE
        size = WITHHELD_BLOCK_ROWS if is_block else 1
        rows = range(self.rows, min(self.rows + size, len(self._data)))
        ids = [str(row) for row in rows]
        labels = [str(self._labels[row]) if self._draw.random() < LABELLED_SHARE else None for row in rows]
        x = self._data.x[rows.start : rows.stop].copy()
        for at, name in enumerate(ids):
            lacks = [self._draw.random() >= BROUGHT_SHARE for _ in NAMES]
            x[at, lacks] = np.nan
            self.brought[key, name] = frozenset(n for n, gone in zip(NAMES, lacks, strict=True) if not gone)
        self.rows = rows.stop
        features = Features.of(NAMES, x)
        (value,) = encode_instances(features, format="arrow" if is_block else "json", ids=ids, labels=labels)
        self._produce(Sent("block" if is_block else "row", key, tuple(ids)), value)

    def _send_with_header(self, key: str, name: bytes) -> None:
        row, document = self._row()
        kind = HEADERS[name]
        sent = Sent(kind, key, (str(row),) if kind == "row" else ())
        partition = partition_of(key.encode(), self._partitions)
        record = Record(key.encode(), document, [(name, PACKED_TYPE)], time.time_ns() // 10**6)
        try:
            offset = self._raw[partition].write([record])
        except RawClientError:
            self.failed += 1
        else:
            self.sent[partition, offset] = sent

    def _send_block(self, key: str) -> None:
        rows = range(self.rows, min(self.rows + BLOCK_ROWS, len(self._data)))
        ids = [str(row) for row in rows]
        labels = [str(self._labels[row]) if self._draw.random() < LABELLED_SHARE else None for row in rows]
        features = Features.of(NAMES, self._data.x[rows.start : rows.stop])
        self.rows = rows.stop
        (value,) = encode_instances(features, format="arrow", ids=ids, labels=labels)
        self._produce(Sent("block", key, tuple(ids)), value)

    def _produce(self, sent: Sent, value: bytes) -> None:
        partition = partition_of(sent.key.encode(), self._partitions)

        def acknowledged(error: Any, message: Any) -> None:
            if error is None:
                self.sent[message.partition(), message.offset()] = sent
            else:
                self.failed += 1

        while True:
            try:
                self._producer.produce(self._topic, value, sent.key, partition, on_delivery=acknowledged)
            except BufferError:
                self._producer.poll(0.1)
            else:
                return
