"""Outputs in Avro hold what they hold in JSON."""

from io import BytesIO
from typing import Any

import fastavro
import orjson
import pytest

from streamapp.worker.outputs.encoder import Encoder
from tests.topology.partition import ALWAYS, NAMES, Partition, Sent, config, instance
from topics.codecs.avro.output_reader import OutputReader
from topics.codecs.avro.output_schemas import OUTPUTS, Output, current, released
from topics.codecs.frames.wire_format import id_before_body
from topics.registry.registered_schema import RegisteredSchema, SchemaId

IDS = {output: number for number, output in enumerate(OUTPUTS, 1)}
SPEC = {**ALWAYS, "drift": "ddm"}
TOPICS = {
    "prediction": "predictions",
    "label-request": "label-requests",
    "drift-alert": "drift-alerts",
    "evaluation": "evaluations",
}


def schema_of(schema_id: SchemaId) -> RegisteredSchema:
    (output,) = (name for name, number in IDS.items() if number == schema_id)
    return RegisteredSchema(schema_id, "AVRO", current(output))


def story(partition: Partition) -> None:
    for number in range(300):
        turned = number >= 150
        partition.instances({"id": f"i{number}", "features": {"x": number % 7, "colour": "red"}})
        label = "ab"[(number % 7 > 3) != turned]
        partition.labels({"id": f"i{number}", "label": label})
    partition.instances(*({"id": f"j{n}", "features": {"x": n, "colour": "blue"}} for n in range(12)))


def contents(sent: list[Sent], outputs: OutputReader) -> list[dict[str, Any]]:
    documents = [orjson.loads(text) for text in outputs.texts([message.value or b"" for message in sent])]
    for document in documents:
        if isinstance(document.get("probabilities"), dict):
            document["probabilities"] = {k: round(p, 3) for k, p in document["probabilities"].items()}
        document["untrained"] = document.get("untrained") or False
    return [{name: value for name, value in each.items() if value is not None} for each in documents]


@pytest.fixture(scope="module")
def partitions() -> tuple[Partition, Partition]:
    plain = Partition(config(SPEC, evaluation_every=100))
    avro = Partition(config(SPEC, evaluation_every=100), encoder=Encoder(NAMES, schema_ids=IDS))
    story(plain)
    story(avro)
    return plain, avro


@pytest.mark.parametrize("output", OUTPUTS)
def test_an_output_has_the_content_of_its_json(output: str, partitions: tuple[Partition, Partition]) -> None:
    plain, avro = (partition.sent[TOPICS[output]] for partition in partitions)
    assert plain
    assert {id_before_body(message.value or b"") for message in avro} == {IDS[output]}  # type: ignore[index]
    assert contents(avro, OutputReader(schema_of)) == contents(plain, OutputReader(None))
    assert [message.key for message in avro] == [message.key for message in plain]


def test_events_and_dead_letters_stay_as_they_are(partitions: tuple[Partition, Partition]) -> None:
    plain, avro = partitions
    assert [message.value for message in avro.sent["model-events"]] == [
        message.value for message in plain.sent["model-events"]
    ]
    for partition in partitions:
        partition.feed(instance({"features": []}))
    assert avro.sent["dead-letters"][-1].value == plain.sent["dead-letters"][-1].value == b'{"features":[]}'


def test_headers_with_a_schema_are_not_passed_on() -> None:
    partition = Partition(config(ALWAYS))
    headers = [("__value_schema_id", b"\x00\x00\x00\x00\x07"), ("trace", b"1")]
    record = instance({"features": [1]})
    partition.feed(record._replace(headers=headers))
    assert partition.sent["predictions"][0].headers == (("trace", b"1"),)


def test_full_headers_name_the_format() -> None:
    partition = Partition(config(ALWAYS), encoder=Encoder(NAMES, headers="full", schema_ids=IDS))
    partition.instances({"features": [1]})
    assert dict(partition.sent["predictions"][0].headers)["content-type"] == b"application/avro"


@pytest.fixture(scope="module")
def calibrated() -> tuple[Partition, Partition]:
    spec = {**ALWAYS, "calibration": "platt", "conformal": {"alpha": 0.2}}
    both = (
        Partition(config(spec, evaluation_every=100)),
        Partition(config(spec, evaluation_every=100), encoder=Encoder(NAMES, schema_ids=IDS)),
    )
    for partition in both:
        story(partition)
    return both


@pytest.mark.parametrize(
    ("output", "fields"),
    [
        ("prediction", {"raw_probabilities", "set"}),
        ("evaluation", {"coverage", "coverage_low", "coverage_high", "set_size"}),
    ],
)
def test_sets_and_raw_probabilities_are_those_of_json(
    output: Output, fields: set[str], calibrated: tuple[Partition, Partition]
) -> None:
    plain, avro = (partition.sent[TOPICS[output]] for partition in calibrated)
    ours, expected = contents(avro, OutputReader(schema_of)), contents(plain, OutputReader(None))
    assert fields <= ours[-1].keys()
    assert len(ours) == len(expected)
    for one, other in zip(ours, expected, strict=True):
        for name in ("probabilities", "raw_probabilities"):  # JSON has them rounded
            assert one.pop(name, None) == pytest.approx(other.pop(name, None), abs=2e-3)
        assert one == other


@pytest.mark.parametrize("output", ["prediction", "evaluation"])
def test_a_reader_with_the_first_schema_reads_answers_with_sets(
    output: Output, calibrated: tuple[Partition, Partition]
) -> None:
    """It does not see the members that it does not have, and reads all others."""
    writer, first = (
        fastavro.parse_schema(orjson.loads(text)) for text in (current(output), released(output)[1])
    )
    known = {field["name"] for field in orjson.loads(released(output)[1])["fields"]}
    for message in calibrated[1].sent[TOPICS[output]]:
        body = (message.value or b"")[5:]
        whole: Any = fastavro.schemaless_reader(BytesIO(body), writer, writer)
        assert whole.keys() > known
        old = fastavro.schemaless_reader(BytesIO(body), writer, first)
        assert old == {name: value for name, value in whole.items() if name in known}
