"""Specs of keys that await their first instance: in the order in which they came, also after a rollback."""

from __future__ import annotations

from core.spec import Spec
from streamapp.worker.task.models.awaited_specs import AwaitedSpecs

FIRST, SECOND = Spec.parse(None), Spec.parse({"query": "never"})


def test_a_rollback_restores_the_specs_and_their_order() -> None:
    awaited = AwaitedSpecs()
    awaited.put("a", FIRST)
    awaited.put("b", FIRST)
    awaited.checkpoint()
    awaited.put("a", SECOND)
    awaited.put("c", SECOND)
    awaited.discard("b")
    assert [*awaited.items()] == [("a", SECOND), ("c", SECOND)]
    awaited.rollback()
    assert [*awaited.items()] == [("a", FIRST), ("b", FIRST)]


def test_the_removal_of_a_key_without_spec_changes_nothing() -> None:
    awaited = AwaitedSpecs()
    awaited.put("a", FIRST)
    awaited.discard("nobody")
    assert awaited == {"a": FIRST}
