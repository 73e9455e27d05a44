"""Models by key: they come, grow, go, and come back when a run is undone."""

from __future__ import annotations

import numpy as np
import pytest

from core.schema.schema import Attribute, Schema
from core.spec import Spec
from streamapp.worker.task.models.model_keys import NO_MODEL
from streamapp.worker.task.models.model_store import ModelStore
from streamapp.worker.task.models.quota import ModelQuota

SPEC = Spec.parse(None)
SCHEMA = Schema.infer(("x", "y"), ("numeric", "numeric"))


def store_of(*keys: str, limit: int = 100) -> ModelStore:
    store = ModelStore(ModelQuota(limit))
    for key in keys:
        store.create(key, SPEC, SCHEMA)
    store.checkpoint()
    return store


def learn(store: ModelStore, slot: int, label: str) -> None:
    store.growth.grow(slot, store.traits.schema(slot).with_class(label))
    store.growth.adopt()
    code = store.traits.schema(slot).class_code(label)
    store.table.answer(np.array([slot]), np.zeros((1, 2)), np.array([code], dtype=np.int32), np.ones(1))


def test_models_are_found_by_key() -> None:
    store = store_of("a", "b")
    assert store.keys.slots(["b", "nobody", "a"]).tolist() == [1, NO_MODEL, 0]
    assert (store.keys.slot("a"), store.keys.slot("nobody"), len(store.keys)) == (0, NO_MODEL, 2)


def test_models_that_begin_alike_do_not_share_their_state() -> None:
    store = store_of("a", "b", "c")
    learn(store, 0, "x")
    assert store.cache.model(0).summary().labels == 1
    assert store.cache.model(1).summary().labels == 0
    assert store.cache.model(1).snapshot() == store.cache.model(2).snapshot()


def test_many_models_share_schema_and_plan() -> None:
    store = store_of(*(f"k{i}" for i in range(80)))
    assert len({id(store.cache.model(slot).plan) for slot in range(80)}) == 1
    assert store.traits.width[:80].tolist() == [2] * 80


def test_there_are_no_more_models_than_allowed_and_a_deleted_one_makes_room() -> None:
    store = store_of("a", "b", limit=2)
    assert store.create("c", SPEC, SCHEMA) == NO_MODEL
    store.delete(store.keys.slot("a"))
    slot = store.create("c", SPEC, SCHEMA)
    assert slot != 0  # the run may still be undone: the old model keeps its place until then
    store.checkpoint()
    store.delete(slot)
    store.checkpoint()
    assert store.create("d", SPEC, SCHEMA) in (0, slot)


def test_growth_reaches_the_model_in_one_step() -> None:
    store = store_of("a")
    learn(store, 0, "x")
    schema = store.traits.schema(0).with_class("y").with_attributes([Attribute("z")])
    store.growth.grow(0, schema)
    assert store.cache.model(0).schema is not schema
    store.growth.adopt()
    assert store.cache.model(0).schema is schema
    assert (store.traits.width[0], store.traits.n_classes[0], store.traits.known_classes[0]) == (3, 2, 0)
    assert store.growth.grown == set()


def test_an_undone_run_leaves_models_fresh_that_have_processed_nothing() -> None:
    """Their snapshot holds that; a restore passes over the record that failed, and finds them fresh."""
    store = store_of("a", "b", "c")
    store.undo.preserve([0, 1, 2])
    store.create("d", SPEC, SCHEMA)
    learn(store, 0, "x")
    store.delete(1)
    assert not any(store.growth.is_fresh(slot) for slot in range(3))
    store.rollback()
    assert [store.growth.is_fresh(slot) for slot in range(4)] == [True, True, True, False]
    store.checkpoint()
    learn(store, 0, "x")
    store.checkpoint()
    store.rollback()
    assert not store.growth.is_due


def test_rollback_brings_back_preserved_models_and_drops_new_ones() -> None:
    store = store_of("a", "b")
    learn(store, 0, "x")
    store.checkpoint()
    before = [store.cache.model(slot).snapshot() for slot in (0, 1)]
    store.undo.preserve([0, 1])
    learn(store, 0, "y")
    store.freeze(1, True)
    store.warn(1)
    store.create("c", SPEC, SCHEMA)
    store.delete(1)
    store.rollback()
    assert [store.cache.model(slot).snapshot() for slot in (0, 1)] == before
    assert store.keys.slots(["a", "b", "c"]).tolist() == [0, 1, NO_MODEL]
    assert (bool(store.traits.frozen[1]), [*store.warned], store.keys.quota.taken) == (False, [], 2)
    assert store.traits.schema(0).classes == ("x",)
    learn(store, 0, "y")
    assert store.cache.model(0).summary().labels == 2


def test_what_grew_without_reaching_its_model_is_undone_too() -> None:
    store = store_of("a")
    store.growth.grow(0, store.traits.schema(0).with_class("x"))
    store.rollback()
    assert store.traits.schema(0) is store.cache.model(0).schema
    assert store.traits.schema_uid[0] == store.cache.model(0).schema.uid


@pytest.mark.parametrize("n", [1, 40])
def test_a_configured_model_is_where_the_kernels_look(n: int) -> None:
    store = store_of(*(f"k{i}" for i in range(n)))
    spec = Spec.parse({"query": "always", "budget": {"limit": 1.0}})
    store.configure(n - 1, spec)
    asked = store.table.answer(
        np.array([n - 1]), np.zeros((1, 2)), np.array([-1], dtype=np.int32), np.ones(1)
    ).asked
    assert asked.tolist() == [True]
