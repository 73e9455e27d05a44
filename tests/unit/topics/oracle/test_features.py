"""The oracle's features: those of the row, late, lost or not to be had as asked, alike for the same row."""

import math

import numpy as np
import orjson
import pytest

from tests.unit.topics.memory_dataset import MemoryDataset
from topics.codecs import encode_feature_requests
from topics.columns.records import FeatureRequest
from topics.definitions import TopicNames
from topics.delay import Delay
from topics.errors import DatasetError
from topics.oracle.drawn_answers import Outcome
from topics.oracle.feature_respondent import MISSING, NO_SUCH, REFUSED, FeatureRespondent
from topics.oracle.oracle_plan import OraclePlan

N = 4000
COLOURS = ("red", "green")


def rows():
    """Row i: i, i/2 (missing where 3 divides i), and a colour."""
    numbers = np.arange(N, dtype=float)
    half = np.where(numbers % 3 == 0, np.nan, numbers / 2)
    x = np.column_stack([numbers, half, numbers % 2])
    return MemoryDataset(x, np.zeros(N), values=((), (), COLOURS), names=("n", "half", "colour"))


def respondent(dataset=None, **plan):
    found = FeatureRespondent(OraclePlan(features=True, **plan))
    found.read(rows() if dataset is None else dataset, lambda: False)
    return found


def request(name, *features):
    return FeatureRequest(f"0-{name}-q1", str(name), list(features), 1.0, math.nan, {}, 0)


def decided(requests, **plan):
    return respondent(**plan).decide(encode_feature_requests(requests))


def test_values_are_those_of_the_row():
    (one,) = decided([request(5, "colour", "n", "half")])
    assert one.outcome is Outcome.FEATURES and one.delay == 0.0 and (one.features, one.unavailable) == (3, 0)
    assert orjson.loads(one.value) == {"id": "5", "features": {"colour": "green", "n": 5.0, "half": 2.5}}


def test_what_the_data_set_lacks_is_not_to_be_had():
    (one,) = decided([request(6, "half", "weight")])
    assert orjson.loads(one.value) == {"id": "6", "unavailable": {"half": MISSING, "weight": NO_SUCH}}
    assert (one.features, one.unavailable) == (0, 2)


def test_a_share_is_not_to_be_had_and_the_same_for_who_asks_again():
    asked = [request(n, "n", "colour") for n in range(N)]
    found = [orjson.loads(each.value) for each in decided(asked, unavailable=0.2)]
    refused = sum(len(each.get("unavailable", {})) for each in found)
    assert abs(refused - 0.2 * 2 * N) < 4 * np.sqrt(2 * N * 0.16)
    assert {why for each in found for why in each.get("unavailable", {}).values()} == {REFUSED}
    alone = [
        orjson.loads(each.value) for each in decided([request(n, "n") for n in range(N)], unavailable=0.2)
    ]
    assert [("n" in each.get("features", {})) for each in alone] == [
        ("n" in each.get("features", {})) for each in found
    ]


def test_lost_and_late():
    found = decided([request(n, "n") for n in range(N)], loss=0.1, delay=Delay.parse("~2s"))
    lost = [each for each in found if each.outcome is Outcome.LOST]
    assert abs(len(lost) - 0.1 * N) < 4 * np.sqrt(0.09 * N)
    assert {each.value for each in lost} == {None}
    delays = [each.delay for each in found if each.value is not None]
    assert abs(np.mean(delays) - 2.0) < 0.2


def test_other_ids_and_what_cannot_be_read():
    other, beyond, ours = decided([request("x", "n"), request(N, "n"), request("p-3", "n")], id_prefix="p-")
    assert (other.outcome, beyond.outcome) == (Outcome.UNKNOWN_ID, Outcome.UNKNOWN_ID)
    assert ours.outcome is Outcome.FEATURES
    (again,) = decided([request(N + 4, "n")], loop=True)
    assert orjson.loads(again.value)["features"] == {"n": 4.0}
    assert respondent().decide([b"{", b"[]", b'{"request_id": 5}']) == [None, None, None]


def test_an_empty_data_set_is_refused():
    with pytest.raises(DatasetError, match="needs their features"):
        respondent(MemoryDataset(np.empty((0, 2)), []))


def test_its_topics():
    assert respondent().topics(TopicNames("a.")) == ("a.feature-requests", "a.feature-values")


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"features": True, "declined": 0.1}, "declined=0.1 must be 0 for requests of features"),
        ({"features": True, "error_rate": 0.1}, "error_rate=0.1 must be 0 for requests of features"),
        ({"unavailable": 0.1}, "unavailable=0.1 must be 0 for requests of labels"),
        ({"features": True, "unavailable": 1.5}, "unavailable=1.5 must be a share from 0 to 1"),
    ],
)
def test_options_that_mean_nothing_are_refused(plan, message):
    with pytest.raises(ValueError, match=message):
        OraclePlan(**plan)
