"""An answer that is explained is the one that was sent, with the rules and reasons that led to it."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from streamapp.tools.offline.explaining import Explanation, explain
from tests.topology.logged import Log
from tests.topology.partition import ALWAYS, NEVER, QUICK, config
from tests.unit.streamapp.tools.offline.archive import Archive
from topics.codecs.avro.output_reader import OutputReader
from topics.codecs.avro.output_schemas import current
from topics.codecs.compiled.encode_avro import avro_answers
from topics.registry.registered_schema import RegisteredSchema

SOME = {"query": "variable_uncertainty", "budget": {"name": "count", "limit": 0.3}}


def learned(spec: dict[str, Any], **settings: Any) -> Archive:
    archive = Archive(config(spec, **settings), keeps_digests=True)
    for n in range(200):
        x = {"x": n % 10}
        archive.instances({"id": f"i{n}", "features": x, "label": "high" if n % 10 > 5 else "low"})
        archive.instances({"id": f"u{n}", "features": x})
    return archive


def explained(archive: Archive, offset: int) -> Explanation:
    archive.commit()
    (raw,) = Log(archive.logs["instances"], offset, 1).up_to(offset + 1)
    return explain(archive.travel().to_record(offset).task, raw)


@pytest.mark.parametrize("spec", [ALWAYS, NEVER, SOME], ids=["always", "never", "some"])
def test_an_answer_is_the_one_that_was_sent_and_whether_it_was_asked_for(spec: dict[str, Any]) -> None:
    archive = learned(spec)
    asked = {each["instance_id"] for each in archive.requests}
    assert archive.model().summary().splits > 0
    for offset in (0, 1, 101, 298, 399):
        found = explained(archive, offset)
        (answer,) = found.answers
        sent = archive.sent["predictions"][offset]
        assert sent.value is not None
        assert answer.id == sent.json["id"]
        assert answer.label == sent.json["label"]
        assert answer.asked == (answer.id in asked)
        assert found.same_as(sent.value) is True
        changed = orjson.dumps(sent.json | {"version": 999})
        assert found.same_as(changed) is False
        assert found.same_as(archive.sent["predictions"][offset - 1].value or b"") is None


def test_an_answer_in_avro_is_the_one_that_was_sent() -> None:
    found = explained(learned(NEVER), 399)
    outputs = OutputReader(lambda schema_id: RegisteredSchema(schema_id, "AVRO", current("prediction")))
    for predictions in found.predictions:
        (written,) = avro_answers(predictions, 7)
        (value,) = outputs.texts([written or b""])
        assert found.same_as(value) is True
        assert found.same_as(orjson.dumps(orjson.loads(value) | {"version": 999})) is False


def test_the_path_of_rules_is_told_though_the_model_was_not_to_explain_itself() -> None:
    archive = learned(NEVER)
    (answer,) = explained(archive, 399).answers
    assert answer.path.startswith("x > ")
    assert explained(archive, 0).answers[0].path == "all"
    explaining = learned(NEVER | {"explain": True})
    (again,) = explained(explaining, 399).answers
    assert again.path == explaining.sent["predictions"][399].json["explanation"]


def test_a_record_that_is_explained_leaves_the_task_as_it_was_left_then() -> None:
    archive = learned(SOME)
    archive.commit()
    for offset in (0, 250):
        task = archive.travel().to_record(offset).task
        (raw,) = Log(archive.logs["instances"], offset, 1).up_to(offset + 1)
        explain(task, raw)
        assert task.digest() == archive.digests[offset + 1]


def why(archive: Archive, offset: int) -> str:
    (answer,) = explained(archive, offset).answers
    return answer.why


def test_why_a_label_was_asked_for_or_not() -> None:
    archive = learned(ALWAYS)
    assert why(archive, 0) == "its label came with it"
    assert (
        why(archive, 1)
        == "always requested it, and the budget was open: 0 of 1 records had been requested (limit 1)"
    )
    archive.instances({"id": "u3", "features": {"x": 1}})
    assert why(archive, 400) == "its id is remembered: the instance was answered before"
    archive.control("freeze")
    archive.instances({"id": "f", "features": {"x": 1}})
    assert why(archive, 401) == "the model is frozen: it answers, but neither requests labels nor learns"
    assert why(learned(NEVER), 3).startswith("never did not request it: 0 of 3 records had been")
    tight = learned({"query": "always", "budget": {"name": "count", "limit": 0.01}})
    closed = "the budget was closed: 1 of 3 records had been requested (limit 0.01)"
    assert why(tight, 1).startswith("always requested it")
    assert why(tight, 3) == closed
    drawn = learned({"query": "never", "evaluation": {"share": 0.5}})
    assert "drawn at random for the evaluation (evaluation.share)" in {why(drawn, n) for n in (1, 3, 5, 7)}


def test_the_first_record_of_a_key_is_answered_by_a_model_that_did_not_exist() -> None:
    archive = Archive(config(ALWAYS), keeps_digests=True)
    archive.instances({"id": "a", "features": {"x": 1}}, key="new")
    found = explained(archive, 0)
    assert (found.key, found.answers[0].label, found.answers[0].path) == ("new", None, "all")


def test_a_record_that_was_refused_says_why() -> None:
    archive = Archive(config(ALWAYS | {"learner": QUICK}, models_auto_create=False), keeps_digests=True)
    archive.instances({"id": "a", "features": {"x": 1}}, key="new")
    found = explained(archive, 0)
    assert found.answers == ()
    assert "unknown-model: model 'new' is unknown" in found.refused[0]
