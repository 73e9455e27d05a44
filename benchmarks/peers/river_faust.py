"""Stock Faust with River's Hoeffding tree: an agent over events that sends its answers to a topic."""

from __future__ import annotations

import tempfile
from typing import Any

import faust
import orjson

from benchmarks.peers.job import Job
from benchmarks.peers.learning import Models, rows


def create_app(job: Job, state: str) -> faust.App:
    app = faust.App(
        job.group,
        broker=f"kafka://{job.bootstrap}",
        datadir=state,
        web_enabled=False,
        topic_disable_leader=True,
        topic_allow_declare=False,
        consumer_auto_offset_reset="earliest",
    )
    raw: dict[str, Any] = {
        "key_type": bytes,
        "value_type": bytes,
        "key_serializer": "raw",
        "value_serializer": "raw",
    }
    source, sink = app.topic(job.source, **raw), app.topic(job.sink, **raw)
    models = Models(job.leaf)

    @app.agent(source)
    async def classify(stream: Any) -> None:
        async for event in stream.events():
            message = event.message
            identity = f"{message.partition}-{message.offset}"
            for answer in models.answer(event.key, rows(job.format, identity, event.value)):
                await sink.send(key=event.key, value=orjson.dumps(answer), partition=message.partition)

    return app


def main() -> None:
    job = Job.from_arguments()
    with tempfile.TemporaryDirectory(prefix="bench-faust-") as state:
        worker = faust.Worker(create_app(job, state), loglevel="WARN", redirect_stdouts=False)
        worker.execute_from_commandline()


if __name__ == "__main__":
    main()
