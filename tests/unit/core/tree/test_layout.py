import numpy as np
import pytest

from core.layout.model import EvaluationCounters, ModelHeader, code_bits, evaluation_words, window_words
from core.layout.tree import LEAF_FIELDS, NODE_FIELDS, TREE_HEADER, TreeShape
from core.model import buffers
from core.plan import Plan
from core.tree import views
from core.tree.allocation import aligned_words
from tests.unit.core.builders import schema_of, spec_of


def test_bytes_per_leaf():
    """8·K·(1 + 5·d + V) and a few fields."""
    plan = Plan.of(spec_of(), schema_of(*[None] * 784, 3, 5, classes=[str(i) for i in range(10)]))
    shape = plan.blocks.shape(1, 1)
    assert shape.leaf_stride * 8 == 8 * 10 * (1 + 5 * 784 + 8) + 8 * LEAF_FIELDS


def test_views_are_the_words():
    plan = Plan.of(spec_of(), schema_of(None, 3, None, classes="abc"))
    ints = buffers.new_model(plan)
    tree = views.tree_view(plan, ints, int(ModelHeader.over(ints).first))
    assert tree.numeric.shape == (1, 3, 5, 2)
    assert tree.nominal.shape == (1, 3, 3)
    assert tree.seen.shape == tree.masses.shape == (1, 3)
    tree.numeric[0, 2, 4, 1] = 7.0
    tree.nominal[0, 2, 2] = 8.0
    leaf = ints.view(np.float64)[int(ModelHeader.over(ints).first) + tree.shape.leaves_at :]
    assert leaf[tree.shape.numeric_at + (2 * 5 + 4) * 2 + 1] == 7.0
    assert leaf[-1] == 8.0


def test_sizes_add_up():
    shape = TreeShape(classes=2, numeric=(2, 5, 3), nominal=(2, 4), nodes=7, slots=4)
    assert shape.node_stride == NODE_FIELDS + 2
    assert shape.leaf_stride == LEAF_FIELDS + 2 + 30 + 8
    assert shape.words == TREE_HEADER + 7 * shape.node_stride + 4 * shape.leaf_stride


def test_the_state_of_a_schedule_is_the_end_of_a_leaf_record():
    shape = TreeShape(2, (2, 5, 3), (2, 4), nodes=1, slots=2, schedule=((3,), (2, 2)))
    assert shape.schedule_at == shape.nominal_at + 8
    assert shape.leaf_stride == shape.schedule_at + 3 + 4
    ints = aligned_words(shape.words)
    tree = views.TreeView(ints, ints.view(np.float64), 0, shape)
    tree.schedule[0][1] = 7.0
    tree.schedule[1][1, 1, 0] = 8.0
    assert tree.leaf_floats[1, shape.schedule_at :].tolist() == [7.0, 7.0, 7.0, 0.0, 0.0, 8.0, 0.0]
    assert not tree.leaf_floats[0].any()


def test_codes_of_the_window():
    assert [code_bits(k) for k in (0, 1, 2, 3, 4, 5, 16, 17, 256, 257)] == [1, 1, 1, 2, 2, 4, 4, 8, 8, 16]
    assert window_words(1000, 1) == 32
    assert evaluation_words(2, 1000) == EvaluationCounters.SIZE + 12 + 32 + 16


@pytest.mark.parametrize("words", [1, 8, 1000])
def test_buffers_begin_on_a_cache_line(words):
    ints = aligned_words(words)
    assert len(ints) == words
    assert ints.ctypes.data % 64 == 0
    assert not ints.any()
