"""Families: which models are surveyed together, what of them, and when that is forgotten."""

from __future__ import annotations

import numpy as np
import pytest

from core.schema.schema import Attribute, Schema
from streamapp.worker.task.models import families
from streamapp.worker.task.models.families import Families, Surveyed

X, Y = Attribute("x"), Attribute("y")


class Models:
    """Schemas by slot, and the families of their models."""

    def __init__(self, *schemas: Schema | None) -> None:
        self.schemas = dict(enumerate(schemas))
        self.families = Families(self.schemas.__getitem__)
        self.families.reserve(len(schemas))

    def survey(self, key: list[int], label: list[int], *names: str) -> Surveyed | None:
        slots = np.array([*self.schemas], dtype=np.int64)
        columns = np.array(key, dtype=np.int32), [*names], np.array(label, dtype=np.int32)
        return self.families.survey(slots, *columns)


def schema(*classes: str, attributes: tuple[Attribute, ...] = (X, Y)) -> Schema:
    return Schema.of(attributes, classes)


def test_labels_get_the_codes_of_their_models() -> None:
    found = Models(schema("a", "b"), schema("b", "a")).survey([0, 1, 1, 0], [0, 0, -1, 1], "a", "b")
    assert found is not None
    assert found.model.tolist() == [0, 1, 1, 0]
    assert found.code.tolist() == [0, 1, -1, 1]
    assert found.labels == 3


def test_orders_of_the_same_classes_are_of_one_kind_which_says_where_each_class_is() -> None:
    found = Models(schema("b", "c", "a"), schema("a", "b", "c")).survey([0, 1], [-1, -1])
    assert found is not None
    assert found.kind is not None
    assert found.kind.classes == ("a", "b", "c")
    assert found.kind.moved
    first, second = found.order.tolist()
    assert found.kind.columns[first].tolist() == [2, 0, 1]
    assert found.kind.codes[first].tolist() == [1, 2, 0, -1]
    assert found.kind.columns[second].tolist() == [0, 1, 2]


def test_where_codes_would_be_many_the_models_of_a_run_are_looked_at_by_themselves() -> None:
    """Most lists of names are new: their codes for all orders that there are would take longer."""
    names = [f"c{number}" for number in range(10)]
    orders = [tuple(names[at:] + names[:at]) for at in range(10)]
    most = families.MAX_CODED // (len(names) + 1)
    few = [schema(*orders[number % 10]) for number in range(most)]
    assert Models(*few).survey([0], [0], *names) is not None, "class orders count, not models"
    many = [schema(*orders[number % 10], f"own-{number}") for number in range(most + 1)]
    assert Models(*many[:most]).survey([0], [0], *names) is not None
    assert Models(*many).survey([0], [0], *names) is None
    assert Models(*many).survey([0], [0], "c1") is not None


def test_models_with_other_classes_are_of_several_kinds() -> None:
    found = Models(schema("a", "b"), schema("a", "b", "c")).survey([0, 1], [0, 0], "b")
    assert found is not None
    assert found.kind is None
    assert found.code.tolist() == [1, 1]


@pytest.mark.parametrize(
    "models",
    [
        pytest.param(Models(schema("a"), None), id="something special about one"),
        pytest.param(Models(schema("a"), schema("a", attributes=(X,))), id="other columns"),
        pytest.param(Models(schema("a"), schema("b")), id="a class that one does not know"),
    ],
)
def test_all_models_must_be_of_one_family_and_know_all_classes(models: Models) -> None:
    for _ in range(2):  # what was found the first time holds the second time
        assert models.survey([0, 1], [0, 0], "a") is None


def test_a_model_that_is_not_there_is_of_no_family() -> None:
    found = Models(schema("a")).families.survey(
        np.array([-1]), np.zeros(1, np.int32), ["a"], np.zeros(1, np.int32)
    )
    assert found is None


def test_what_has_changed_is_looked_at_again() -> None:
    models = Models(schema("a"), schema("a"))
    assert models.survey([0, 1], [0, 0], "a") is not None
    models.schemas[1] = None
    assert models.survey([0, 1], [0, 0], "a") is not None
    models.families.forget(1)
    assert models.survey([0, 1], [0, 0], "a") is None
    models.schemas[1] = schema("b", "a")
    models.families.forget(np.array([0, 1]))
    found = models.survey([0, 1], [0, 0], "a")
    assert found is not None
    assert found.code.tolist() == [0, 1]


def test_what_is_kept_is_bounded_and_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(families, "MAX_CELLS", 8)
    monkeypatch.setattr(families, "MAX_CODES", 2)
    models = Models(schema("a"))
    for number in range(20):
        models.schemas[0] = schema("a", f"b{number}")
        models.families.forget(0)
        for name in (f"b{number}", "a"):
            found = models.survey([0], [0], name)
            assert found is not None
            assert found.code.tolist() == [int(name != "a")]
            assert found.kind is not None
            assert found.kind.classes == ("a", f"b{number}")


def test_there_is_room_for_any_slot() -> None:
    models = Models(*[schema("a", f"b{number % 5}") for number in range(100)])
    models.families.reserve(100)
    found = models.survey([*range(100)], [0] * 100, "a")
    assert found is not None
    assert found.model.tolist() == [*range(100)]
