"""What a journal of state version 4 is replayed with: models come into being as they did then."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streamapp.worker.task.task import Task
from streamapp.worker.task.task_config import TaskConfig
from tests.topology.partition import ALWAYS, PARTITION, Partition, config

OF_4 = replace(config({"drift": "adwin"}), state_version=4)
SCHEMA = {"attributes": [{"name": "x"}], "classes": ["low", "high"]}


def learner_of(partition: Partition, key: str) -> str:
    return str(partition.model(key).spec.learner.evidence)


def test_a_model_that_its_first_record_makes_has_the_defaults_of_then() -> None:
    partition = Partition(OF_4)
    partition.instances({"id": "a", "features": {"x": 1.0}}, key="m")
    spec = partition.model("m").spec
    assert spec.learner.evidence == "observed"
    assert spec.drift.to_dict()["keep_newer"] is False


def test_so_have_models_that_controls_create_and_reset_and_parts_that_they_configure() -> None:
    partition = Partition(OF_4)
    partition.control("create", key="one", spec={"learner": "h-tree"}, schema=SCHEMA)
    partition.control("create", key="two", spec={"drift": "adwin"}, schema=SCHEMA)
    partition.control("reset", key="two", spec={"learner": "c-tree"})
    partition.control("create", key="asks", spec={"query": "random"}, schema=SCHEMA)
    partition.control("configure", key="asks", spec={"query": "fixed_uncertainty"})
    assert partition.dead_letters == []
    assert [learner_of(partition, key) for key in ("one", "two")] == ["observed", "observed"]
    assert partition.model("asks").spec.query.to_dict()["cold_start"] == 0.0


def test_behind_the_tail_new_models_have_the_defaults_of_today_and_old_ones_keep_theirs() -> None:
    partition = Partition(OF_4)
    partition.control("create", key="old", schema=SCHEMA)
    partition.task.configure(replace(OF_4, state_version=TaskConfig().state_version))
    partition.control("create", key="new", schema=SCHEMA)
    partition.control("configure", key="old", spec={"query": "random"})
    assert (learner_of(partition, "old"), learner_of(partition, "new")) == ("observed", "inherited")
    assert partition.dead_letters == []


def test_a_configuration_says_nothing_of_its_state_version_which_the_record_around_it_has() -> None:
    assert TaskConfig.from_json(OF_4.to_json(), 4) == OF_4
    assert "state_version" not in OF_4.to_json()


IDLE = {"name": "rddm", "longest": 5000}
"""Release 0.1.0 accepted it: after 5,000 labels it starts again at each label, and forgets none."""


def test_a_detector_that_cannot_do_its_work_is_refused_by_name_rule_and_remedy() -> None:
    partition = Partition(config(ALWAYS))
    partition.control("create", key="new", spec={"drift": IDLE}, schema=SCHEMA)
    partition.control("create", key="other", spec={"drift": "rddm"}, schema=SCHEMA)
    partition.control("configure", key="other", spec={"drift": {"longest": 6000, "stable": 6000}})
    assert [letter.message.partition(", else")[0] for letter in partition.dead_letters] == [
        "create: longest=5000 must be above stable=7000",
        "configure: longest=6000 must be above stable=6000",
    ]
    assert partition.model("other").spec.drift.longest == 40_000


def test_a_model_that_has_such_a_detector_already_goes_on() -> None:
    of_9 = replace(config(ALWAYS | {"drift": IDLE}), state_version=9)
    partition = Partition(of_9)
    partition.instances({"id": "a", "features": {"x": 1.0}, "label": "low"}, key="old")
    partition.control("create", key="also", spec={"drift": IDLE}, schema=SCHEMA)
    units = list(partition.task.cut().units())
    partition.task = Task.from_units(PARTITION, config(ALWAYS), None, units)
    partition.instances({"id": "b", "features": {"x": 1.0}, "label": "high"}, key="old")
    partition.control("configure", key="old", spec={"query": "random"})
    assert partition.dead_letters == []
    assert partition.model("old").spec.drift.longest == 5000
    assert partition.model("old").summary().labels == 2
    partition.control("configure", key="old", spec={"drift": {"warm_up": 200}})
    assert len(partition.dead_letters) == 1, "its detector is changed, and has to make sense then"


@pytest.mark.parametrize(("version", "dropped"), [(4, 36), (8, 36), (9, 39)])
def test_a_full_store_forgets_what_it_forgot_then(version: int, dropped: int) -> None:
    """Releases before version 9 kept no class shares of answers: 36 is what version 8 counted of this."""
    partition = Partition(replace(config(ALWAYS, pending_max_bytes=8192), state_version=version))
    for n in range(40):
        partition.instances({"id": f"t{n}", "features": {"x": n % 10, "y": 1.0}, "label": "ab"[n % 10 > 4]})
    partition.instances(*({"id": f"i{n}", "features": {"x": n % 10, "y": 1.0}} for n in range(60)))
    partition.labels(*({"id": f"i{n}", "label": "ab"[n % 10 > 4]} for n in range(60)))
    assert partition.task.pending.dropped == dropped
    assert partition.model().summary().labels == 100 - dropped
