"""A worker and the topics of feature acquisition: both, none, or half of them."""

from __future__ import annotations

import pytest

from streamapp.errors import SettingsError
from streamapp.settings import Settings
from streamapp.worker import worker
from topics.clients import admin
from topics.clients.admin.differences import TopicDifference

BOTH = ("grove.feature-requests", "grove.feature-values")


def begun(monkeypatch: pytest.MonkeyPatch, *missing: str, **settings: str) -> tuple[int, bool]:
    found = [
        TopicDifference(name, "missing", "no such topic", "a topic", f"topic {name!r} is missing")
        for name in missing
    ]

    class Four:
        def __init__(self, _: object) -> None:
            pass

        def partition_count(self, _: str) -> int:
            return 4

    monkeypatch.setattr(admin, "check", lambda *_: found)
    monkeypatch.setattr(worker, "Cluster", Four)
    return worker.check_topics(Settings(**settings))  # type: ignore[arg-type]


def test_with_both_models_may_acquire_features(monkeypatch: pytest.MonkeyPatch) -> None:
    assert begun(monkeypatch) == (4, True)


def test_with_none_a_worker_warns_and_runs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert begun(monkeypatch, *BOTH) == (4, False)
    assert "feature-values' is missing" in caplog.text


def test_with_half_of_them_no_worker_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match="feature-values' is missing"):
        begun(monkeypatch, "grove.feature-values")


def test_other_topics_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match=r"grove\.labels' is missing$"):
        begun(monkeypatch, *BOTH, "grove.labels")


def test_a_default_model_that_buys_needs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = '{"learner": "h-tree", "acquire": "path"}'
    with pytest.raises(SettingsError, match="grove topics create"):
        begun(monkeypatch, *BOTH, model_spec=spec)
    assert begun(monkeypatch, model_spec=spec) == (4, True)


def test_a_worker_does_without_the_topic_of_the_web_application(monkeypatch: pytest.MonkeyPatch) -> None:
    assert begun(monkeypatch, "grove.audit") == (4, True)
