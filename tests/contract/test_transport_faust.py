"""What the driver leans on in Faust and mode: fails when an upgrade changes it.

Versions are pinned; whoever raises them runs these and the broker tests, and reads what changed in the
sources that the messages name.
"""

import asyncio
import inspect
import re
from importlib import metadata
from typing import Any, cast

import pytest
from faust.app.base import App as FaustApp
from faust.stores.rocksdb import Store
from faust.tables.manager import TableManager
from faust.tables.recovery import Recovery
from faust.transport import drivers
from faust.transport.conductor import Conductor
from faust.transport.consumer import Consumer as BaseConsumer
from faust.transport.consumer import Fetcher, ThreadDelegateConsumer
from faust.transport.drivers import aiokafka as driver
from faust.types import ConsumerMessage
from mode import Worker
from mode.threads import ServiceThread
from mode.utils.queues import FlowControlEvent

from streamapp.worker.driver import kafkabatch
from streamapp.worker.driver.consumer import Consumer
from streamapp.worker.driver.thread import ConsumerThread


def source(thing: Any) -> str:
    return re.sub(r"\s+", " ", inspect.getsource(thing))


@pytest.mark.parametrize(
    ("package", "version"),
    [("faust-streaming", "0.15.3"), ("mode-streaming", "0.7.1"), ("aiokafka", "0.14.0")],
)
def test_versions_are_the_ones_the_driver_was_written_against(package: str, version: str) -> None:
    assert metadata.version(package) == version


def test_the_driver_is_found_by_its_scheme() -> None:
    kafkabatch.register()
    assert drivers.by_url(f"{kafkabatch.SCHEME}://localhost:9092") is kafkabatch.Transport
    assert kafkabatch.Transport.Consumer is Consumer


@pytest.mark.parametrize(
    "name",
    [
        "_drain_messages",
        "_new_consumer_thread",
        "commit_and_end_transactions",
        "force_commit",
        "on_partitions_assigned",
        "on_partitions_revoked",
        "perform_seek",
        "verify_all_partitions_active",
    ],
)
def test_every_method_we_override_is_one_of_fausts_with_the_same_parameters(name: str) -> None:
    theirs, ours = getattr(driver.Consumer, name), getattr(Consumer, name)
    assert ours is not theirs
    assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)
    assert inspect.iscoroutinefunction(ours) == inspect.iscoroutinefunction(theirs)


@pytest.mark.parametrize(
    ("name", "parameters"), [("_get_active_partitions", []), ("_to_message", ["tp", "record"])]
)
def test_every_private_method_that_changelogs_are_read_by_exists(name: str, parameters: list[str]) -> None:
    assert [*inspect.signature(getattr(driver.Consumer, name)).parameters][1:] == parameters


def test_active_partitions_are_kept_where_changelogs_look_them_up() -> None:
    text = source(driver.Consumer._get_active_partitions)
    assert "tps = self._active_partitions" in text
    assert "if tps is None:" in text


def test_what_we_override_in_the_consumer_thread_and_the_app_exists() -> None:
    for name in ("on_start", "_create_worker_consumer"):
        assert getattr(ConsumerThread, name) is not getattr(driver.AIOKafkaConsumerThread, name)
    assert "on_rebalance_end" in vars(FaustApp)


def test_the_fetcher_runs_our_loop() -> None:
    assert "await consumer._drain_messages(self)" in source(Fetcher)


def test_wait_empty_ends_with_our_commit_also_when_partitions_are_revoked_and_when_the_app_stops() -> None:
    assert source(BaseConsumer.wait_empty).endswith("await T(self.commit_and_end_transactions)() ")
    revoked = source(FaustApp._on_partitions_revoked)
    assert revoked.index("consumer.stop_flow") < revoked.index("self._consumer_wait_empty")
    stop = source(FaustApp._stop_consumer)
    assert stop.index("self._stop_fetcher()") < stop.index("self._consumer_wait_empty")
    assert "await consumer.wait_empty()" in source(FaustApp._consumer_wait_empty)


def test_going_live_begins_after_faust_has_resumed_its_flow_and_emptied_its_queues() -> None:
    for path in (Recovery._resume_streams, Recovery.on_recovery_completed):
        text = source(path)
        order = [
            text.index(part) for part in ("perform_seek()", "flow_control.resume()", "on_rebalance_end()")
        ]
        assert order == sorted(order), "on_rebalance_end() must come last: it is what starts going live"
    assert "self.clear()" in source(FlowControlEvent.resume), "the reason for it"


def test_standbys_are_resumed_before_the_queues_are_emptied_the_last_time() -> None:
    text = source(cast(Any, Recovery._restart_recovery).fun)
    parts = ("seek_offsets)( consumer, standby_tps", "resume_partitions)(standby_tps)")
    order = [text.index(part) for part in (*parts, "on_recovery_completed)(generation_id)")]
    assert order == sorted(order), (
        "the reason why the driver reads nothing for them before on_rebalance_end()"
    )
    assert "self.standby_tps.clear()" in source(Recovery.on_rebalance), "one set, for all that hold it"
    assert "self.signal_recovery_start.set()" in source(Recovery.on_rebalance)


def test_what_a_standby_has_read_counts_once_it_is_in_its_store() -> None:
    assert "self.set_persisted_offset(tp, offset)" in source(Store.apply_changelog_batch)
    added = source(Recovery._add)
    assert "persisted_offset = table.persisted_offset(tp)" in added
    assert "offsets[tp] = persisted_offset" in added, "whatever was read and not stored is read again"


def test_the_app_is_told_of_a_rebalance_before_partitions_are_revoked() -> None:
    listener = source(driver.ConsumerRebalanceListener.on_partitions_revoked)
    assert listener.index("app.on_rebalance_start()") < listener.index("on_partitions_revoked(ensure_TPset")
    assert "consumer_generation_id = generation" in source(
        driver.ConsumerRebalanceListener.on_partitions_assigned
    )


def test_callbacks_of_the_group_run_in_the_apps_loop_while_the_thread_waits() -> None:
    for callback in (
        ThreadDelegateConsumer.threadsafe_partitions_revoked,
        ThreadDelegateConsumer.threadsafe_partitions_assigned,
    ):
        assert source(callback).endswith("await promise ")


def test_a_topic_without_acks_is_not_waited_for() -> None:
    assert "acks_enabled_for" in dir(Conductor)
    assert "_acking_topics" in source(Conductor.acks_enabled_for)


def test_flow_events_are_what_the_loop_waits_for() -> None:
    assert "self.can_resume_flow = Event()" in source(BaseConsumer.__init__)
    assert "self.can_resume_flow.set()" in source(BaseConsumer.resume_flow)
    assert "self.flow_active = False" in source(BaseConsumer.stop_flow)


def test_a_message_carries_any_value_and_its_generation() -> None:
    given = object()
    message = ConsumerMessage("t", 0, 1, 0.0, 0, None, None, b"", None, generation_id=7)
    message.value = given  # type: ignore[assignment]
    assert (message.value, message.generation_id) == (given, 7)


def test_tables_start_and_workers_end_as_faust_and_mode_do_but_without_their_second_of_waiting() -> None:
    begin = source(TableManager.on_start)
    assert begin.endswith(
        "await self.sleep(1.0) if not self.should_stop: "
        "await self._update_channels() await self.recovery.start() "
    )
    end = source(Worker._shutdown_loop)
    parts = [end.index(part) for part in ("self._gather_all()", "self._sentinel_task()", "self.loop.close()")]
    assert parts == sorted(parts)
    assert source(Worker._sentinel_task).endswith("await asyncio.sleep(1.0) ")
    assert "task.cancel()" in source(Worker._gather_all)


def test_the_threads_loop_is_the_one_we_schedule_on() -> None:
    assert "thread_loop" in inspect.signature(ServiceThread.__init__).parameters
    assert asyncio.iscoroutinefunction(ServiceThread._gather_remaining_tasks), "cancels what we left there"
