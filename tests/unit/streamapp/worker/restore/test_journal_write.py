"""Records that a command writes into the journal: it returns when readers see them."""

import math
from types import SimpleNamespace
from typing import Any

import pytest

from streamapp.errors import NotYetError
from streamapp.worker.restore.journal_write import wait_until_seen
from topics.errors import BrokerError


def broker(*answers: bool | NotYetError) -> Any:
    """Return an identity whose requests for open transactions have these answers."""
    left = iter(answers)

    def has_open_transaction(_topic: str, _partition: int) -> bool:
        answer = next(left)
        if isinstance(answer, NotYetError):
            raise answer
        return answer

    return SimpleNamespace(has_open_transaction=has_open_transaction, left=left)


def test_requests_are_repeated_until_the_transaction_has_ended() -> None:
    here = broker(NotYetError("timed out"), True, False)
    wait_until_seen(here, "journal", 3, math.inf)
    assert not list(here.left)


@pytest.mark.parametrize(
    ("answer", "reason"), [(True, "another transaction is open"), (NotYetError("timed out"), "timed out")]
)
def test_the_error_after_the_time_limit_names_partition_and_reason(
    answer: bool | NotYetError, reason: str
) -> None:
    with pytest.raises(BrokerError, match=f"journal-3 is committed, but cannot be seen yet: {reason}"):
        wait_until_seen(broker(answer), "journal", 3, -math.inf)
