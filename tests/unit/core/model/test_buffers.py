"""Buffers of models: room where a block lies is the room that it would have got elsewhere."""

import numpy as np
import pytest

from core.layout.model import WORD
from core.model import buffers, validate
from core.model.buffers import Block
from core.tree import allocation
from tests.unit.core.builders import answer, schema_of, spec_of, table_of

LEARNERS = ["h-tree", "efdt", "hat"]
MANY = 600
"""Values of an attribute; of two such the leaf records of a few hundred leaves take megabytes."""
MOST = 24 << 20


def grown(learner, schema=None, n=3000, **parameters):
    """Return a model of some leaves."""
    schema = schema_of(None, 5, None) if schema is None else schema
    table = table_of(schema, spec_of(name=learner, grace_period=50.0, **parameters))
    draw = np.random.default_rng(3)
    values = [draw.integers(len(a.values), size=n) if a.values else draw.random(n) for a in schema.attributes]
    x = np.column_stack(values).astype(np.float64)
    answer(table, x, (x[:, 0] > 0.5) & (x[:, 1] >= 1))
    return table.model(0)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("nodes", [0, 1, 100, 5000])
@pytest.mark.parametrize("slots", [0, 3, 400])
def test_room_where_a_block_lies_is_the_room_of_a_new_buffer(learner, nodes, slots):
    model = grown(learner)
    assert model.summary().leaves > 2
    had = model.plan.blocks.room(model.ints, model.first)
    room = (had[0] + nodes, had[1] + slots)
    anew = buffers.relayout(model.plan, model.ints, model.plan, [Block(model.first, room)])
    whole = allocation.aligned_words(len(anew) + 5)
    whole[: len(model.ints)] = model.ints
    longer = buffers.extend(model.plan, whole[: len(model.ints)], whole, model.first, room)
    np.testing.assert_array_equal(longer, anew)
    assert not whole[len(anew) :].any()


def test_a_block_with_too_little_behind_it_or_another_block_does_not_grow_where_it_lies():
    model = grown("h-tree")
    plan, room = model.plan, model.plan.blocks.room(model.ints, model.first)
    more = (room[0], room[1] + 10)
    assert buffers.extend(plan, model.ints, model.ints, model.first, more) is None
    two = buffers.relayout(plan, model.ints, plan, [Block(model.first, room), buffers.new_block(plan)])
    whole = allocation.aligned_words(len(two) * 2)
    whole[: len(two)] = two
    first, second = buffers.block_places(two)
    assert buffers.extend(plan, whole[: len(two)], whole, first, more) is None
    longer = buffers.extend(plan, whole[: len(two)], whole, second, (3, 2))
    blocks = [Block(first, room), Block(second, (3, 2))]
    np.testing.assert_array_equal(longer, buffers.relayout(plan, two, plan, blocks))


def test_a_block_that_gives_up_room_for_other_room_is_laid_out_anew():
    model = grown("h-tree")
    plan, t = model.plan, model.first
    nodes, slots = plan.blocks.live_room(model.ints, t)
    t = model.make_room(t, (nodes + 100, slots))
    whole = allocation.aligned_words(len(model.ints))
    whole[:] = model.ints
    room = (nodes, slots + 1)
    assert plan.blocks.words(room) < plan.blocks.words((nodes + 100, slots))
    assert buffers.extend(plan, whole, whole, t, room) is None
    assert np.array_equal(whole, model.ints)
    before = model.snapshot()
    t = model.make_room(t, room)
    assert plan.blocks.room(model.ints, t) == room
    assert model.snapshot() == before


def test_a_large_model_stays_where_it_is_until_its_reserve_is_used_up():
    model = grown("efdt", schema_of(None, MANY, MANY), n=1000, binary_splits=True, max_bytes=float(MOST))
    before, leaves = model.snapshot(), model.summary().leaves
    t = model.first
    assert leaves > 2
    assert not model.extends(t)
    assert model.make_room(t, (400, 400)) == t
    assert model.extends(t)
    address = model.address
    for room in ((400, 500), (4000, 600), (4000, 700)):
        assert model.make_room(t, room) == t
        assert (model.address, model.plan.blocks.room(model.ints, t)) == (address, room)
        assert model.header.words == len(model.ints) == t + model.plan.blocks.words(room)
        validate.check(model)
        assert model.snapshot() == before
    bytes_of_leaf = model.plan.blocks.shape(1, 1).leaf_stride * WORD
    assert model.make_room(t, (4000, MOST // bytes_of_leaf + 1)) == t
    assert model.address != address
    assert (model.snapshot(), model.summary().leaves) == (before, leaves)


def test_a_reserve_is_no_larger_than_the_bytes_that_a_model_may_take():
    large = allocation.LARGE_BYTES // WORD
    assert len(allocation.reserved_words(large - 1, 1e9)) == large - 1
    assert len(allocation.reserved_words(large, 1e9)) * WORD == allocation.LEAST_RESERVE
    assert len(allocation.reserved_words(large, 6e6)) == 6_000_000 // WORD
    assert len(allocation.reserved_words(large, 1.0)) == large
