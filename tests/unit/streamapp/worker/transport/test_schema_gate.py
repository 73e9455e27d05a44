"""Schema gate: which records of a run pass, and what a partition waits for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from streamapp.worker.transport import schema_gate
from streamapp.worker.transport.runs import FetchedColumns, Run, TimeOrder
from streamapp.worker.transport.schema_gate import SchemaGate
from tests.registry_endpoint import RegistryEndpoint, answered, failed
from topics.codecs.frames.wire_format import framed
from topics.columns.spans import RecordSpans
from topics.errors import ReaderError
from topics.registry import absent_ids, known_schemas
from topics.registry.absent_ids import not_registered
from topics.registry.client import Registry
from topics.registry.known_schemas import KnownSchemas, Prepare
from topics.registry.registered_schema import RegisteredSchema
from topics.registry.registry_access import registry_access

TOPIC = "instances"
PATIENCE = 60


class Gate:
    """A gate over a registry, and the runs of one partition."""

    def __init__(self, endpoint: RegistryEndpoint, prepare: Prepare = lambda _: None) -> None:
        access = registry_access({"schema.registry.url": endpoint.url})
        assert access is not None
        self.schemas = KnownSchemas(Registry(access), prepare)
        self.gate = SchemaGate(self.schemas)
        self.order = TimeOrder(0, [(TOPIC, 0)], skew_ms=0, max_idle_ms=0, max_records=100)
        self._changed = threading.Condition()
        self.schemas.on_result(self._tell)

    def fetch(self, *values: bytes) -> None:
        n = len(values)
        records = RecordSpans.of(list(range(n)), [0] * n, [b"m"] * n, values, [()] * n)
        self.order.add(TOPIC, FetchedColumns(records, n, n))

    def next_run(self) -> Run | None:
        if self.gate.holds(0):
            return None
        run = self.order.next_run(0.0)
        return None if run is None else self.gate.admit(self.order, run)

    def _tell(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def wait(self) -> None:
        """Return once nothing is waited for."""
        with self._changed:
            assert self._changed.wait_for(lambda: not self.gate.holds(0), PATIENCE)


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[RegistryEndpoint]:
    monkeypatch.setattr(known_schemas, "FIRST_PAUSE_S", 0.01)
    with RegistryEndpoint(
        **{f"schemas__ids__{number}": answered(schema="{}", schemaType="JSON") for number in (1, 2)}
    ) as server:
        yield server


def offsets(run: Run | None) -> list[int]:
    assert run is not None
    return [*run.raw.offsets]


def test_without_a_registry_every_run_passes_as_it_is(endpoint: RegistryEndpoint) -> None:
    gate = Gate(endpoint)
    gate.fetch(framed(9, b"{}"))
    run = gate.order.next_run(0.0)
    assert run is not None
    assert SchemaGate(None).admit(gate.order, run) is run


def test_the_records_before_an_unknown_schema_pass_and_the_others_wait(endpoint: RegistryEndpoint) -> None:
    gate = Gate(endpoint)
    gate.fetch(b"{}", b"{}", framed(1, b"{}"), b"{}", framed(2, b"{}"))
    first = gate.next_run()
    assert offsets(first) == [0, 1]
    assert first is not None
    assert (first.position, first.raw.schemas) == (2, {})
    rest: list[int] = []
    while len(rest) < 3:
        if (run := gate.next_run()) is None:
            gate.wait()
        else:
            assert run.raw.schemas is not None
            rest += offsets(run)
    assert rest == [2, 3, 4]
    assert endpoint.requests == [("GET", "/schemas/ids/1"), ("GET", "/schemas/ids/2")]


def test_a_partition_waits_until_the_registry_answers(endpoint: RegistryEndpoint) -> None:
    answer = endpoint.answers["/schemas/ids/1"]
    endpoint.answers["/schemas/ids/1"] = failed(503, 50301, "starting")
    gate = Gate(endpoint)
    gate.fetch(framed(1, b"{}"), framed(1, b"{}"))
    assert gate.next_run() is None
    assert gate.gate.holds(0)
    assert gate.next_run() is None
    assert gate.gate.waiting_in_words().startswith("partition 0 waits for schema 1: ")
    endpoint.answers["/schemas/ids/1"] = answer
    gate.wait()
    assert gate.gate.waiting_in_words() == ""
    assert offsets(gate.next_run()) == [0, 1]


def test_one_schema_that_cannot_be_had_does_not_hold_up_the_others(endpoint: RegistryEndpoint) -> None:
    endpoint.answers["/schemas/ids/7"] = failed(500, 50001, "broken")
    gate = Gate(endpoint)
    gate.schemas.request([7])
    gate.fetch(framed(2, b"{}"))
    assert gate.next_run() is None
    gate.wait()
    assert offsets(gate.next_run()) == [0]
    gate.schemas.close()


def test_records_whose_schema_the_registry_does_not_have_are_set_aside(endpoint: RegistryEndpoint) -> None:
    gate = Gate(endpoint)
    gate.fetch(framed(9, b""), b"{}", framed(9, b""))
    assert gate.next_run() is None
    gate.wait()
    seen: dict[int, object] = {}
    while (run := gate.next_run()) is not None:
        seen |= dict.fromkeys(run.raw.offsets)
        seen |= run.unknown
    assert seen == {0: not_registered(9), 1: None, 2: not_registered(9)}


def test_made_up_ids_are_looked_up_in_the_order_of_their_records(
    endpoint: RegistryEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(absent_ids, "MOST_ABSENT", 2)
    monkeypatch.setattr(schema_gate, "MOST_AT_ONCE", 3)
    gate = Gate(endpoint)
    gate.fetch(*[framed(100 + number, b"") for number in range(20)])
    seen: dict[int, object] = {}
    while len(seen) < 20:
        run = gate.next_run()
        if run is None:
            gate.wait()
        else:
            seen |= run.unknown
    assert seen == {number: not_registered(100 + number) for number in range(20)}


def test_a_restore_waits_until_its_schemas_are_looked_up(endpoint: RegistryEndpoint) -> None:
    async def restore() -> None:
        gate, loop = Gate(endpoint), asyncio.get_running_loop()
        gate.schemas.on_result(lambda: loop.call_soon_threadsafe(gate.gate.changed))
        gate.schemas.request([1, 9])
        waiting = asyncio.ensure_future(gate.gate.until_known(0, [1, 9]))
        await asyncio.wait_for(waiting, PATIENCE)
        assert not gate.gate.holds(0)
        never = asyncio.ensure_future(gate.gate.until_known(0, [2]))
        await asyncio.wait([never], timeout=0.01)
        gate.gate.clear()  # the partition was revoked
        await asyncio.wait_for(never, PATIENCE)

    asyncio.run(restore())


def test_a_registered_schema_is_found_when_its_absence_is_forgotten(
    endpoint: RegistryEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(absent_ids, "ABSENT_S", 0.0)
    gate = Gate(endpoint)
    results = threading.Event()
    gate.schemas.on_result(results.set)
    gate.schemas.request([9])
    assert results.wait(PATIENCE)
    assert gate.schemas.schemas([9]) == ({}, {})
    endpoint.answers["/schemas/ids/9"] = answered(schema="{}", schemaType="JSON")
    results.clear()
    gate.schemas.request([9])
    assert results.wait(PATIENCE)
    assert [*gate.schemas.schemas([9])[0]] == [9]


def test_runs_are_cut_with_their_unknown_schemas(endpoint: RegistryEndpoint) -> None:
    gate = Gate(endpoint)
    gate.fetch(b"{}", framed(9, b""), b"{}", framed(9, b""))
    gate.schemas.request([9])
    first = gate.next_run()
    assert first is not None
    gate.wait()
    run = gate.next_run()
    while run is not None and len(run.raw) < 2:
        run = gate.next_run()
    assert run is not None
    before, after = run.cut(1)
    assert {**before.unknown, **after.unknown} == run.unknown
    assert set(before.unknown) <= set(before.raw.offsets)


def test_a_partition_that_comes_back_late_has_its_schema_looked_up_again(
    endpoint: RegistryEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(absent_ids, "ABSENT_S", 0.0)  # as if the partition had been paused for a minute
    gate = Gate(endpoint)
    gate.fetch(framed(9, b"{}"))
    assert gate.next_run() is None
    gate.wait()
    endpoint.answers["/schemas/ids/9"] = answered(schema="{}", schemaType="JSON")
    assert gate.next_run() is None
    gate.wait()
    assert offsets(gate.next_run()) == [0]


def test_a_restore_does_not_wait_for_an_absence_that_is_forgotten(
    endpoint: RegistryEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(absent_ids, "ABSENT_S", 0.0)

    async def restore() -> None:
        gate, loop = Gate(endpoint), asyncio.get_running_loop()
        gate.schemas.on_result(lambda: loop.call_soon_threadsafe(gate.gate.changed))
        gate.schemas.request([9])
        await asyncio.wait_for(gate.gate.until_known(0, [9]), PATIENCE)

    asyncio.run(restore())


def test_made_up_ids_do_not_fill_the_log(
    endpoint: RegistryEndpoint, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(known_schemas, "MOST_LOGGED", 3)
    gate = Gate(endpoint)
    for first in (100, 200):
        gate.fetch(*[framed(first + number, b"") for number in range(20)])
    seen = 0
    while seen < 40:
        run = gate.next_run()
        if run is None:
            gate.wait()
        else:
            seen += len(run.unknown)
    lines = [line.getMessage() for line in caplog.records]
    assert len(lines) == 4
    assert "become dead letters" in lines[0]
    assert "further ids are not logged" in lines[3]


@pytest.mark.parametrize("fault", [ReaderError("protoc ends with code -11"), MemoryError("protoc ends")])
def test_a_schema_whose_reader_cannot_be_made_holds_its_partition_for_a_number_of_tries(
    endpoint: RegistryEndpoint, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    tried: list[object] = []

    def prepare(schema: RegisteredSchema) -> None:
        if schema.id == 1:
            tried.append(schema.id)
            raise fault

    monkeypatch.setattr(known_schemas, "MOST_TRIES", 3)
    gate = Gate(endpoint, prepare)
    gate.fetch(framed(1, b"{}"), framed(2, b"{}"), framed(1, b"{}"))
    unknown: dict[int, str] = {}
    read: list[int] = []
    while len(read) < 3:
        if (run := gate.next_run()) is None:
            gate.wait()
        else:
            unknown |= run.unknown
            read += run.raw.offsets
    assert read == [0, 1, 2]
    assert len(tried) == 3
    assert {*unknown} == {0, 2}
    assert unknown[0].startswith("schema 1, tried 3 times: ")
    assert "protoc ends" in unknown[0]


def test_a_schema_whose_reader_fails_for_a_moment_is_read(endpoint: RegistryEndpoint) -> None:
    faults = iter([ReaderError("no memory"), ReaderError("no memory")])

    def prepare(_: RegisteredSchema) -> None:
        if (fault := next(faults, None)) is not None:
            raise fault

    gate = Gate(endpoint, prepare)
    gate.fetch(framed(1, b"{}"))
    assert gate.next_run() is None
    gate.wait()
    run = gate.next_run()
    assert offsets(run) == [0]
    assert run is not None
    assert not run.unknown


def test_the_number_of_known_schemas_is_bounded_and_a_run_may_name_more(
    endpoint: RegistryEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_schemas, "MOST_KNOWN", 3)
    numbers = [*range(10, 20)]
    for number in numbers:
        endpoint.answers[f"/schemas/ids/{number}"] = answered(schema="{}", schemaType="JSON")
    gate = Gate(endpoint)
    for _ in range(2):  # a restart of the stream names forgotten ids again
        gate.fetch(*[framed(number, b"{}") for number in numbers])
        n_read = 0
        while n_read < len(numbers):
            if (run := gate.next_run()) is None:
                gate.wait()
            else:
                assert not run.unknown
                n_read += len(run.raw)
    gate.fetch(framed(19, b"{}"))
    assert offsets(gate.next_run()) == [0]
    assert {*gate.schemas.schemas(numbers)[0]} == {17, 18, 19}, "the last used ones"
