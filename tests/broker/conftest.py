"""The shared broker's address, and producers that end with their test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import Broker


@pytest.fixture
def kafka(broker: Broker) -> dict[str, Any]:
    return {"bootstrap.servers": broker.bootstrap_servers}


@pytest.fixture
def producers() -> Iterator[list[Any]]:
    """Producers that are closed after the test."""
    opened_here: list[Any] = []
    yield opened_here
    for producer in opened_here:
        producer.close()
