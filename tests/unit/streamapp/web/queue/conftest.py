"""A label queue in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from streamapp.web.queue.label_queue import LabelQueue
from streamapp.web.store import Store
from tests.unit.streamapp.web.queue.requests import TERMS


@pytest.fixture
def queue() -> Iterator[LabelQueue]:
    store = Store(":memory:")
    yield LabelQueue(store, TERMS)
    store.close()
