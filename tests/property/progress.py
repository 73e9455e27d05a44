"""Any legal spec learns records of any legal weight, each in bounded steps: the child of its test.

    python -m tests.property.progress [all]

A case is a spec of the registry and a pattern of weights: one pattern a spec, in turn, or all of them.
Compiled code that does not come back cannot be stopped from within, so each case is under a watchdog that
ends the process with a trace of where it stands.
"""

import faulthandler
import itertools
import json
import sys

import numpy as np

from core import registry
from core.errors import ParameterError
from core.kernels import jit
from core.model import validate
from core.model.model import Model
from core.model_table import ModelTable
from core.run import MAX_WEIGHT
from core.spec import Spec
from core.tree import views
from tests.unit.core.builders import TREES, schema_of

PATIENCE_S = 300.0
"""For one case, which takes milliseconds: what is over it hangs."""

ROWS, RUN = 240, 40
PERIODS = (1e-6, 3.0, 1e12)
"""The shortest and the longest that a spec may name, and one of everyday."""


def patterns(draw):
    """Yield float64[ROWS] by name: weights that are legal."""
    yield "ones", np.ones(ROWS)
    yield "largest", np.full(ROWS, MAX_WEIGHT)
    yield "smallest", np.full(ROWS, 5e-324)
    yield "any", np.minimum(10.0 ** draw.uniform(-320.0, 9.0, ROWS) + 5e-324, MAX_WEIGHT)
    yield "one large", np.where(np.arange(ROWS) == ROWS // 3, MAX_WEIGHT, 1.0)
    yield "small behind large", np.where(np.arange(ROWS) < ROWS // 3, MAX_WEIGHT, 1e-6)


def specs():
    """Yield the specs of every learner, schedule, compat mode, observer and period that go together."""
    learners = [(name, registry.plugin("learners", name)) for name in registry.names("learners")]
    for name, learner in learners:
        if name not in TREES:
            body = {"name": name.replace("_", "-"), "members": 10}
            yield from (body | {"compat": compat} for compat in (None, "moa"))
            continue
        schedules = registry.names("schedules")
        for compat, schedule, period in itertools.product(learner.compats, schedules, PERIODS):
            body = {"name": name.replace("_", "-"), "compat": compat, "schedule": schedule, "delta": 0.3}
            body |= {"tau": 0.3, "grace_period": period, "check_period": period, "revisit_period": period}
            yield body
            yield body | {"watched_nodes": "both", "numeric_observer": "histogram", "leaf_model": "nba"}
            yield body | {"numeric_observer": "exact", "max_leaves": 3}


def legal(body):
    """Return the spec of a learner with the parameters that it has; None: they do not go together."""
    body = dict(body)
    while True:
        try:
            return Spec.parse({"learner": body, "drift": "ddm", "evaluation": {"every": 0}})
        except ParameterError as error:
            named = str(error).partition("=")[0]
            if "is no parameter of" not in str(error) or named not in body:
                return None
            del body[named]


def learn(spec, weight, seed):
    """Learn a stream with missing values and a drift, twice."""
    draw = np.random.default_rng(seed)
    x = np.column_stack([draw.random((ROWS, 2)), draw.integers(0, 3, ROWS)])
    label = ((x[:, 0] > 0.5) ^ (draw.random(ROWS) < 0.2)).astype(np.int32)
    label[ROWS // 2 :] = (x[ROWS // 2 :, 1] > 0.5).astype(np.int32)
    x[draw.random(x.shape) < 0.05] = np.nan
    weight = np.ones(ROWS) if spec.learner.unit_weights else weight
    table = ModelTable()
    table.add(Model.create(spec, schema_of(None, None, 3)))
    for start in [*range(0, ROWS, RUN)] * 2:
        rows, before = slice(start, start + RUN), table.model(0).summary()
        answers = table.answer(np.zeros(RUN, dtype=np.int64), x[rows], label[rows], weight[rows])
        assert np.isfinite(answers.probability).all(), "a probability is no number"
        # Each node of a path is evaluated once a record; a record makes a path by one node longer.
        members = getattr(spec.learner, "members", 1)
        most = RUN * (before.depth + RUN + 1) * 2 * members  # the background trees, too
        after = table.model(0).summary()
        assert after.attempts <= before.attempts + most, "more attempts than records meet nodes"
    model = table.model(0)
    validate.check(model)
    if model.spec.learner.name not in TREES:
        return
    tree = views.tree_view(model.plan, model.ints, model.first)
    slots = int(tree.block.slots)
    leaves = tree.leaf_records[:slots]
    assert np.isfinite([leaves.observed, leaves.left_out]).all(), "no number"


def main(every_pattern):
    """Run the cases; the last line says how many."""
    jit.warm()  # which takes as long as it takes
    cases = 0
    seen = set()
    for body in specs():
        spec = legal(body)
        if spec is None or spec in seen:
            continue
        seen.add(spec)
        chosen = list(patterns(np.random.default_rng(len(seen))))
        turn = len(seen) % len(chosen)
        for name, weight in chosen if every_pattern else chosen[turn : turn + 1]:
            print(json.dumps([spec.learner.to_dict(), name]), flush=True)
            faulthandler.dump_traceback_later(PATIENCE_S, exit=True)
            learn(spec, weight, len(seen))
            faulthandler.cancel_dump_traceback_later()
            cases += 1
    print(f"{cases} cases", flush=True)


if __name__ == "__main__":
    sys.exit(main("all" in sys.argv[1:]))
