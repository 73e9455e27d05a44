"""Scripted producers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.topics.producing.idempotent.delivery_rig import Rig


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    made = Rig(monkeypatch)
    yield made
    for producer in made.producers:
        producer.close()
