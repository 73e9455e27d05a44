"""Outputs that their topic does not take: dead letters of their records instead; everything else goes on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamapp.worker.observability.metrics import Metrics
from streamapp.worker.outputs.encoder import Encoder
from streamapp.worker.outputs.record_sizes import OutputLimits
from streamapp.worker.task.effects.effects import Effects
from tests.topology.partition import ALWAYS, NAMES, NEVER, Partition, Record, Sent, config, instance
from topics.codecs import Limits, decode_predictions, encode_instances
from topics.columns.records import Features

LIMIT = 600
LONG = "i" * LIMIT


def small(**limits: int) -> Encoder:
    """Return an encoder for topics that take little, by the names of their attributes in `TopicNames`."""
    topics = dict(OutputLimits.of_catalogue(NAMES).topics)
    return Encoder(NAMES, limits=OutputLimits(topics | {getattr(NAMES, k): v for k, v in limits.items()}))


def only(partition: Partition) -> Sent:
    (letter,) = partition.dead_letters
    assert letter.reason == "output-too-large"
    assert dict(letter.headers)["__streams.errors.exception"] == b"RecordTooLarge"
    return letter


def outcomes(partition: Partition, effects: Effects) -> dict[str, int]:
    return {name: n for name, n in effects.counts.items() if n}


def test_an_answer_that_its_topic_does_not_take_is_a_dead_letter_and_the_others_go_on() -> None:
    partition = Partition(config(NEVER), encoder=small(predictions=LIMIT))
    effects = partition.instances(*({"id": name, "features": {"x": 1}} for name in ("a", LONG, "b")))
    assert [document["id"] for document in partition.predictions] == ["a", "b"]
    letter = only(partition)
    assert letter.json["id"] == LONG, "the untouched record"
    assert letter.message.startswith("its prediction cannot be sent: 7")
    assert f"bytes are more than max.message.bytes={LIMIT} of topic 't.predictions'; raise" in letter.message
    assert dict(letter.headers)["__streams.errors.offset"] == b"1"
    assert outcomes(partition, effects) == {
        "instances.answered": 2,
        "instances.dead-letter": 1,
        "models.created": 1,
        "outputs.too-large": 1,
    }


def test_what_is_counted_becomes_a_metric() -> None:
    metrics, partition = Metrics(), Partition(config(NEVER), encoder=small(predictions=LIMIT))
    raw = partition._raw("instances", [instance({"id": LONG, "features": {"x": 1}})])
    partition._offsets.clear()
    metrics.sent(raw, partition.instances({"id": LONG, "features": {"x": 1}}))
    read = metrics.registry.get_sample_value
    assert read("grove_dlq_records_total", {"reason": "output-too-large"}) == 1
    assert read("grove_outputs_too_large_total") == 1
    assert read("grove_records_total", {"topic": "instances", "outcome": "dead-letter"}) == 1
    assert read("grove_records_total", {"topic": "instances", "outcome": "answered"}) == 0


def test_the_model_has_learned_from_a_record_whose_answer_is_too_large() -> None:
    partition = Partition(config(NEVER), encoder=small(predictions=LIMIT))
    partition.instances({"id": LONG, "features": {"x": 1}, "label": "a"})
    partition.instances({"id": "next", "features": {"x": 1}})
    only(partition)
    assert partition.predictions[0]["version"] == 1
    assert partition.predictions[0]["label"] == "a"


def test_an_answer_goes_out_although_the_request_of_its_record_is_too_large() -> None:
    partition = Partition(config(ALWAYS), encoder=small(label_requests=LIMIT))
    features = {f"feature-{i}": i + 0.5 for i in range(40)}
    partition.instances({"id": "wide", "features": features}, {"id": "narrow", "features": {"feature-1": 1}})
    assert [document["id"] for document in partition.predictions] == ["wide", "narrow"]
    assert [document["instance_id"] for document in partition.requests] == ["narrow"]
    assert "its label request cannot be sent" in only(partition).message


def test_two_outputs_of_one_record_are_one_dead_letter() -> None:
    partition = Partition(config(ALWAYS), encoder=small(predictions=LIMIT, label_requests=LIMIT))
    effects = partition.instances({"id": LONG, "features": {"x": 1}})
    assert "its prediction cannot be sent" in only(partition).message
    assert "(and 1 more of its outputs)" in only(partition).message
    assert effects.counts["outputs.too-large"] == 2
    assert effects.counts["instances.dead-letter"] == 1


def test_an_evaluation_and_a_drift_alert_can_be_too_large_too() -> None:
    spec = {"drift": {"name": "ddm", "warm_up": 5}, "evaluation": {"every": 4, "window": 20}} | NEVER
    partition = Partition(config(spec), encoder=small(evaluations=150, drift_alerts=150))
    labels = ["a"] * 40 + ["b"] * 10
    partition.instances(
        *({"id": f"{LONG}{i}", "features": {"x": 1}, "label": label} for i, label in enumerate(labels))
    )
    assert len(partition.predictions) == 50
    assert not partition.sent["evaluations"]
    assert not partition.sent["drift-alerts"]
    messages = [letter.message.split(" cannot")[0] for letter in partition.dead_letters]
    assert messages.count("its evaluation") >= 10
    assert "its drift alert" in messages


def test_dead_letters_are_in_input_order_whatever_they_are_for() -> None:
    partition = Partition(config(NEVER), encoder=small(predictions=LIMIT))
    long = instance({"id": LONG, "features": {"x": 1}})
    broken = Record("instances", b"m", b"{")
    partition.feed(broken, long, broken, instance({"features": {"x": 1}}), long)
    assert [letter.reason for letter in partition.dead_letters] == [
        "not-json",
        "output-too-large",
        "not-json",
        "output-too-large",
    ]


@pytest.mark.parametrize("form", ["minimal", "full"])
def test_headers_count_too(form: Any) -> None:
    limits = OutputLimits(OutputLimits.of_catalogue(NAMES).topics, producer=100_000)
    partition = Partition(config(NEVER), encoder=Encoder(NAMES, headers=form, limits=limits))
    baggage = [(f"baggage-{i}", b"x" * 40) for i in range(3000)]
    given = instance({"id": "a", "features": {"x": 1}})
    partition.feed(given._replace(headers=baggage), given)
    assert len(partition.predictions) == 1
    letter = only(partition)
    assert "more than message.max.bytes=100000 of the worker's producer" in letter.message
    assert dict(letter.headers)["grove-dlq-left-out"] == b"value, headers", "they do not fit here either"
    assert letter.value is None


def test_a_block_is_not_cut_its_answer_becomes_one_dead_letter() -> None:
    partition = Partition(config(NEVER), encoder=small(predictions=4000))
    x = np.arange(400.0).reshape(200, 2)
    big, little = (
        encode_instances(Features.of(("x", "y"), x[:n]), format="arrow", ids=[f"r{i}" for i in range(n)])[0]
        for n in (200, 5)
    )
    effects = partition.feed(Record("instances", b"m", big), Record("instances", b"m", little))
    answered = decode_predictions([sent.value or b"" for sent in partition.sent["predictions"]])
    assert answered.ids == [f"r{i}" for i in range(5)]
    assert "send fewer rows in a block, or raise the limit" in only(partition).message
    assert effects.counts["instances.answered"] == 5
    assert effects.counts["instances.dead-letter"] == 200


def test_names_that_packed_has_no_room_for_are_too_large() -> None:
    limits = Limits(text_max_bytes=1 << 20, class_max_bytes=1 << 20)
    partition = Partition(config(NEVER, limits=limits), encoder=Encoder(NAMES, form="packed"))
    name = "é" * 40_000
    partition.instances(*({"id": id_, "features": {"x": 1}} for id_ in ("a", name, "b")))
    answered = decode_predictions([sent.value or b"" for sent in partition.sent["predictions"]])
    assert answered.ids == ["a", "b"]
    assert "an id of 80000 bytes must have at most 65535 in packed" in only(partition).message
    partition.dead_letters.clear()
    partition.instances({"id": "c", "features": {"x": 1}, "label": name})
    partition.instances({"id": "d", "features": {"x": 1}}, key="another")
    partition.instances({"id": "e", "features": {"x": 1}})
    answered = decode_predictions([sent.value or b"" for sent in partition.sent["predictions"]])
    assert answered.ids == ["a", "b", "c", "d"], "the answer to c was given before it was learned"
    assert "a class name of 80000 bytes must have at most 65535 in packed" in only(partition).message


def test_what_is_too_large_does_not_depend_on_how_a_run_is_cut() -> None:
    spec = config({"query": "random", "budget": {"name": "count", "limit": 0.5}})
    documents = [{"id": "n" * (7 * i), "features": {"x": float(i)}} for i in range(1, 80)]
    whole = Partition(spec, encoder=small(predictions=LIMIT, label_requests=500))
    parts = Partition(spec, encoder=small(predictions=LIMIT, label_requests=500))
    whole.instances(*documents)
    for start in range(0, len(documents), 7):
        parts.instances(*documents[start : start + 7])
    assert whole.sent == parts.sent
    assert 0 < len(whole.dead_letters) < len(documents)
    assert len(whole.predictions) + len({letter.json["id"] for letter in whole.dead_letters}) >= 79


def test_a_class_of_too_many_bytes_is_refused_so_that_no_answer_repeats_it() -> None:
    partition = Partition(config(NEVER))
    long = ["\x01" * 1000 + f"{number:02}" for number in range(64)]
    partition.instances(*({"features": {"x": 1}, "label": name} for name in long))
    partition.labels(*({"id": str(number), "label": name} for number, name in enumerate(long)))
    partition.control("create", key="other", schema={"attributes": [{"name": "x"}], "classes": long[:2]})
    partition.instances({"features": {"x": 1}, "label": "é" * 128})
    reasons = [letter.reason for letter in partition.dead_letters]
    assert reasons == ["too-long"] * 128 + ["bad-control"]
    rule = "a class of 1,002 bytes must have at most max.class.name.bytes=256; it begins"
    assert all(rule in letter.message for letter in partition.dead_letters)
    assert partition.counts["instances.answered"] == 1, "256 bytes are taken"


@pytest.mark.parametrize("form", ["json", "packed"])
def test_small_records_lead_to_no_megabytes_of_answers(form: Any) -> None:
    partition = Partition(config(NEVER), encoder=Encoder(NAMES, form=form))
    partition.instances(*({"features": {"x": 1}, "label": f"{i:02}{chr(1) * 254}"} for i in range(64)))
    given = [{"id": f"i{i}", "features": {"x": 1}} for i in range(200)]
    effects = partition.instances(*given)
    written = sum(len(sent.value or b"") for topic in partition.sent.values() for sent in topic)
    sent = sum(len(instance(row).value or b"") for row in given)
    if form == "packed":  # it escapes nothing
        assert written < 700 * sent
        return
    assert written < 4 << 20
    letter = partition.dead_letters[-1]
    assert letter.reason == "output-too-large"
    assert "max.output.bytes=65536, or 64 times its bytes" in letter.message
    assert outcomes(partition, effects) == {"instances.dead-letter": 200, "outputs.too-large": 200}


def test_what_an_output_may_take_grows_with_its_record_and_the_rows_of_its_block() -> None:
    partition = Partition(config(NEVER), encoder=Encoder(NAMES, most_bytes=4096))
    partition.instances(*({"features": {"x": 1}, "label": f"{i:02}{'c' * 198}"} for i in range(40)))
    partition.sent.clear()
    partition.instances({"id": "small", "features": {"x": 1}}, {"id": "a" * 200, "features": {"x": 1}})
    assert [document["id"] for document in partition.predictions] == ["a" * 200]
    assert [letter.json["id"] for letter in partition.dead_letters] == ["small"]
    block = encode_instances(Features.of(("x",), np.ones((100, 1))), format="arrow")[0]
    partition.feed(Record("instances", b"m", block))
    assert len(partition.dead_letters) == 1, "a block of 100 rows is answered"
