"""A model goes from one partition to another in control records; what breaks their order is refused."""

from __future__ import annotations

import random
import struct
import zlib
from typing import Any

import orjson
import pytest

from core.kernels.records import offset
from core.layout.model import ModelHeader
from core.model import file as model_file
from core.model import snapshot
from core.model.model import Model
from core.model.validate import check
from streamapp.worker.task.models.files import importing
from streamapp.worker.task.models.files.exported import read_exported, write_exported
from streamapp.worker.task.models.files.importing import control_values
from streamapp.worker.task.task import Task
from streamapp.worker.task.unit import DamagedStateError, Unit, UnitName, seal, unseal
from tests.fuzz import models, mutate
from tests.topology.partition import ALWAYS, NEVER, PARTITION, QUICK, Partition, Record, config, instance

TAKEN: dict[str, Any] = {"prefix": "t.", "partition": 3, "positions": {"instances": 400}}


FOREST = {"learner": {"name": "arf", "members": 3, "member": QUICK}}


def learned(n: int = 200, key: str = "m", spec: dict[str, Any] = ALWAYS, **settings: Any) -> Partition:
    """Return a partition with a model that has split."""
    partition = Partition(config(spec, **settings))
    for number in range(n):
        x = {"x": number % 10, "colour": ["red", "green"][number % 3 == 0]}
        label = "high" if number % 10 > 5 else "low"
        partition.instances({"id": f"i{number}", "features": x, "label": label}, key=key)
    partition.instances({"id": "asked", "features": {"x": 1}}, key=key)
    assert partition.model(key).summary().splits > 0
    return partition


def exported(partition: Partition, key: str = "m") -> bytes:
    store = partition.task.models
    return write_exported(store.record(store.keys.slot(key)), TAKEN)


def feed(partition: Partition, values: list[bytes], key: str = "k") -> None:
    partition.feed(*(Record("controls", key.encode(), value) for value in values))


def answers(partition: Partition, key: str) -> list[Any]:
    documents = [{"id": f"q{n}", "features": {"x": n, "colour": "red"}} for n in range(10)]
    partition.instances(*documents, key=key)
    return [
        (answer["label"], answer["probabilities"], answer["version"])
        for answer in partition.predictions[-10:]
    ]


def refused(partition: Partition) -> list[str]:
    assert {letter.reason for letter in partition.dead_letters} <= {"bad-control"}
    return [letter.message for letter in partition.dead_letters]


FILE = exported(learned())
PARTS = control_values(FILE, "one", size=-(-len(FILE) // 5))
OTHER = control_values(FILE, "two", size=-(-len(FILE) // 5))


def test_the_model_answers_elsewhere_what_it_answered_where_it_was() -> None:
    source, target = learned(), Partition(config(NEVER))
    feed(target, PARTS)
    assert refused(target) == []
    assert answers(target, "k") == answers(source, "m")
    counts = {name: n for name, n in target.counts.items() if name.split(".")[0] in ("controls", "models")}
    assert counts == {"controls.applied": 5, "models.created": 1, "models.imported": 1}
    assert [notice.text for notice in target.notices[-2:]] == [
        "import one: part 4 of 5 is here",
        "imported: the model of 'm', 200 labels learned",
    ]
    check(target.model("k"))


@pytest.mark.parametrize("spec", [ALWAYS, ALWAYS | FOREST], ids=["tree", "forest"])
def test_it_goes_on_learning_as_it_would_have_where_it_was(spec: dict[str, Any]) -> None:
    source, target = learned(spec=spec), Partition(config(NEVER))
    feed(target, control_values(exported(source), "one", size=-(-len(FILE) // 5)))
    assert refused(target) == []
    for partition, key in ((source, "m"), (target, "k")):
        for n in range(100):
            partition.instances({"id": f"n{n}", "features": {"x": n % 7}, "label": "new"}, key=key)
    ours, theirs = target.model("k"), source.model("m")
    assert ours.summary().expired == 1, "the request that was open there is closed"
    theirs.close(-4)
    assert ours.snapshot() == theirs.snapshot()


def test_the_last_part_is_an_event_of_the_model() -> None:
    target = Partition(config(NEVER))
    feed(target, PARTS[:-1])
    assert target.sent["model-events"] == []
    feed(target, PARTS[-1:])
    (event,) = target.sent["model-events"]
    assert (event.key, event.json["event"]) == (b"k", "imported")


def test_a_frozen_model_arrives_frozen() -> None:
    source, target = learned(), Partition(config(NEVER))
    source.control("freeze")
    feed(target, control_values(exported(source), "x", size=1 << 20))
    assert target.task.models.traits.frozen[target.task.models.keys.slot("k")]


def test_before_the_last_part_nothing_is_in_effect() -> None:
    target = Partition(config(NEVER, models_auto_create=False))
    feed(target, PARTS[:4])
    assert len(target.task.models.keys) == 0
    assert target.counts == {"controls.applied": 4}
    target.instances({"features": {"x": 1}}, key="k")
    assert [letter.reason for letter in target.dead_letters] == ["unknown-model"]


def test_a_model_that_is_there_is_replaced_only_on_request() -> None:
    target = Partition(config(ALWAYS))
    target.instances({"id": "p", "features": {"y": 1}}, key="k")
    before = target.model("k").snapshot()
    feed(target, PARTS)
    assert target.model("k").snapshot() == before
    assert len(refused(target)) == 5
    assert refused(target)[0] == "import: model 'k' exists; delete it, or import with replace"
    feed(target, control_values(FILE, "x", size=1 << 20, replace=True))
    assert target.model("k").schema.names == ("x", "colour")
    assert target.counts["pending.dropped"] == 1
    assert target.counts["models.created"] == 1
    assert answers(target, "k") == answers(learned(), "m")


def test_an_awaited_model_is_there_too() -> None:
    target = Partition(config(NEVER))
    target.control("create", key="k")
    feed(target, control_values(FILE, "x", size=1 << 20))
    assert len(target.task.models.keys) == 0
    feed(target, control_values(FILE, "y", size=1 << 20, replace=True))
    assert len(target.task.models.keys) == 1
    assert target.task.awaited == {}


@pytest.mark.parametrize(
    ("values", "says", "given_up", "imported"),
    [
        (PARTS[:2] + PARTS[3:], ["part 4 of 5: part 3 is missing", "part 5: no import 'one'"], 1, 0),
        (PARTS[1:], [f"part {n}: no import 'one' is under way; begin with" for n in (2, 3, 4, 5)], 0, 0),
        (PARTS[:3] + PARTS[2:], ["part 3 came twice; the first one is kept"], 0, 1),
        (PARTS[:1] + PARTS, ["part 1 came twice"], 0, 1),
        (PARTS[:3] + OTHER[:1] + PARTS[3:] + OTHER[1:], ["part 4: no import 'one'", "part 5: no"], 1, 1),
        (PARTS[:3] + OTHER[2:3] + PARTS[3:], ["part 3: no import 'two' is under way"], 0, 1),
        (PARTS + PARTS[4:], ["model 'k' exists"], 0, 1),
    ],
    ids=["missing", "first-missing", "double", "first-double", "interleaved", "astray", "last-double"],
)
def test_what_breaks_the_order_is_refused(
    values: list[bytes], says: list[str], given_up: int, imported: int
) -> None:
    for at_once in (True, False):
        target = Partition(config(NEVER))
        if at_once:
            feed(target, values)
        else:
            for value in values:
                feed(target, [value])
        messages = refused(target)
        assert len(messages) == len(says)
        for message, expected in zip(messages, says, strict=True):
            assert message.startswith(f"import: {expected}")
        assert target.counts.get("imports.given-up", 0) == given_up
        assert target.counts.get("models.imported", 0) == imported
        assert target.counts["controls.dead-letter"] == len(says)
        assert target.counts.get("controls.applied", 0) == len(values) - len(says)


def changed(value: bytes, **members: Any) -> bytes:
    return orjson.dumps(orjson.loads(value) | members)


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({"crc": 1}, "part 2 does not match its crc; import the file again"),
        ({"data": "AAAA"}, "part 2 does not match its crc"),
        ({"data": "AA*A"}, "data='…' must be a part of an exported model in base64"),
        ({"data": ""}, "must be a part of an exported model in base64"),
        ({"data": 5}, "must be a part of an exported model in base64"),
        ({"part": 0}, "part='0' must be a whole number from 1 to 5"),
        ({"part": 6}, "part='6' must be a whole number from 1 to 5"),
        ({"part": True}, "part='True' must be a whole number"),
        ({"parts": "5"}, "parts='5' must be a whole number"),
        ({"parts": 4}, "part 2 of 4: parts must be 5; import the file again"),
        ({"crc": -1}, "crc='-1' must be a whole number"),
        ({"id": ""}, "id='' must be a string of 1 to 64 characters"),
        ({"id": 7}, "id='7' must be a string of 1 to 64 characters"),
        ({"replace": "yes"}, "replace='yes' must be true or false"),
        ({"url": "x"}, "member 'url' is unknown; known: id, part, parts, crc, data, replace"),
    ],
)
def test_a_damaged_part_is_refused_and_says_what_is_wrong(members: dict[str, Any], says: str) -> None:
    target = Partition(config(NEVER))
    feed(target, [PARTS[0], changed(PARTS[1], **members), *PARTS[2:]])
    assert says in refused(target)[0]
    assert "models.imported" not in target.counts
    assert len(target.task.models.keys) == 0
    feed(target, OTHER)
    assert target.counts["models.imported"] == 1


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"no file at all, but as long as one", "it is no exported model"),
        (FILE[:-9] + b"x" + FILE[-8:], "must match its checksum"),
        (model_file.wrap({"key": "k"}, model_file.unwrap(FILE).snapshot), "cannot be understood: KeyError"),
        (
            model_file.wrap(
                model_file.unwrap(FILE).head | {"known_classes": 9}, model_file.unwrap(FILE).snapshot
            ),
            "head must fit its snapshot",
        ),
        (
            model_file.wrap(
                model_file.unwrap(FILE).head | {"known_classes": 1}, model_file.unwrap(FILE).snapshot
            ),
            "head must fit its snapshot",
        ),
        (
            model_file.wrap(model_file.unwrap(FILE).head | {"open": True}, model_file.unwrap(FILE).snapshot),
            "head must fit its snapshot",
        ),
    ],
)
def test_a_file_that_is_none_is_refused_with_its_last_part(data: bytes, says: str) -> None:
    target = Partition(config(NEVER))
    feed(target, control_values(data, "x", size=-(-len(data) // 2)))
    assert len(refused(target)) == 1
    assert says in refused(target)[0]
    assert target.counts == {"controls.applied": 1, "controls.dead-letter": 1}


def test_words_that_break_an_invariant_are_not_let_in() -> None:
    """Kernels trust the words: a tree whose nodes point anywhere would end every worker that gets it."""
    model = Model.restore(model_file.unwrap(FILE).snapshot)
    tree = model.first
    model.ints[tree : tree + 40] = model.ints[tree : tree + 40][::-1].copy()
    with pytest.raises(Exception, match=r"must|cannot be understood"):
        read_exported(model_file.wrap(model_file.unwrap(FILE).head, model.snapshot()))


def test_there_must_be_room_for_the_model() -> None:
    target = Partition(config(NEVER, models_max_count=1))
    target.instances({"features": {"y": 1}}, key="other")
    feed(target, PARTS)
    assert [letter.reason for letter in target.dead_letters] == ["too-many-models"]
    assert len(target.task.models.keys) == 1


def test_unfinished_imports_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "MAX_BYTES", len(FILE))
    target = Partition(config(NEVER))
    feed(target, PARTS[:4], key="a")
    feed(target, OTHER[:4], key="b")
    feed(target, PARTS[4:], key="a")
    feed(target, OTHER[4:], key="b")
    assert refused(target) == ["import: part 5: no import 'one' is under way; begin with part 1"]
    assert target.counts["imports.given-up"] == 1
    assert target.task.models.keys[0] == "b"


def test_what_has_come_survives_a_snapshot() -> None:
    target = Partition(config(NEVER))
    feed(target, OTHER[:2], key="other")
    units: dict[UnitName, Unit] = {}
    for number in range(5):
        cut = target.task.cut()
        units |= {unit.name: unit for unit in cut.units()}
        units = {name: unit for name, unit in units.items() if name not in cut.removed}
        cut.done()
        again = Task.from_units(PARTITION, target.task.config, None, units.values())
        assert again.digest() == target.task.digest()
        target.task = again
        feed(target, PARTS[number : number + 1])
    assert target.counts["models.imported"] == 1
    assert refused(target) == []


def test_a_run_that_fails_leaves_the_parts_as_they_were() -> None:
    target = Partition(config(NEVER, processing_exception_handler="dead-letter"))
    feed(target, PARTS[:2])
    before = target.task.digest()
    feed(target, PARTS[2:])
    target.task.rollback()
    assert target.task.digest() == before
    assert len(target.task.models.keys) == 0
    target.task.checkpoint()
    feed(target, PARTS[2:])
    assert len(target.task.models.keys) == 1


def test_an_import_in_the_place_of_a_model_is_undone_with_its_run() -> None:
    target = Partition(config(ALWAYS, processing_exception_handler="dead-letter"))
    target.feed(instance({"id": "p", "features": {"y": 1}, "label": "a"}, key="k"))
    before = target.task.digest()
    feed(target, control_values(FILE, "x", size=1 << 20, replace=True))
    target.task.rollback()
    assert target.task.digest() == before


def test_the_cut_of_a_run_does_not_matter() -> None:
    values = PARTS[:3] + OTHER + PARTS[3:]
    digests = set()
    for seed in range(5):
        draw, target, at = random.Random(seed), Partition(config(NEVER)), 0
        while at < len(values):
            n = draw.randrange(1, 4)
            feed(target, values[at : at + n])
            at += n
        target.task.next = {}
        digests.add(target.task.digest())
    assert len(digests) == 1


def crafted(name: str, changes: list[tuple[int, int]]) -> bytes:
    """Return the file of a model with some words that no learner wrote, and checksums that match."""
    made = models.make(name)
    words = mutate.apply(mutate.words_of(made), changes)
    known = made.schema.n_classes
    head = {"key": "k", "known_classes": known, "open": False, "frozen": False, "taken": {}}
    return model_file.wrap(head, mutate.wrapped(made, words))


@pytest.mark.parametrize("what", ["word", "head", "deep head", "no object", "deep schema"])
def test_a_file_that_somebody_made_up_is_a_dead_letter(what: str) -> None:
    """Checksums are no secret: the partition goes on, and no kernel sees what the file says."""
    body = model_file.unwrap(FILE).snapshot
    data = {
        "word": lambda: crafted("numeric", [(offset(ModelHeader, "records"), -1)]),
        "head": lambda: framed(b"{", body),
        "deep head": lambda: framed(b"[" * 200_000, body),
        "no object": lambda: framed(b"[]", body),
        "deep schema": lambda: framed(b"{}", with_schema(body, b"[" * 200_000)),
    }[what]()
    target = Partition(config(NEVER))
    feed(target, control_values(data, "one", size=1 << 20))
    assert len(refused(target)) == 1
    assert len(target.task.models.keys) == 0
    target.instances({"features": {"x": 1}}, key="k")
    assert len(target.predictions) == 1


def framed(head: bytes, body: bytes) -> bytes:
    return model_file.FRAME.seal(head, (body,))


def with_schema(body: bytes, schema: bytes) -> bytes:
    """Return a snapshot with another text for its schema."""
    fields = list(snapshot._FIXED.unpack_from(body))
    texts = body[snapshot._FIXED.size :][: fields[3] + fields[4]] + schema
    fields[5], fields[6] = len(schema), 0
    data = snapshot._FIXED.pack(*fields) + texts
    data += bytes(-len(data) % 8)
    return data + struct.pack("<I", zlib.crc32(data))


def test_a_poisoned_model_in_a_snapshot_is_refused_too() -> None:
    """What a release without these checks let in lies in its snapshots: a restore refuses it."""
    source = learned()
    cut = source.task.cut()
    units = list(cut.units())
    cut.done()
    name = next(unit.name for unit in units if unit.name.kind == "model")
    record = source.task.models.record(source.task.models.keys.slot("m"))
    ints = record.ints.copy()
    ModelHeader.over(ints).evaluation(record.plan.record).next = 1 << 42
    facts, _ = unseal(next(unit for unit in units if unit.name == name))
    bad = seal(name, facts, [Model(record.plan, ints).snapshot()])
    with pytest.raises(DamagedStateError, match="the position in the window must follow"):
        Task.from_units(
            PARTITION, source.task.config, None, [bad if unit.name == name else unit for unit in units]
        )
