"""When aiokafka's fetcher fetches: all at once, at the pace that is asked for, and not while records wait."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from faust.types import TP

from streamapp.worker.driver import thread
from streamapp.worker.driver.thread import REST_WAIT_MS, ConsumerThread

FETCH = ("a request",)
A, B, TABLE = TP("topic", 0), TP("topic", 1), TP("table", 0)


class Fetcher:
    """What is read of aiokafka's; it says how long the planned fetch is to wait."""

    def __init__(self) -> None:
        self._fetch_max_wait_ms, self._fetcher_timeout = 500, 0.2
        self._records: dict[TP, Any] = {}
        self.waits: list[int] = []

    def _get_actions_per_node(self, assignment: Any) -> Any:
        self.waits.append(self._fetch_max_wait_ms)
        return [FETCH], {}, self._fetcher_timeout, False, []

    def plan(self) -> tuple[bool, float]:
        """Return whether something is fetched, and how long nothing else is planned."""
        fetches, _, timeout, _, _ = self._get_actions_per_node(None)
        return fetches == [FETCH], timeout


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Any:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(thread, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


@pytest.fixture
def planned() -> tuple[Any, Fetcher]:
    consumer_thread, fetcher = cast("Any", ConsumerThread.__new__(ConsumerThread)), Fetcher()
    consumer_thread.sources = SimpleNamespace(suspects=False)
    consumer_thread._plan_fetches(fetcher, {A.topic})
    return consumer_thread, fetcher


def test_nothing_is_fetched_while_fetched_records_are_about_to_be_taken(planned: Any, now: Any) -> None:
    driver, fetcher = planned
    driver._wanted = {A, B}
    fetcher._records = {B: object()}
    assert fetcher.plan() == (False, 0.2)
    fetcher._records.clear()
    assert fetcher.plan() == (True, 0.2)
    assert fetcher.waits == [500], "all are asked for: whichever gets a record answers at once"


def test_a_fetch_of_some_partitions_is_short(planned: Any, now: Any) -> None:
    driver, fetcher = planned
    driver._wanted = {A}
    fetcher._records = {B: object()}  # which is read ahead far enough
    assert fetcher.plan() == (True, 0.2)
    assert fetcher.waits == [REST_WAIT_MS]


def test_records_of_a_table_that_nobody_reads_shorten_no_fetch(planned: Any, now: Any) -> None:
    """The worker writes its snapshots to one: it would ask two hundred times a second when it is idle."""
    driver, fetcher = planned
    driver._wanted = {A, B}
    fetcher._records = {TABLE: object()}
    assert fetcher.plan() == (True, 0.2)
    driver._tables = (TABLE,)
    assert fetcher.plan() == (True, 0.2)
    assert fetcher.waits == [500, REST_WAIT_MS]


def test_between_two_fetches_lies_the_pace(planned: Any, now: Any) -> None:
    driver, fetcher = planned
    driver._pace_s = 0.5
    assert fetcher.plan() == (True, 0.2), "the first one has nothing to wait for"
    now.now += 0.125
    assert fetcher.plan() == (False, 0.375)
    now.now += 0.375
    assert fetcher.plan() == (True, 0.2)
    driver._pace_s = 0.0
    now.now += 0.5
    assert [fetcher.plan() for _ in range(2)] == [(True, 0.2)] * 2


def test_nothing_is_fetched_before_the_time_that_was_said(planned: Any, now: Any) -> None:
    driver, fetcher = planned
    driver._pace_s, driver._not_before = 0.25, now.now + 0.5
    assert fetcher.plan() == (False, 0.5)
    now.now += 0.5
    assert fetcher.plan() == (True, 0.2)
    now.now += 0.125
    assert fetcher.plan() == (False, 0.125), "the pace is what is left"
