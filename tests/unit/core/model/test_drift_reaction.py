"""What each reaction does with the trees of a model at each change of level."""

import numpy as np
import pytest

from core.drift.base import DRIFT, IN_CONTROL, WARNING
from core.model import drift_reaction, validate
from core.spec import Spec
from tests.unit.core.builders import answer, schema_of, spec_of, table_of

LEARNER = {"grace_period": 20, "delta": 0.1, "tau": 0.3}


def grown(reaction):
    """Return a model whose tree has split once."""
    table = table_of(schema_of(None), spec_of(drift={"name": "ddm", "reaction": reaction}, **LEARNER))
    x = np.arange(200.0).reshape(-1, 1) % 10
    answer(table, x, (x[:, 0] > 4).astype(np.int32))
    assert table.model(0).summary().leaves > 1
    return table.model(0)


def at_level(model, level):
    """Let the model's detector have come to a level; return what was done."""
    model.header.level = level
    event = drift_reaction.react(model, 0, 0)
    validate.check(model)
    return event.action


def trees(model):
    return len(model.block_places)


def test_a_rebuild_lets_the_tree_of_the_warning_take_over():
    model = grown("rebuild")
    assert at_level(model, WARNING) == "background tree started"
    assert (trees(model), model.summary().leaves > 1) == (2, True)
    assert at_level(model, DRIFT) == "background tree took over"
    assert (trees(model), model.summary().leaves, model.summary().rebuilds) == (1, 1, 1)


def test_a_rebuild_drops_the_background_tree_when_the_warning_passes():
    model = grown("rebuild")
    at_level(model, WARNING)
    assert at_level(model, IN_CONTROL) == "background tree dropped"
    assert (trees(model), model.summary().leaves > 1, model.summary().rebuilds) == (1, True, 0)
    assert at_level(model, DRIFT) == "new tree"
    assert (model.summary().leaves, model.summary().rebuilds) == (1, 1)


def test_a_reset_begins_a_new_tree_at_the_drift():
    model = grown("reset")
    assert at_level(model, WARNING) == "none"
    assert (trees(model), model.summary().leaves > 1) == (1, True)
    assert at_level(model, DRIFT) == "new tree"
    assert (trees(model), model.summary().leaves, model.summary().rebuilds) == (1, 1, 1)
    assert at_level(model, IN_CONTROL) == "none"


def test_an_alert_leaves_the_tree_alone():
    model = grown("alert")
    before = model.snapshot()
    assert [at_level(model, level) for level in (WARNING, DRIFT, IN_CONTROL)] == ["none"] * 3
    assert model.snapshot() == before


@pytest.mark.parametrize("reaction", ["reset", "alert"])
def test_a_background_tree_goes_when_another_reaction_is_configured(reaction):
    model = grown("rebuild")
    at_level(model, WARNING)
    body = model.spec.to_dict()
    body["drift"]["reaction"] = reaction
    model.configure(Spec.parse(body))
    assert trees(model) == 2
    assert at_level(model, IN_CONTROL) == "background tree dropped"
    assert trees(model) == 1
