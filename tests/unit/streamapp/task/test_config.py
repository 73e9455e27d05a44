"""What a task is told by the settings."""

from __future__ import annotations

import dataclasses

import pytest

from core.errors import SpecError
from streamapp.settings import Settings
from streamapp.task.config import TaskConfig


def test_settings_and_defaults_agree() -> None:
    assert TaskConfig.from_settings(Settings()) == TaskConfig()


def test_every_setting_is_taken_over() -> None:
    changed = {
        "model_spec": '{"query":"never"}',
        "models_auto_create": False,
        "models_max_count": 5,
        "models_max_classes": 9,
        "evaluation_every": 11,
        "pending_keep": "all",
        "pending_max_bytes": 1 << 24,
        "pending_ttl_ms": 12_345,
        "event_time_max_jump_ms": 77,
        "processing_exception_handler": "dead-letter",
        "dead_letter_stacktrace": True,
    }
    found = TaskConfig.from_settings(Settings(**changed, record_max_bytes=4096, block_max_rows=3))
    assert {name: getattr(found, name) for name in changed} == changed
    assert (found.limits.record_max_bytes, found.limits.block_max_rows) == (4096, 3)
    assert set(changed) | {"limits"} == {field.name for field in dataclasses.fields(TaskConfig)}


def test_a_spec_keeps_what_it_says_and_takes_the_rest_from_the_settings() -> None:
    config = TaskConfig(evaluation_every=7, models_max_classes=3)
    assert config.spec("h-tree").evaluation.every == 7
    spec = config.spec({"evaluation": {"window": 5}, "max_classes": 2})
    assert (spec.evaluation.window, spec.evaluation.every, spec.max_classes) == (5, 7, 2)
    assert config.spec('{"evaluation": {"every": 0}}').evaluation.every == 0


@pytest.mark.parametrize("given", ["h-treee", "{nonsense", 5, None, {"evaluation": 3}, {"query": "nobody"}])
def test_a_spec_that_cannot_be_built_is_refused(given: object) -> None:
    with pytest.raises(SpecError):
        TaskConfig().spec(given)


def test_early_labels_wait_no_longer_than_instances() -> None:
    assert TaskConfig(pending_ttl_ms=10).early_hold_ms == 10
    assert TaskConfig().early_hold_ms == 600_000
