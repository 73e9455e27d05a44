"""Nanoseconds per record of producing: confluent-kafka's client and our own producers.

    python -m benchmarks.produce [--bootstrap HOST:PORT] [--records 200000] [--turns 3]

Prints one JSON object: CPU of the producing thread, and of all threads of the process, each the median of the
turns. It sends runs of 2,000 answers, as a worker does, as lists or as columns, without headers or with
those that `output_headers=full` gives; the clients take turns. Two of them are a worker's producers, the
transactional one with one transaction for all records. Without an address a broker is started.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamapp.embedded.broker import EmbeddedBroker
from streamapp.worker.outputs.outgoing_headers import FullHeaders
from topics.clients import admin
from topics.clients.cluster import Cluster
from topics.clients.sender import Sender
from topics.codecs.compiled.text_columns import text_spans
from topics.columns.records import Headers
from topics.columns.spans import Spans
from topics.producing.batch_producer import BatchProducer
from topics.producing.idempotent.idempotent_producer import IdempotentProducer
from topics.producing.transactional_producer import TransactionalProducer

RUN = 2000
PARTITIONS = 8
KEYS = 64
Producer = Sender | BatchProducer


@dataclass(frozen=True)
class Run:
    """Records of one partition."""

    values: Sequence[bytes | None]
    keys: Sequence[bytes | None]
    timestamps: Any
    headers: Sequence[Headers] | None


def answers(form: str, headers: str) -> Run:
    """Return a run of answers; `form` is lists or columns, `headers` none or full."""
    text = '{"id":"3-%d","label":"1","probabilities":{"0":0.1834,"1":0.8166},"version":%d}'
    values = [(text % (n, n)).encode() for n in range(RUN)]
    keys = [b"model-%02d" % (n % KEYS) for n in range(RUN)]
    now = [time.time_ns() // 1_000_000] * RUN
    named: Any = None
    if headers == "full":
        events = text_spans([f"3-{n}" for n in range(RUN)])
        own = {"grove-instance-id": events, "grove-model-version": text_spans(["12"] * RUN)}
        columns = np.array(now), Spans.of(keys), own, [()] * RUN
        named = FullHeaders("grove").of("prediction", "json", events, *columns)
    if form == "lists":
        return Run(
            values,
            keys,
            now,
            None if named is None else [list(headers_of_record) for headers_of_record in named],
        )
    return Run(Spans.of(values), Spans.of(keys), np.array(now), named)


@contextlib.contextmanager
def a_topic(bootstrap: str) -> Iterator[str]:
    """Create a topic, and delete it at the end."""
    from confluent_kafka.admin import NewTopic

    topic = f"produce-{uuid.uuid4().hex[:6]}"
    cluster = Cluster({"bootstrap.servers": bootstrap})
    cluster.client.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result()
    admin.wait_until_ready(cluster, [topic])
    yield topic
    cluster.client.delete_topics([topic])[topic].result()


def pass_once(sender: Producer, topic: str, run: Run, records: int) -> tuple[float, float]:
    """Return nanoseconds per record: of this thread while it produces, and of all threads until delivery."""
    cpu, thread = time.process_time(), 0.0
    for number in range(records // RUN):
        begun = time.thread_time()
        columns = run.values, run.keys, run.timestamps, run.headers
        sender.send_run(topic, number % PARTITIONS, *columns)
        thread += time.thread_time() - begun
    if isinstance(sender, TransactionalProducer):
        sender.commit()
    else:
        sender.flush()
    n = records // RUN * RUN / 1e9
    return thread / n, (time.process_time() - cpu) / n


def measure(bootstrap: str, records: int, turns: int) -> dict[str, dict[str, int]]:
    """Return the medians by case and client."""
    costs_by_case: dict[str, list[tuple[float, float]]] = defaultdict(list)
    kafka = {"bootstrap.servers": bootstrap}
    transactional = TransactionalProducer(kafka, "produce")
    transactional.open()
    senders: dict[str, Producer] = {
        "confluent-kafka": Sender(kafka),
        "own transactions": transactional,
        "own deliveries": IdempotentProducer(kafka),
    }
    with a_topic(bootstrap) as topic:
        for turn in range(turns + 1):
            for form, headers in (
                ("lists", "none"),
                ("columns", "none"),
                ("lists", "full"),
                ("columns", "full"),
            ):
                run = answers(form, headers)
                for client, sender in senders.items():
                    if client == "confluent-kafka" and form == "columns":
                        continue
                    cost = pass_once(sender, topic, run, records)
                    if turn:  # the first turn fills caches
                        costs_by_case[f"{form}, headers {headers}: {client}"].append(cost)
    for sender in senders.values():
        sender.close()
    return {
        case: {
            "calling_thread_ns": round(statistics.median(thread for thread, _ in costs)),
            "all_threads_ns": round(statistics.median(cpu for _, cpu in costs)),
        }
        for case, costs in sorted(costs_by_case.items())
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="CPU time of producing, by client.")
    parser.add_argument("--bootstrap")
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        bootstrap = options.bootstrap or stack.enter_context(EmbeddedBroker()).bootstrap_servers
        print(json.dumps(measure(bootstrap, options.records, options.turns), indent=1))


if __name__ == "__main__":
    main()
