"""What is found about a prediction: the model of then, the reasons, whether it is what was sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from core.model import file as model_file
from core.model.model import Model
from streamapp.errors import UsageError
from streamapp.tools.offline.audit import as_text, audit
from streamapp.tools.offline.errors import OfflineError
from streamapp.tools.offline.listing import exported, find, rows
from streamapp.tools.offline.place import Place
from streamapp.tools.offline.time_travel import Arrived
from tests.positions import committed
from tests.topology.logged import Log
from tests.topology.partition import ALWAYS, PARTITION, config
from tests.unit.streamapp.tools.offline.archive import Archive
from topics.columns.records import RawRecords


class Stored:
    """A partition in memory, as an audit sees it."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self.predictions = [(each.key, each.value) for each in archive.sent["predictions"]]

    def at(self, offset: int, *, behind: bool = False) -> Arrived:
        return self.archive.travel().to_record(offset, behind=behind)

    def instance(self, offset: int) -> RawRecords | None:
        return next(Log(self.archive.logs["instances"], offset, 1).up_to(offset + 1), None)

    def predictions_since(self, timestamp: int) -> Iterator[RawRecords]:
        for offset, (key, value) in enumerate(self.predictions):
            yield RawRecords("p", PARTITION, [offset], [0], [key], [value], [()])


def played() -> Archive:
    archive = Archive(config(ALWAYS))
    for n in range(150):
        x = {"x": n % 10}
        label = "high" if n % 10 > 5 else "low"
        archive.instances({"id": f"i{n}", "features": x, "label": label}, key="m")
        archive.instances({"id": f"u{n}", "features": x}, key="other")
    archive.commit()
    return archive


ARCHIVE = played()


def found(key: str, at: str, **options: Any) -> Any:
    wanted: dict[str, Any] = {"after": False, "prefix": "t."} | options
    stored = wanted.pop("stored", None) or Stored(ARCHIVE)
    return audit(stored, key, Place.parse(at), **wanted)


def test_the_model_the_answer_its_reasons_and_that_it_was_sent() -> None:
    result = found("m", "3:280")
    document = result.document
    assert document["model"]["version"] == 140
    assert document["positions"] == {"controls": 0, "instances": 280, "labels": 0}
    prediction = document["prediction"]
    assert prediction["sent"] == "equal"
    (answer,) = prediction["answers"]
    assert (answer["id"], answer["label"], answer["version"]) == ("i140", "low", 140)
    assert answer["path"].startswith("x <= ")
    assert model_file.unwrap(result.file).head["taken"]["positions"]["instances"] == 280
    text = as_text(document)
    assert "answer     i140: low (high 0.0000, low 1.0000)" in text
    assert "label      not requested: its label came with it" in text
    assert text.endswith("sent       equal to the sent answer")


def test_before_and_after_differ_by_the_record() -> None:
    before, after = (found("m", "3-280", after=after) for after in (False, True))
    models = [Model.restore(model_file.unwrap(each.file).snapshot) for each in (before, after)]
    assert [model.summary().labels for model in models] == [140, 141]
    assert before.document["prediction"] == after.document["prediction"]
    assert after.document["state"] == "after"


def test_of_another_key_there_is_the_model_but_no_answer() -> None:
    document = found("other", "3:280").document
    assert (document["model"]["records"], document["prediction"], document["record"]) == (140, None, "m")
    assert "of the model 'm': the other model did not answer" in as_text(document)


def test_before_its_first_record_there_is_no_model() -> None:
    result = found("m", "3:0")
    assert (result.file, result.document["model"]) == (None, None)
    assert "model      there was none" in as_text(result.document)
    assert result.document["prediction"]["answers"][0]["path"] == "all"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda values: values[:100], "not-found"),
        (lambda values: [(k, v.replace(b"low", b"lower")) for k, v in values], "different"),
    ],
    ids=["gone", "other"],
)
def test_what_was_sent_may_be_gone_or_another_one(change: Any, expected: str) -> None:
    stored = Stored(ARCHIVE)
    stored.predictions = change(stored.predictions)
    document = found("m", "3:280", stored=stored).document
    assert document["prediction"]["sent"] == expected


def test_a_record_that_was_skipped_is_not_explained() -> None:
    archive = Archive(config(ALWAYS))
    archive.instances({"id": "a", "features": {"x": 1}})
    archive.commit()
    stored = Stored(archive)
    arrived = stored.at(0)
    skipped = Arrived(arrived.task, arrived.positions, 0, "it is a dead letter (processing-error), …")
    stored.at = lambda offset, behind=False: skipped  # type: ignore[method-assign, misc]
    document = found("m", "3:0", stored=stored).document
    assert document["prediction"] is None
    assert "record     it is a dead letter (processing-error)" in as_text(document)


def test_an_offset_without_a_record_is_told() -> None:
    stored = Stored(ARCHIVE)
    stored.instance = lambda offset: None  # type: ignore[method-assign]
    document = found("m", "3:280", stored=stored).document
    assert (document["record"], document["prediction"]) == (None, None)
    assert "there is none at this offset" in as_text(document)


@pytest.mark.parametrize("text", ["3", "3:", ":5", "a:5", "3:-1", "3:5:1", ""])
def test_a_place_is_a_partition_and_an_offset(text: str) -> None:
    with pytest.raises(UsageError, match="must be PARTITION:OFFSET of the topic instances, for example"):
        Place.parse(text)


def test_the_models_of_a_task_by_key() -> None:
    listed = list(rows(ARCHIVE.task))
    assert [each["key"] for each in listed] == ["m", "other"]
    assert listed[0] | {"bytes": 0} == {
        "key": "m",
        "partition": PARTITION,
        "spec": "h-tree",
        "version": 150,
        "records": 150,
        "labels": 150,
        "leaves": ARCHIVE.model().summary().leaves,
        "bytes": 0,
        "frozen": False,
        "challenger": None,
    }


def test_a_key_without_a_model_is_named_with_what_there_is_to_do() -> None:
    with pytest.raises(OfflineError, match="partition 3: the model of 'x' is not there; 'grove models list'"):
        find(ARCHIVE.task, "x")
    archive = Archive(config(ALWAYS))
    archive.control("create", key="x")
    archive.commit()
    arrived = archive.travel().to_committed(committed(controls=1))
    assert arrived is not None
    with pytest.raises(OfflineError, match="is created by its first instance, which did not come yet"):
        exported(arrived, "x", "t.")
