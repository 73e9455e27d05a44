"""Faust application of a worker, made from the settings."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

from faust.web.base import BlueprintManager
from mode import CrashingSupervisor

from streamapp.settings import Settings
from streamapp.settings.clients import faust_arguments, librdkafka_properties
from streamapp.worker.driver import kafkabatch
from streamapp.worker.driver.consumer import Consumer
from streamapp.worker.driver.faust_app import App, DriverOptions, Wiring
from streamapp.worker.driver.table_manager import Tables
from streamapp.worker.gauges import manager_gauges, readiness_gauges, schema_gauges
from streamapp.worker.group_check import check_again
from streamapp.worker.observability.health import Health
from streamapp.worker.observability.metrics import Metrics
from streamapp.worker.observability.pages import add_pages
from streamapp.worker.observability.pages.snapshot_page import add_model_page
from streamapp.worker.processing.abandoned_transactions import AbandonedTransactions
from streamapp.worker.processing.driver import Driver
from streamapp.worker.processing.task_manager import TaskManager
from streamapp.worker.task.sources import source_topics
from streamapp.worker.transport.delivery import DeliverySchema
from streamapp.worker.transport.log_throttle import throttle_logs
from topics.clients.access import Access
from topics.definitions import TopicNames
from topics.fetching.batches import Limit
from topics.fetching.frames import MOST_BYTES, frame_bound
from topics.registry.known_schemas import KnownSchemas

if TYPE_CHECKING:
    from streamapp.worker.telemetry.traces import Traces

# Defaults for Kafka's consumer properties that aiokafka supports; configured values replace them.
FETCH = {
    "fetch.min.bytes": 1,  # of an idle worker; while records flow the driver requests more at once
    "fetch.max.wait.ms": 500,
    "fetch.max.bytes": 50 << 20,
    "max.partition.fetch.bytes": 1 << 20,
}


def create_app(
    settings: Settings,
    instance: str,
    *,
    features: bool = True,
    partitions: int | None = None,
    schemas: KnownSchemas | None = None,
) -> App:
    """Return the app of worker `instance`, with a driver and nothing yet that processes (`add_parts`).

    `features`: the topics of feature acquisition exist; `partitions`: number of each topic's partitions at
    the start; `schemas`: of the schema registry, if it is in use.
    """
    kafkabatch.register()
    throttle_logs()
    names = TopicNames(settings.topics_prefix, features)
    app = App(
        **faust_arguments(settings, instance),
        env_prefix="GROVE_FAUST_",  # no variables of other Faust apps are read
        canonical_url=f"http://{instance}",  # the name by which Faust's assignor identifies a worker
        # A directory of another prefix must not be used for this worker's table.
        datadir=str(settings.state_dir / instance / f"topics-{settings.topics_prefix}"),
        store="rocksdb://",
        TableManager=Tables,
        table_standby_replicas=settings.num_standby_replicas,
        cython_optimizations=True,
        stream_buffer_maxsize=16,  # deliveries; the driver has only one under way
        topic_disable_leader=True,
        topic_allow_declare=False,
        worker_redirect_stdouts=False,
        web_host=settings.web_host,
        web_bind=settings.web_host,
        web_port=settings.web_port,
        web_in_thread=True,
    )
    # None of Faust's own pages, in this or a later version of Faust: they show the cluster, and read and
    # forward keys of tables, from the server's thread.
    app.web.blueprints = BlueprintManager()
    app.options = DriverOptions(
        topics=tuple(source_topics(names).values()),  # in causal order
        skew_ms=settings.input_skew_ms,
        max_idle_ms=settings.max_task_idle_ms,
        max_records=settings.max_poll_records,
        cpu_share=settings.fetch_max_cpu_percent / 100,
        fetch=_fetch(settings),
        limit=Limit(settings.fetch_decompressed_max_bytes),
        frame_bytes=_frame_bytes(settings),
        access=Access.of(librdkafka_properties(settings)),
        partitions=partitions,
        schemas=schemas,
        check_group=partial(
            check_again, librdkafka_properties(settings), settings.application_id, instance, names
        ),
    )
    return app


def driver_of(app: App) -> Driver:
    """Return the driver of an app; Faust makes it at the first call, in the event loop that is set."""
    return cast(Consumer, app.consumer)


def add_parts(
    app: App,
    settings: Settings,
    instance: str,
    *,
    manager: TaskManager,
    metrics: Metrics,
    health: Health,
    traces: Traces | None = None,
) -> None:
    """Give an app what it runs: the parts that its driver calls, the agent and the pages."""
    app.wiring = Wiring(
        manager=manager,
        assignments=manager.assignments,
        committer=manager.committer,
        progress=manager.progress,
        abandoned=AbandonedTransactions.of(
            settings, instance, librdkafka_properties(settings), lambda: health.stopping
        ),
        traces=traces,
    )
    # acks=False: the committer, not Faust, keeps track of what is processed and may be committed.
    add_agent(app, app.topic(*app.options.topics, schema=DeliverySchema(), acks=False), manager)
    metrics.watch(lambda: manager_gauges(manager, health, settings.application_id))
    metrics.watch(lambda: readiness_gauges(health))
    if (schemas := app.options.schemas) is not None:
        gate = cast(Consumer, app.consumer).schema_gate
        health.awaited_schemas = gate.waiting_in_words
        metrics.watch(lambda: schema_gauges(gate, schemas))
    add_pages(app, health, metrics.registry)
    add_model_page(app, manager)


def add_agent(app: Any, channel: Any, manager: TaskManager) -> None:
    """Give `app` the agent that hands the deliveries of `channel` to `manager`.

    One agent for all input topics, with concurrency 1: a worker has one total order of events. An exception
    ends the worker, because a restarted agent would continue after the records that were lost.
    """

    async def process(stream: Any) -> None:
        async for event in stream.events():
            await manager.process(event.value)

    app.agent(
        channel, name="streamapp.worker.agents.process", concurrency=1, supervisor_strategy=CrashingSupervisor
    )(process)


def _frame_bytes(settings: Settings) -> int:
    """Return the largest size of a broker's response that the consumer reads."""
    receive_max = int(str(settings.kafka.get("receive.message.max.bytes", MOST_BYTES)))
    return frame_bound(receive_max, int(_fetch(settings)["fetch_max_bytes"]))


def _fetch(settings: Settings) -> dict[str, Any]:
    """Return the options of aiokafka's consumer that Faust's arguments do not cover."""
    fetching = {name: int(str(settings.kafka.get(name, default))) for name, default in FETCH.items()}
    return {name.replace(".", "_"): value for name, value in fetching.items()} | {
        "isolation_level": "read_committed",
        "client_rack": settings.kafka.get("client.rack"),
    }
