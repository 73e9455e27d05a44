"""The shadow of a schedule beside the ideal tree (VFS, section 4 [D40])."""

import math

import numpy as np
import pytest

from core.errors import SchemaError
from core.events import Split
from core.streams.base import open_generator
from streamapp.lab.experiments.split_delay import split_delay
from tests.unit.core.builders import answer, schema_of, spec_of, table_of

SCHEDULES = ["grace_period", "osm", "cgd", "imac"]


def noisy(n, seed=0):
    """Two two-valued attributes, of which the first tells the class in 70 % of the records."""
    draw = np.random.default_rng(seed)
    x = draw.integers(0, 2, (n, 2)).astype(np.float64)
    return x, np.where(draw.random(n) < 0.7, x[:, 0], 1 - x[:, 0]).astype(np.int32)


def first_split(x, y, schema):
    """Return the weight at which a tree splits first that attempts at every record from 100 on."""
    table = table_of(schema, spec_of(schedule="every_record"))
    return next(event.n for event in answer(table, x, y).events if isinstance(event, Split))


def test_a_perfect_attribute_is_seen_by_the_first_attempt_and_missed_until_the_grace_period_is_over():
    x = np.random.default_rng(0).integers(0, 2, (1000, 2)).astype(np.float64)
    results = split_delay([(x, x[:, 0].astype(np.int32))], schema_of(2, 2), SCHEDULES)
    for result in results:
        assert result.bound_delays == [100.0]
        assert (result.attempts, result.pending, result.tie_delays) == (1, 0, [])


@pytest.mark.parametrize("seed", range(3))
def test_the_delay_of_a_fixed_period_is_what_is_left_of_it(seed):
    x, y = noisy(3000, seed)
    schema = schema_of(2, 2)
    n = first_split(x, y, schema)
    assert n > 100
    rows = int(n)
    period, imac = split_delay([(x[:rows], y[:rows])], schema, ["grace_period", "imac"])
    assert period.bound_delays == [-n % 200.0]
    assert period.attempts == math.ceil(n / 200.0)
    if n > 200:
        assert imac.bound_delays == [0.0]
        assert imac.attempts < period.attempts + 3


def test_where_batches_are_cut_changes_nothing():
    sea = open_generator("sea", seed=3)
    whole = split_delay([sea.take(6000)], sea.schema, SCHEDULES, {"delta": 1e-3, "tau": 0.1})
    cut = split_delay(sea.batches(6000, 700), sea.schema, SCHEDULES, {"delta": 1e-3, "tau": 0.1})
    assert whole == cut
    assert all(result.bound_delays and result.tie_delays for result in whole)


def test_a_late_imac_is_followed_until_it_is_due():
    """Numeric attributes: thresholds of candidates are old, so that some splits come late."""
    agrawal = open_generator("agrawal", seed=1)
    (result,) = split_delay(
        agrawal.batches(20_000, 4096), agrawal.schema, ["imac"], {"delta": 1e-3, "tau": 0.1, "compat": "imac"}
    )
    delays = result.bound_delays + result.tie_delays
    assert min(delays) == 0.0
    assert max(delays) > 0.0
    assert result.pending <= 2


def test_the_order_of_the_schedules():
    """VFS Table 2: IMAC makes fewer attempts than OSM, OSM fewer than VFDT; IMAC is the least late."""
    sea = open_generator("sea", seed=1, rng="java")
    period, osm, imac = split_delay(
        sea.batches(60_000), sea.schema, ["grace_period", "osm", "imac"], {"compat": "imac"}
    )
    assert imac.attempts < osm.attempts <= period.attempts
    assert 50.0 < np.mean(period.bound_delays + period.tie_delays) < 150.0
    assert np.mean(imac.bound_delays + imac.tie_delays) < np.mean(period.bound_delays + period.tie_delays)


def test_missing_values_are_refused():
    with pytest.raises(SchemaError, match="x must have no missing values"):
        split_delay([(np.full((3, 2), np.nan), np.zeros(3, np.int32))], schema_of(2, 2), SCHEDULES)
