"""A plan that makes no stream is refused with the rule, before anything is sent."""

import pytest

from topics.delay import Delay
from topics.replay import ReplayPlan


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"spread": "random"}, "spread='random' must be one of each, round-robin, zipf"),
        ({"labels": "late"}, "labels='late' must be one of with, apart, none"),
        ({"format": "xml"}, "format='xml' must be one of json, packed, arrow, avro"),
        ({"keys": ()}, "keys=.* must be at least one model key"),
        ({"keys": ("a", "")}, "none empty"),
        ({"keys": ("a", "a")}, "all different"),
        ({"rate": 0}, "rate=0 must be greater than 0"),
        ({"rate": float("inf")}, "rate=inf must be"),
        ({"label_loss": 1.5}, r"label_loss=1.5 must be a share from 0 to 1"),
        ({"block_rows": 0}, "block_rows=0 must be at least 1"),
        ({"from_row": -1}, "from_row=-1 must be at least 0"),
        ({"records": 0}, "records=0 must be at least 1"),
        ({"max_outstanding": 0}, "max_outstanding=0 must be at least 1"),
        ({"zipf_exponent": -1}, "zipf_exponent=-1 must be at least 0"),
        ({"start_ms": -5}, "start_ms, step_ms="),
        ({"label_delay": Delay(5)}, "label_delay=5 must be 0 unless labels=apart"),
        ({"labels": "apart", "ids": False}, "ids=False must be True with labels=apart"),
    ],
)
def test_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ReplayPlan(**options)


def test_a_plan_cannot_be_changed():
    with pytest.raises(AttributeError):
        ReplayPlan().rate = 5  # type: ignore[misc]
