"""Feature values in the columns of their models' schemas."""

from __future__ import annotations

import numpy as np
import pytest

from core.schema.schema import MAX_VALUES, Attribute, Schema
from core.spec import Spec
from streamapp.worker.task.models.model_store import ModelStore
from streamapp.worker.task.models.quota import ModelQuota
from streamapp.worker.task.models.schemas.feature_placement import Grown, Placement, named
from streamapp.worker.task.models.schemas.schema_inference import infer_schema
from topics.columns.records import Features
from topics.errors import Reason

NUMERIC = Schema.of([Attribute("a"), Attribute("b")])
NOMINAL = Schema.of([Attribute("c", "nominal", ("red", "2"), open=True), Attribute("a")])


def placement_of(*schemas: Schema) -> Placement:
    store = ModelStore(ModelQuota(100))
    for number, schema in enumerate(schemas):
        store.create(f"k{number}", Spec.parse(None), schema)
    return Placement(store.traits, store.growth)


def place(placement: Placement, features: list[Features], model: list[int], width: int = 2):
    slots = np.array(model, dtype=np.int64)
    parts, flaws = placement.parts(features, slots)
    placed = placement.place(parts, len(model), width)
    placement.grow_values(placed, slots)
    return placed, flaws


def test_columns_in_schema_order_go_through_as_they_are() -> None:
    values = np.array([[1.0, 2.0], [3.0, np.nan]])
    placed, _ = place(placement_of(NUMERIC), [Features.of(("a", "b"), values)], [0, 0])
    assert placed.x is not None
    assert np.shares_memory(placed.x, values)


def test_names_in_another_order_missing_and_unknown_ones() -> None:
    features = [
        Features(("b", "a"), np.array([0, 2]), np.array([[1.0, 2.0], [3.0, 4.0]])),
        Features(("b", "z"), np.array([1]), np.array([[5.0, 9.0]])),
    ]
    placed, _ = place(placement_of(NUMERIC), features, [0, 0, 0])
    assert np.array_equal(placed.x, np.array([[2, 1], [np.nan, 5], [4, 3]]), equal_nan=True)


def test_each_row_goes_to_the_columns_of_its_own_model() -> None:
    values = np.array([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]])
    other = Schema.of([Attribute("b"), Attribute("x"), Attribute("a")])
    placed, _ = place(placement_of(NUMERIC, other), [Features.of(("a", "b"), values)], [0, 1, -1], width=3)
    expected = [[1, 2, np.nan], [2, np.nan, 1]]  # the third row has no model, and no place
    assert np.array_equal(placed.x[:2], expected, equal_nan=True)


def test_arrays_must_have_a_value_for_each_attribute() -> None:
    features = [Features.of(None, np.array([[1.0, 2.0, 3.0]]))]
    _, flaws = place(placement_of(NUMERIC), features, [0])
    assert flaws == {
        0: (Reason.WRONG_SCHEMA, "features has 3 values; it must have 2, one per attribute of the model")
    }


def test_nominal_cells_become_codes_and_new_values_of_open_attributes_get_one() -> None:
    strings: dict[int, list[str | None]] = {0: ["red", "blue", None, None, "blue"]}
    values = np.array([[np.nan, 1], [np.nan, 1], [2, 1], [np.nan, 1], [np.nan, 1]])
    placement = placement_of(NOMINAL)
    placed, _ = place(placement, [Features.of(("c", "a"), values, strings)], [0] * 5)
    assert np.array_equal(placed.x[:, 0], [0, 2, 1, np.nan, 2], equal_nan=True)
    assert placement._traits.schema(0).attributes[0].values == ("red", "2", "blue")


def test_values_of_a_closed_attribute_stay_unknown() -> None:
    closed = Schema.of([Attribute("c", "nominal", ("red",)), Attribute("a")])
    strings: dict[int, list[str | None]] = {0: ["red", "blue"]}
    placement = placement_of(closed)
    slots = np.zeros(2, dtype=np.int64)
    parts, _ = placement.parts([Features.of(("c", "a"), np.full((2, 2), np.nan), strings)], slots)
    placed = placement.place(parts, 2, 2)
    assert placement.grow_values(placed, slots) == (1, [])
    assert placed.x[:, 0].tolist() == [0, -1]


def test_a_string_in_a_numeric_column_is_a_flaw_of_its_row_alone() -> None:
    strings: dict[int, list[str | None]] = {0: [None, "three"]}
    features = [Features.of(("a", "b"), np.array([[1.0, 2.0], [np.nan, 2.0]]), strings)]
    placed, _ = place(placement_of(NUMERIC), features, [0, 0])
    assert placed.flaws == {1: (Reason.WRONG_SCHEMA, "feature 'a' must be a number; got the string 'three'")}


@pytest.mark.parametrize(
    ("value", "name"), [(1.0, "1"), (-0.0, "0"), (0.5, "0.5"), (1e300, str(int(1e300))), (np.nan, None)]
)
def test_a_number_names_a_nominal_value_by_its_digits(value: float, name: str | None) -> None:
    assert named(np.array([value]), None) == [name]


def test_a_string_and_a_number_with_the_same_digits_are_the_same_value() -> None:
    assert named(np.array([3.0, np.nan]), [None, "3"]) == ["3", "3"]


def test_the_first_record_gives_the_schema() -> None:
    strings: dict[int, list[str | None]] = {1: ["red"]}
    features = Features.of(("n", "s", "nothing"), np.array([[1.0, np.nan, np.nan]]), strings)
    schema = infer_schema(features, 0, 5)
    assert [(a.name, a.kind, a.open) for a in schema.attributes] == [
        ("n", "numeric", False),
        ("s", "nominal", True),
    ]
    assert (schema.open_attributes, schema.classes_open, schema.max_classes) == (True, True, 5)


def test_in_arrays_every_position_counts() -> None:
    schema = infer_schema(Features.of(None, np.array([[np.nan, 1.0]])), 0, 5)
    assert schema.names == ("f0", "f1")


def test_a_record_of_nulls_still_gives_a_schema() -> None:
    schema = infer_schema(Features.of(("a", "b"), np.full((1, 2), np.nan)), 0, 5)
    assert [a.kind for a in schema.attributes] == ["numeric", "numeric"]


def test_models_that_met_their_classes_in_another_order_share_one_matrix() -> None:
    values = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    grown = Schema.of(NUMERIC.attributes)
    one, other = grown.with_class("a").with_class("b"), grown.with_class("b").with_class("a")
    placement = placement_of(one, other)
    parts, _ = placement.parts([Features.of(("a", "b"), values)], np.array([0, 1, 0]))
    assert len(parts) == 1
    assert np.shares_memory(placement.place(parts, 3, 2).x, values)


def test_models_with_open_and_closed_attributes_are_apart() -> None:
    placement = placement_of(NUMERIC, Schema.of(NUMERIC.attributes, open_attributes=True))
    features = [Features.of(("a", "b", "new"), np.ones((2, 3)))]
    parts, _ = placement.parts(features, np.array([0, 1]))
    assert [part.rows.tolist() for part in parts] == [[0], [1]]
    assert list(placement.new_attributes(parts, np.arange(2, dtype=np.int32))) == [1]


def test_the_rows_of_a_record_bring_their_features_together_in_the_order_of_their_first_values() -> None:
    placement = placement_of(Schema.of(NUMERIC.attributes, open_attributes=True))
    nan = np.nan
    values = np.array(
        [[1.0, nan, nan, nan], [1.0, nan, 2.0, nan], [1.0, 3.0, 3.0, nan], [1.0, nan, nan, 4.0]]
    )
    features, record = [Features.of(("a", "p", "q", "r"), values)], np.array([0, 1, 1, 2], dtype=np.int32)
    parts, _ = placement.parts(features, np.zeros(4, dtype=np.int64))
    (brought,) = placement.new_attributes(parts, record).values()
    assert [(row, attribute.name) for row, attribute in brought] == [(1, "q"), (1, "p"), (3, "r")]
    placement.max_attributes = len(NUMERIC.attributes) + 1
    (brought,) = placement.new_attributes(parts, record).values()
    assert [(row, attribute.name) for row, attribute in brought] == [(1, "q")]


def test_an_attribute_says_when_it_has_taken_in_its_last_value() -> None:
    placement = placement_of(Schema.of([Attribute("c", "nominal", (), open=True), Attribute("a")]))

    def grow(first: int, n: int) -> Grown:
        strings: dict[int, list[str | None]] = {0: [f"v{first + i}" for i in range(n)]}
        slots = np.zeros(n, dtype=np.int64)
        parts, _ = placement.parts([Features.of(("c", "a"), np.full((n, 2), np.nan), strings)], slots)
        return placement.grow_values(placement.place(parts, n, 2), slots)

    assert grow(0, MAX_VALUES - 1) == (0, [])
    assert grow(MAX_VALUES - 2, 6) == (4, [(1, "c")])
    assert grow(MAX_VALUES + 2, 2) == (2, [])
