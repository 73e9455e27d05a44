"""What a task is told by the settings."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

import pytest

from core.errors import SpecError
from streamapp.settings import Settings
from streamapp.worker.task.task_config import TaskConfig
from topics.codecs import Limits


def test_settings_and_defaults_agree() -> None:
    assert TaskConfig.from_settings(Settings()) == TaskConfig()


def test_every_setting_is_taken_over() -> None:
    changed: dict[str, Any] = {
        "model_spec": '{"query":"never"}',
        "models_auto_create": False,
        "models_max_count": 5,
        "models_max_classes": 9,
        "models_max_attributes": 17_000,
        "evaluation_every": 11,
        "pending_keep": "all",
        "pending_max_bytes": 1 << 24,
        "pending_ttl_ms": 12_345,
        "event_time_max_jump_ms": 77,
        "processing_exception_handler": "dead-letter",
        "dead_letter_stacktrace": True,
    }
    found = TaskConfig.from_settings(
        Settings(**changed, record_max_bytes=4096, block_max_rows=3, text_max_bytes=99)
    )
    assert {name: getattr(found, name) for name in changed} == changed
    assert found.limits == Limits(4096, 3, text_max_bytes=99, features_max=17_000)
    assert set(changed) | {
        "limits",
        "state_version",
        "features",
        "episodes_max_count",
        "episodes_max_bytes",
        "schemas",
    } == {field.name for field in dataclasses.fields(TaskConfig)}


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


@pytest.mark.parametrize("text", ["[1]", ' ["h-tree"]', '"h-tree"', "[", "{"])
def test_a_spec_that_is_json_but_no_object_is_not_taken_for_a_name(text: str) -> None:
    with pytest.raises(SpecError, match=f"spec={re.escape(repr(text))} must be a JSON object or the name"):
        TaskConfig().spec(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"limits":' + "[" * 100_000, "must be JSON: it is nested too deeply"),
        ("{", "must be JSON"),
        ("[]", "must be a JSON object"),
        ('{"newer": 1}', "a newer release wrote it"),
    ],
)
def test_what_the_journal_cannot_have_meant_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"task configuration.*{reason}"):
        TaskConfig.from_json(text)


def test_what_was_no_limit_when_it_was_written_is_none_in_a_replay() -> None:
    body = json.loads(TaskConfig().to_json())
    for name in ("text_max_bytes", "features_max"):
        del body["limits"][name]
    del body["models_max_attributes"]
    old = TaskConfig.from_json(json.dumps(body))
    assert old.limits.text_max_bytes >= old.limits.record_max_bytes
    assert old.limits.features_max >= old.limits.record_max_bytes
    assert old.models_max_attributes >= old.limits.record_max_bytes
    assert old.growth_max_attributes == 4096
    assert TaskConfig(models_max_attributes=9).growth_max_attributes == 9
