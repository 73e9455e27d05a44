"""Commands to the model of a key; what cannot be carried out is a dead letter that says what is possible."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.topology.partition import ALWAYS, NEVER, Partition, Record, config

SCHEMA = {
    "attributes": [{"name": "x"}, {"name": "colour", "kind": "nominal", "values": ["red", "blue"]}],
    "classes": ["no", "yes"],
}


def refused(partition: Partition) -> list[tuple[str, str]]:
    return [(letter.reason, letter.message) for letter in partition.dead_letters]


def test_create_with_spec_and_schema_makes_the_model() -> None:
    partition = Partition(config(NEVER, models_auto_create=False))
    partition.control("create", spec={"query": "always", "budget": {"limit": 0.5}}, schema=SCHEMA)
    assert partition.counts == {"controls.applied": 1, "models.created": 1}
    partition.instances({"features": {"colour": "blue", "x": 1}}, {"features": {"colour": "green", "x": 1}})
    assert partition.model().schema.classes == ("no", "yes")
    assert set(partition.predictions[0]["probabilities"]) == {"no", "yes"}
    assert len(partition.requests) == 1  # half of two
    assert partition.counts["features.unknown-values"] == 1  # green: the values are declared, and closed


def test_create_without_schema_waits_for_the_first_instance() -> None:
    partition = Partition(config(NEVER, models_auto_create=False))
    partition.control("create", spec={"query": "always", "budget": {"limit": 1.0}})
    assert len(partition.task.models.keys) == 0
    partition.instances({"features": {"a": 1}}, key="other")
    partition.instances({"features": {"a": 1}})
    assert refused(partition) == [
        ("unknown-model", "model 'other' is unknown; create it by a control, or set models.auto.create=true")
    ]
    assert partition.model().spec.query.name == "always"
    assert len(partition.requests) == 1


def test_a_reset_changes_the_spec_of_a_model_that_waits_for_its_first_instance() -> None:
    partition = Partition(config(NEVER, models_auto_create=False))
    partition.control("create", spec=NEVER)
    partition.control("reset", spec={"query": "always", "budget": {"limit": 1.0}})
    partition.instances({"features": {"a": 1}})
    assert refused(partition) == []
    assert partition.model().spec.query.name == "always"
    assert len(partition.requests) == 1


def test_create_of_a_model_that_exists_is_refused() -> None:
    partition = Partition(config(NEVER))
    partition.instances({"features": [1]})
    partition.control("create", schema=SCHEMA)
    partition.control("create", key="new")
    partition.control("create", key="new")
    assert [reason for reason, _ in refused(partition)] == ["bad-control", "bad-control"]
    assert "model 'm' exists; configure, reset or delete it" in refused(partition)[0][1]


def test_configure_changes_the_living_model() -> None:
    partition = Partition(config(NEVER))
    partition.instances({"features": [1], "label": "a"}, {"features": [1]})
    assert partition.requests == []
    partition.control("configure", spec={"query": "always", "budget": {"limit": 1.0}})
    partition.instances({"features": [1]})
    assert len(partition.requests) == 1
    assert partition.model().summary().labels == 1
    partition.control("configure", spec={"budget": {"limit": 0.01}})
    partition.instances({"features": [1]})
    assert len(partition.requests) == 1
    assert partition.model().spec.query.name == "always"


def test_configure_keeps_the_weights_of_other_classes() -> None:
    """A class may be called name, which is the member of other parts that makes them different parts."""
    partition = Partition(config(NEVER | {"class_weights": {"name": 2.0, "rare": 3.0}}))
    partition.instances({"features": [1], "label": "rare"})
    partition.control("configure", spec={"class_weights": {"name": 5.0}})
    assert dict(partition.model().spec.class_weights) == {"name": 5.0, "rare": 3.0}


def test_configure_of_what_the_tree_depends_on_is_refused() -> None:
    partition = Partition(config(NEVER))
    partition.instances({"features": [1], "label": "a"})
    before = partition.model().snapshot()
    partition.control("configure", spec={"learner": {"grace_period": 999}})
    ((reason, message),) = refused(partition)
    assert reason == "bad-control"
    assert "learner must stay as it is" in message
    assert partition.model().snapshot() == before


def test_configure_before_the_first_instance_changes_the_awaited_spec() -> None:
    partition = Partition(config(NEVER))
    partition.control("create", spec={"seed": 5})
    partition.control("configure", spec={"learner": {"grace_period": 77}})
    partition.instances({"features": [1]})
    assert partition.model().spec.learner.to_dict()["grace_period"] == 77
    assert partition.model().spec.seed == 5


def test_reset_begins_anew_and_forgets_what_was_pending() -> None:
    partition = Partition(config(ALWAYS))
    partition.instances({"features": {"x": 1}, "label": "a"}, {"features": {"x": 1}, "id": "p"})
    partition.control("reset")
    assert partition.model().summary().records == 0
    assert partition.model().schema.names == ("x",)
    partition.labels({"id": "p", "label": "a"})
    assert partition.counts["labels.early"] == 1
    assert partition.counts["pending.dropped"] == 1
    partition.instances({"features": {"x": 1, "y": 2}})
    assert partition.predictions[-1]["probabilities"] == {}
    assert partition.model().schema.names == ("x", "y")


def test_reset_with_spec_and_schema_takes_them() -> None:
    partition = Partition(config(NEVER))
    partition.instances({"features": [1], "label": "a"})
    partition.control("reset", spec={"learner": {"name": "h-tree", "grace_period": 55}}, schema=SCHEMA)
    assert partition.model().schema.names == ("x", "colour")
    assert partition.model().spec.learner.to_dict()["grace_period"] == 55
    partition.instances({"features": [1]})
    assert refused(partition)[0][0] == "wrong-schema"


def test_a_reset_without_room_keeps_the_spec_of_a_key_without_a_model() -> None:
    partition = Partition(config(NEVER, models_max_count=1))
    partition.control("create", spec={"learner": "majority-class"})
    partition.instances({"features": [1]}, key="other")
    partition.control("reset", schema=SCHEMA)
    assert [reason for reason, _ in refused(partition)] == ["too-many-models"]
    partition.control("delete", key="other")
    partition.instances({"features": [1]})
    assert partition.model().spec.learner.name == "majority_class"


def test_delete_forgets_the_model_and_a_new_one_may_come() -> None:
    partition = Partition(config(ALWAYS))
    partition.instances({"features": [1], "id": "p"})
    partition.control("delete")
    assert len(partition.task.models.keys) == 0
    assert partition.task.models.keys.quota.taken == 0
    partition.labels({"id": "p", "label": "a"})
    partition.instances({"features": {"other": 1}})
    assert partition.model().schema.names == ("other",)
    assert partition.counts["labels.early"] == 1
    assert partition.counts["models.deleted"] == 1


def test_commands_of_one_run_are_carried_out_in_their_order() -> None:
    partition = Partition(config(NEVER))
    commands: list[dict[str, Any]] = [
        {"command": "create", "schema": SCHEMA},
        {"command": "freeze"},
        {"command": "delete"},
        {"command": "create", "schema": {"attributes": [{"name": "only"}]}},
    ]
    partition.feed(*(Record("controls", b"m", orjson.dumps(command)) for command in commands))
    assert partition.counts["controls.applied"] == 4
    assert partition.model().schema.names == ("only",)
    assert not partition.task.models.traits.frozen[partition.task.models.keys.slot("m")]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"command": "import", "url": "s3://x"}, "member 'url' is unknown; known: id, part, parts, crc"),
        ({"command": "explode"}, "known: create, configure, freeze, reset, delete"),
        ({"command": "create", "shema": {}}, "member 'shema' is unknown; known: spec, schema"),
        ({"command": "create", "spec": {"learner": "h-treee"}}, "unknown learner 'h-treee'; known: "),
        (
            {"command": "create", "spec": {"query": {"name": "oracle"}}},
            "known: always, ask, boct_al, conf_tree",
        ),
        ({"command": "create", "spec": {"learner": {"grace_periode": 1}}}, "known: "),
        ({"command": "create", "spec": [1]}, "spec=[1] must be an object or the name of a preset"),
        ({"command": "create", "schema": {"classes": ["a"]}}, "attributes=null must be an array; write"),
        (
            {"command": "create", "schema": {"attributes": [{"name": "x", "kind": "text"}]}},
            "'numeric' or 'nominal'",
        ),
        ({"command": "configure", "spec": {"query": "never"}}, "model 'm' is unknown; create it"),
        ({"command": "delete"}, "model 'm' is unknown; create it"),
        ({"command": "reset"}, "model 'm' is unknown; create it"),
        ({"command": "freeze"}, "model 'm' is unknown; create it"),
    ],
)
def test_a_command_that_cannot_be_carried_out_says_what_is_possible(body: dict[str, Any], says: str) -> None:
    partition = Partition(config(NEVER))
    partition.feed(Record("controls", b"m", orjson.dumps(body)))
    ((reason, message),) = refused(partition)
    assert reason in ("bad-control", "unknown-command")
    assert says in message
    assert partition.counts == {"controls.dead-letter": 1}
    assert partition.task.awaited == {}


def with_attribute(**members: Any) -> dict[str, Any]:
    return {"attributes": [{"name": "a"} | members]}


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        (None, "schema=null must be an object with 'attributes'; leave it out"),
        ([1], "schema=[1] must be an object"),
        (SCHEMA | {"declared_values": ["q"]}, 'declared_values=["q"] is no member of a schema; known: attri'),
        (SCHEMA | {"declared_values": [[1]]}, "declared_values=[[1]] is no member of a schema; known: attri"),
        (SCHEMA | {"clases": ["a"]}, 'clases=["a"] is no member of a schema; known: attributes, classes'),
        (SCHEMA | {"classes": "xy"}, 'classes="xy" must be an array of class names; leave it out'),
        (SCHEMA | {"classes": None}, "classes=null must be an array of class names"),
        (SCHEMA | {"classes": ["a", ""]}, 'classes="" must be strings that are not empty, whole numbers'),
        (SCHEMA | {"classes": [0.5]}, "classes=0.5 must be strings that are not empty, whole numbers"),
        (SCHEMA | {"classes": [None]}, "classes=null must be strings that are not empty"),
        (SCHEMA | {"classes": [1, "1"]}, "must differ from each other"),
        (SCHEMA | {"classes_open": "no"}, 'classes_open="no" must be true or false'),
        (SCHEMA | {"open_attributes": 1}, "open_attributes=1 must be true or false"),
        (SCHEMA | {"max_classes": True}, "max_classes=True must be a whole number"),
        (SCHEMA | {"max_classes": 0}, "max_classes=0 must be at least 1"),
        ({"attributes": ["a"]}, 'attributes="a" must be made of objects; write {"name": "x"}'),
        ({"attributes": []}, "must hold at least one attribute"),
        (with_attribute(name=["a"]), 'name=["a"] must be a string that is not empty; write'),
        (with_attribute(name=None), "name=null must be a string that is not empty"),
        (with_attribute(name=""), 'name="" must be a string that is not empty'),
        (with_attribute(type="nominal"), 'type="nominal" is no member of an attribute; known: name, kind'),
        (with_attribute(kind=["nominal"]), "kind=[\"nominal\"] must be 'numeric' or 'nominal'"),
        (with_attribute(kind="nominal", values="xy"), 'values="xy" must be an array of strings'),
        (with_attribute(kind="nominal", values=[1]), "values=1 must be strings; quote the values"),
        (with_attribute(kind="nominal", open="no"), 'open="no" must be true or false'),
        (
            with_attribute(range=[1, 1]),
            "range=[1, 1] must be two numbers, the lower first, for attribute 'a'",
        ),
        (with_attribute(range=[0, True]), "range=[0, true] must be two numbers, the lower first"),
        (with_attribute(range="0-1"), 'range="0-1" must be two numbers, the lower first'),
        (
            with_attribute(kind="nominal", range=[0, 1]),
            "range=(0.0, 1.0) of attribute 'a' must be two finite",
        ),
        (with_attribute(open=True), "open=true must be false for the numeric attribute 'a'"),
        (
            with_attribute(kind="nominal", values=[1] * 262_145),
            "262,145 values take at least 4,194,320 bytes",
        ),
        (SCHEMA | {"classes": [None] * 65}, "classes must be at most max_classes=64, not 65"),
    ],
)
def test_a_schema_is_taken_as_it_stands_or_refused(schema: Any, says: str) -> None:
    partition = Partition(config(NEVER))
    partition.control("create", schema=schema)
    ((reason, message),) = refused(partition)
    assert reason == "bad-control"
    assert message.startswith("create: ")
    assert says in message
    assert partition.counts == {"controls.dead-letter": 1}
    assert len(partition.task.models.keys) == 0


def test_classes_are_named_as_labels_are() -> None:
    partition = Partition(config(NEVER))
    partition.control("create", schema={"attributes": [{"name": "x"}], "classes": [True, False, 1, 2.0, "b"]})
    assert partition.model().schema.classes == ("true", "false", "1", "2", "b")
    partition.instances({"features": [1], "label": True}, {"features": [1], "label": 1.0})
    assert partition.dead_letters == []
    assert partition.model().schema.classes == ("true", "false", "1", "2", "b")


DEEP = b"[" * 1000 + b"]" * 1000
DEEP_OBJECT = b'{"a":' * 1000 + b"1" + b"}" * 1000


@pytest.mark.parametrize("deep", [DEEP, DEEP_OBJECT])
@pytest.mark.parametrize(
    "body",
    [
        b'{"command":"create","spec":%s}',
        b'{"command":"create","schema":%s}',
        b'{"command":"create","spec":{"learner":%s}}',
        b'{"command":"create","schema":{"attributes":[{"name":%s}]}}',
        b'{"command":"configure","spec":%s}',
        b'{"command":"freeze","frozen":%s}',
        b'{"command":"reset","spec":%s}',
        b'{"command":%s}',
        b'{"command":"create","schemata":%s}',
    ],
)
def test_deep_nesting_is_a_dead_letter_and_changes_nothing(body: bytes, deep: bytes) -> None:
    partition = Partition(config(NEVER))
    partition.instances({"features": [1], "label": "a"})
    before = partition.model().snapshot()
    partition.feed(Record("controls", b"m", body % deep))
    ((reason, message),) = refused(partition)
    assert reason in ("bad-control", "wrong-type")
    assert "must be " in message or "is unknown; known: " in message
    assert len(message) < 300
    assert partition.model().snapshot() == before


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ('{"learner":' + "[" * 100_000 + "]" * 100_000 + "}", "nested at most 32 levels"),
        ('{"learner":' + "[" * 50 + "]" * 50 + "}", "nested at most 32 levels"),
        ('{"\\ud800": 1}', "\\ud800=1 is no part of a spec"),
        ('{"seed": 1' + "0" * 400 + "}", "seed=1"),
        ('{"budget": {"limit": 1' + "0" * 400 + "}}", "must be a finite number"),
        ("x" * 5000, "unknown learner"),
    ],
)
def test_a_spec_in_a_string_that_cannot_be_read_is_a_dead_letter(spec: str, says: str) -> None:
    partition = Partition(config(NEVER))
    partition.control("create", spec=spec)
    ((reason, message),) = refused(partition)
    assert reason == "bad-control"
    assert len(message) <= 1001
    assert says in message


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_frozen_must_be_true_or_false(value: Any) -> None:
    partition = Partition(config(NEVER))
    partition.instances({"features": [1]})
    partition.control("freeze", frozen=value)
    assert "must be true or false" in refused(partition)[0][1]


def test_a_null_control_is_a_dead_letter() -> None:
    partition = Partition(config(NEVER))
    partition.feed(Record("controls", b"m", None))
    assert refused(partition)[0][0] == "null-value"


def test_settings_fill_what_a_spec_leaves_open() -> None:
    partition = Partition(config(NEVER, evaluation_every=3, models_max_classes=7))
    partition.control("create", spec={"learner": "h-tree"}, schema=SCHEMA)
    assert partition.model().spec.evaluation.every == 3
    assert partition.model().schema.max_classes == 7
    partition.control("create", key="k", spec={"max_classes": 3, "evaluation": {"every": 0}}, schema=SCHEMA)
    assert (partition.model("k").spec.evaluation.every, partition.model("k").schema.max_classes) == (0, 3)


def test_what_was_done_is_said_with_key_and_offset() -> None:
    partition = Partition(config(NEVER))
    partition.control("create", schema=SCHEMA)
    partition.control("freeze")
    partition.control("freeze", frozen=False)
    partition.control("delete")
    assert [(notice.offset, notice.model) for notice in partition.notices] == [(i, "m") for i in range(4)]
    assert [notice.text.split(":")[0] for notice in partition.notices] == [
        "created",
        "frozen",
        "no longer frozen",
        "deleted",
    ]


def test_a_range_of_an_attribute_is_kept() -> None:
    partition = Partition(config(NEVER))
    partition.control("create", schema=with_attribute(range=[-1, 2.5]), key="a")
    assert partition.model("a").schema.attributes[0].range == (-1.0, 2.5)
