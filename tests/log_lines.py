"""Lines of the log that a test looks at."""

from __future__ import annotations

import pytest


def lines_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the lines of a test, without those of aiokafka's clients: a client of an earlier test in the
    same process may still look for its broker.
    """
    return [record.getMessage() for record in caplog.records if not record.name.startswith("aiokafka")]
