"""Classes of one run: which a model knows at each row, what new ones lead to, how answers name them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamapp.worker.task.instances.run import _known_before
from tests.topology.partition import NEVER, Partition, Record, config, instance
from tests.unit.topics.codecs.samples import stream
from topics.codecs import decode_predictions, encode_instances
from topics.columns.records import Features


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(-1, 4)), min_size=1, max_size=60),
    st.lists(st.integers(0, 3), min_size=6, max_size=6),
)
def test_a_class_is_known_behind_the_row_that_taught_it(rows: list[tuple[int, int]], knew: list[int]) -> None:
    model = np.array([slot for slot, _ in rows], dtype=np.int64)
    code = np.array([code for _, code in rows], dtype=np.int32)
    now = list(knew)
    expected = []
    for slot, learned in rows:
        expected.append(now[slot])
        now[slot] = max(now[slot], learned + 1)
    known = np.array(knew, dtype=np.int32)[model]
    assert _known_before(model, known, code).tolist() == expected


def test_every_row_of_a_refused_class_is_refused_and_no_other() -> None:
    partition = Partition(config(NEVER, models_max_classes=2))
    rows = [("a", "x"), ("b", "x"), ("a", "y"), ("a", "z"), ("b", "z"), ("a", "z"), ("b", "y"), ("a", "x")]
    partition.feed(*(instance({"features": {"f": 1}, "label": name}, key=key) for key, name in rows))
    assert partition.counts["instances.dead-letter"] == 3
    assert [letter.reason for letter in partition.dead_letters] == ["too-many-classes"] * 3
    schemas = {
        key: partition.task.models.traits.schema(slot).classes
        for key, slot in partition.task.models.keys.names()
    }
    assert schemas == {"a": ("x", "y"), "b": ("x", "z")}


def two_orders() -> Partition:
    """Return a partition whose two models met their classes in opposite orders."""
    partition = Partition(config(NEVER))
    for key, names in (("m", "ba"), ("n", "ab")):
        for name, x in zip(names, (1.0, 9.0), strict=True):
            partition.feed(*(instance({"features": {"x": x}, "label": name}, key=key) for _ in range(3)))
    partition.sent.clear()
    return partition


def test_answers_of_models_with_the_same_classes_are_one_group_in_the_order_of_the_names() -> None:
    partition = two_orders()
    effects = partition.feed(*(instance({"features": {"x": 1.0}}, key=key) for key in "mnmn"))
    (answers,) = effects.answers
    assert answers.predictions.classes == ("a", "b")
    assert [document["label"] for document in partition.predictions] == ["b", "a", "b", "a"]
    assert [list(document["probabilities"]) for document in partition.predictions] == [["a", "b"]] * 4
    for document in partition.predictions:
        shares = document["probabilities"]
        assert shares[document["label"]] == pytest.approx(max(shares.values()))
        assert sum(shares.values()) == pytest.approx(1.0, abs=1e-3)


def test_models_that_know_fewer_classes_are_answered_apart_and_in_order() -> None:
    partition = two_orders()
    partition.feed(instance({"features": {"x": 1.0}, "label": "b"}, key="o"))
    partition.sent.clear()
    effects = partition.feed(*(instance({"features": {"x": 1.0}}, key=key) for key in "nomnpo"))
    assert {each.predictions.classes for each in effects.answers} == {("a", "b"), ("b",), ()}
    assert len(effects.answers) == 3
    assert [document["label"] for document in partition.predictions] == ["a", "b", "b", "a", None, "b"]
    assert [document["id"] for document in partition.predictions] == [
        f"3-{offset}" for offset in range(13, 19)
    ]


def test_blocks_name_their_classes_in_the_order_of_the_names_too() -> None:
    partition = two_orders()
    block = encode_instances(Features.of(("x",), np.array([[1.0], [9.0]])), format="arrow")[0]
    partition.feed(Record("instances", b"m", block), Record("instances", b"n", block))
    received = decode_predictions([sent.value for sent in partition.sent["predictions"] if sent.value])
    assert received.labels == ["b", "a", "a", "b"]
    assert [list(shares) for shares in received.probabilities] == [["a", "b"]] * 4
    assert [max(shares, key=shares.__getitem__) for shares in received.probabilities] == received.labels


@pytest.mark.parametrize("label", [["1", "0", None, "1"], [1, 0, None, 1], [1.0, 0.0, None, 1.0]])
def test_labels_of_blocks_as_strings_and_numbers_are_the_same_classes(label: list[object]) -> None:
    partition = Partition(config(NEVER))
    column = pa.array(label)
    values = [
        stream(pa.table({"x": [1.0, 2.0, 3.0, 4.0], "label": each}))
        for each in (column, column.dictionary_encode())
    ]
    partition.feed(*(Record("instances", b"m", value) for value in values))
    assert partition.counts["instances.labelled"] == 6
    assert partition.task.models.traits.schema(0).classes == ("1", "0")


def test_empty_and_unreadable_blocks_among_good_ones_change_nothing_for_these() -> None:
    good = encode_instances(Features.of(("x",), np.array([[1.0], [2.0]])), format="arrow", labels=["a", "b"])[
        0
    ]
    other = encode_instances(Features.of(("y", "x"), np.array([[1.0, 2.0]])), format="arrow", labels=["b"])[0]
    partition = Partition(config(NEVER))
    values = [good, good[:-30], b"", other, b"\xff\xff\xff\xff\x00\x00\x00\x00", good]
    partition.feed(*(Record("instances", b"m", value) for value in values))
    received = decode_predictions([sent.value for sent in partition.sent["predictions"] if sent.value])
    assert received.ids == ["3-0-0", "3-0-1", "3-3-0", "3-5-0", "3-5-1"]
    assert len(partition.dead_letters) == 3
    assert partition.counts["instances.labelled"] == 5
