"""Kernels that are compiled for themselves, when a plan needs them, and called through addresses."""

import pytest

from core import registry
from core.kernels import jit
from tests.unit.core.kernels.test_jit import run_python

compiled = pytest.mark.skipif(jit.DISABLED, reason="nothing is compiled")

TABLE = """
import threading
from core.kernels import jit
from core.kernels.jit import compile_for, kernel, kernel_table
@kernel
def twice(value):
    return 2 * value
@kernel
def half(value):
    return value / 2
call = kernel_table("made.here", "float64(float64)", ["value"], {0: ("one", twice), 2: ("two", half)}, 3)
@kernel("float64(int64, float64)")
def run(kind, value):
    return call(kind, value)
def told(kind):
    try:
        return run(kind, 3)
    except RuntimeError as error:
        return str(error)
print(told(0))
compile_for(["one"])
print(told(0), told(1) == told(2) != told(0))
threads = [threading.Thread(target=compile_for, args=(["two"],)) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(told(0), told(2), compile_for(["one", "two"]))
"""


@compiled
def test_a_kernel_that_is_not_compiled_is_refused_and_one_that_is_runs(tmp_path):
    told = run_python(TABLE, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache")).stdout.splitlines()
    assert told[0].startswith("kernel streamgrove.made.here must be compiled before it is called")
    assert told[1:] == ["6.0 True", "6.0 1.5 0.0"]


PLANS = """
from core import registry
from core.kernels import jit
import core.model_table
from core.plan_words import compiled_modules
from core.spec import Spec
def ready(prefix):
    return [entry for entry in jit._entries if entry.owner.startswith(prefix) and entry._call is not None]
tree, other = (Spec.parse({"learner": name}) for name in ("h-tree", "boct"))
assert not ready("core.learners") and not ready("core.learners.hoeffding")
jit.compile_for(compiled_modules(tree))
print(len(ready("core.learners.hoeffding.kernels")) > 0, ready("core.learners.boct.boct"),
ready("core.learners.boct"))
jit.compile_for(compiled_modules(other))
print(len(ready("core.learners.boct.boct")) > 0, len(ready("core.learners.boct.cut_search")))
"""
"""The kernels of a process after plans of two learners; loaded, if a test before has compiled them."""


@compiled
def test_a_plan_has_its_own_learner_compiled_and_no_other(tmp_path):
    told = run_python(PLANS, tmp_path).stdout.splitlines()
    assert told == ["True [] []", "True 1"]


@compiled
@pytest.mark.parametrize("name", registry.names("learners"))
def test_all_that_a_plan_names_is_compiled_before_there_is_one(name):
    """Each kernel in the tables that its words lead to has an address."""
    from core.plan import Plan
    from core.plan_words import compiled_modules
    from core.spec import Spec
    from tests.unit.core.builders import schema_of

    spec = Spec.parse({"learner": name, "drift": "adwin", "query": "variable_uncertainty"})
    Plan.of(spec, schema_of(2, 2))
    owned = [entry for entry in jit._entries if entry.owner in compiled_modules(spec)]
    assert owned
    assert all(entry._call is not None for entry in owned)
