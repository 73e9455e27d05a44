"""An exception in our own code (or a plug-in): the partition stops, or the record is put aside."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from streamapp.worker.outputs.encoder import Encoder
from streamapp.worker.outputs.outgoing import OutputRecords
from streamapp.worker.task.effects.effects import Effects
from streamapp.worker.task.error_isolation import ProcessingError
from streamapp.worker.task.task import TaskRun
from tests.property.test_task_cuts import assert_same
from tests.property.test_task_rollback import state
from tests.topology.partition import NAMES, NEVER, Partition, Record, config, instance
from topics.codecs.json import documents as json_documents
from topics.columns.records import RawRecords

POISON = {"features": {"x": 1.0}, "label": "a", "weight": 1.25}


def spec(learner: str) -> dict[str, Any]:
    """Return a spec whose learner decides at every label."""
    tree = {"name": learner, "grace_period": 1, "delta": 1e-7, "tau": 0.0}
    return {"learner": tree, "query": "always", "budget": {"name": "count", "limit": 1.0}}


def rows(n: int, start: int = 0) -> list[dict[str, Any]]:
    """Return labelled and unlabelled instances by turns."""
    return [
        {"id": f"i{i}", "features": {"x": float(i % 7)}} | ({"label": "ab"[i % 2]} if i % 3 else {})
        for i in range(start, start + n)
    ]


def test_the_culprits_are_put_aside_and_the_state_is_as_if_they_had_never_come(explosive: str) -> None:
    given = config(spec(explosive), processing_exception_handler="dead-letter")
    hit, spared = Partition(given), Partition(given)
    documents = rows(40)
    hit.instances(*documents[:17], POISON, *documents[17:30], POISON, *documents[30:])
    spared.instances(*documents)
    assert [dict(letter.headers)["__streams.errors.offset"] for letter in hit.dead_letters] == [b"17", b"31"]
    letter = hit.dead_letters[0]
    assert letter.reason == "processing-error"
    assert letter.message == "ArithmeticError: this weight is no whole number"
    assert dict(letter.headers)["__streams.errors.exception"] == b"builtins.ArithmeticError"
    assert dict(letter.headers)["grove-dlq-attempts"] == b"2"
    assert "__streams.errors.stacktrace" not in dict(letter.headers)
    assert hit.predictions == spared.predictions
    assert hit.requests[-1]["instance_id"] == spared.requests[-1]["instance_id"]
    hit_state, expected = state(hit), state(spared)
    assert hit_state.pop("next") == {"instances": 42}
    assert hit_state.pop("counters") == expected.pop("counters") | {"instances.dead-letter": 2}
    expected.pop("next")
    assert_same(hit_state, expected)
    assert [(notice.level, notice.offset) for notice in hit.notices] == [("error", 17), ("error", 31)]


def test_a_label_that_fails_is_put_aside_and_its_instance_goes_on_waiting(explosive: str) -> None:
    partition = Partition(config(spec(explosive), processing_exception_handler="dead-letter"))
    partition.instances({"id": "a", "features": {"x": 1.0}}, {"features": {"x": 1.0}, "label": "a"})
    partition.labels({"id": "a", "label": "b", "weight": 1.5}, {"id": "unknown", "label": "b"})
    assert [letter.reason for letter in partition.dead_letters] == ["processing-error"]
    assert partition.counts["labels.dead-letter"] == 1
    assert partition.counts["labels.early"] == 1
    partition.labels({"id": "a", "label": "b"})
    assert partition.counts["labels.learned"] == 1


def test_the_stack_trace_is_there_if_it_was_asked_for(explosive: str) -> None:
    given = config(spec(explosive), processing_exception_handler="dead-letter", dead_letter_stacktrace=True)
    partition = Partition(given)
    partition.instances(POISON)
    trace = partition.dead_letters[0].header("__streams.errors.stacktrace")
    assert trace.startswith("Traceback")
    assert "ArithmeticError: this weight is no whole number" in trace


def test_stop_partition_names_topic_partition_offset_and_model(explosive: str) -> None:
    partition = Partition(config(spec(explosive)))
    partition.instances(*rows(10))
    with pytest.raises(ProcessingError) as caught:
        partition.instances(*rows(5, 10), POISON, *rows(5, 15), key="m")
    error = caught.value
    assert (error.topic, error.partition, error.offset, error.model_key) == ("t.instances", 3, 15, "m")
    assert str(error).startswith(
        "topic=t.instances partition=3 offset=15 model='m': ArithmeticError: this weight is no whole number"
    )
    assert isinstance(error.__cause__, ArithmeticError)


def test_the_position_behind_a_gap_in_the_log_is_kept_when_records_are_repeated(explosive: str) -> None:
    partition = Partition(config(spec(explosive), processing_exception_handler="dead-letter"))
    raw = partition._raw("instances", [instance(row) for row in (*rows(3), POISON)])
    partition.process(TaskRun("instances", raw, position=29))
    assert partition.task.next == {"instances": 29}


TORN = b'{"torn": 1}'


def torn_loads(value: bytes) -> Any:
    if value == TORN:
        raise OSError(5, "Input/output error")
    return orjson.loads(value)


def test_a_codec_that_fails_on_a_record_costs_that_record(monkeypatch: pytest.MonkeyPatch) -> None:
    failing = SimpleNamespace(loads=torn_loads, JSONDecodeError=orjson.JSONDecodeError)
    monkeypatch.setattr(json_documents, "orjson", failing)
    partition = Partition(config(processing_exception_handler="dead-letter"))
    good = [instance(row) for row in rows(4)]
    partition.feed(*good[:2], Record("instances", b"m", TORN), *good[2:])
    assert [letter.reason for letter in partition.dead_letters] == ["processing-error"]
    assert partition.dead_letters[0].value == TORN
    assert [document["id"] for document in partition.predictions] == ["i0", "i1", "i2", "i3"]


def test_models_are_copied_only_where_a_run_may_have_to_be_undone() -> None:
    for handler, copies in (("dead-letter", 1), ("stop-partition", 0)):
        partition = Partition(config(processing_exception_handler=handler))
        partition.instances(*rows(3))
        partition.instances(*rows(3, 3))
        assert len(partition.task.models.undo._preserved) == copies, handler


class StrictEncoder(Encoder):
    """An encoder that fails where ours would have a bug: at the id "poison"."""

    def encode(
        self, raw: RawRecords, effects: Effects, answers: OutputRecords | None = None
    ) -> list[OutputRecords]:
        if any("poison" in answers.predictions.ids for answers in effects.answers):
            message = "'utf-8' codec can't encode character: surrogates not allowed"
            raise TypeError(message)
        return super().encode(raw, effects, answers)


def test_what_cannot_be_encoded_stops_its_partition_and_is_named() -> None:
    partition = Partition(config(NEVER), encoder=StrictEncoder(NAMES))
    partition.instances(*rows(3))
    with pytest.raises(ProcessingError) as caught:
        partition.instances(*rows(4, 3), {"id": "poison", "features": {"x": 1.0}}, *rows(3, 7), key="m")
    assert (caught.value.topic, caught.value.offset, caught.value.model_key) == ("t.instances", 7, "m")
    assert "TypeError: 'utf-8' codec" in str(caught.value)
    assert len(partition.predictions) == 3, "nothing of the run was sent"


def test_what_cannot_be_encoded_is_put_aside_and_leaves_nothing_behind() -> None:
    given = config(spec("h-tree"), processing_exception_handler="dead-letter")
    hit, spared = Partition(given, encoder=StrictEncoder(NAMES)), Partition(given)
    documents = rows(40)
    poison = {"id": "poison", "features": {"x": 3.0, "new": "value"}, "label": "c"}
    hit.instances(*documents[:17], poison, *documents[17:])
    spared.instances(*documents)
    (letter,) = hit.dead_letters
    assert letter.reason == "processing-error"
    assert dict(letter.headers)["__streams.errors.offset"] == b"17"
    assert hit.predictions == spared.predictions
    assert [request["instance_id"] for request in hit.requests] == [
        request["instance_id"] for request in spared.requests
    ]
    hit_state, expected = state(hit), state(spared)
    assert hit_state.pop("next") == {"instances": 41}
    assert hit_state.pop("counters") == expected.pop("counters") | {"instances.dead-letter": 1}
    expected.pop("next")
    assert_same(hit_state, expected)
    hit.labels({"id": "poison", "label": "a"})
    assert hit.counts["labels.early"] == 1, "the instance is not known"
