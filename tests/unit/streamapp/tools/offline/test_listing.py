"""`grove models list` writes learners as specs do."""

from __future__ import annotations

import pytest

from core import registry, spelling
from core.spec import Spec
from streamapp.tools.offline.listing import COLUMNS, rows
from tests.topology.partition import Partition, config

SCHEMA = {"attributes": [{"name": "x", "range": [0, 1]}], "classes": ["low", "high"]}


def test_a_learner_is_listed_by_the_name_that_specs_write() -> None:
    partition = Partition(config({}))
    for i, written in enumerate(("h-tree", "h_tree", "vfdt", "hoeffding-tree", "efdt_imac")):
        partition.control("create", key=f"{i}", spec={"learner": {"name": written}}, schema=SCHEMA)
    assert partition.dead_letters == []
    listed = list(rows(partition.task))
    assert [each["spec"] for each in listed] == ["h-tree"] * 4 + ["efdt-imac"]
    assert all(tuple(each) == COLUMNS for each in listed)


def test_a_challenger_is_listed_with_its_champion() -> None:
    partition = Partition(config({}))
    for key in ("alone", "challenged"):
        partition.control("create", key=key, schema=SCHEMA)
    partition.control("challenge", key="challenged", spec={"learner": "majority_class"})
    assert partition.dead_letters == []
    listed = [(each["key"], each["spec"], each["challenger"]) for each in rows(partition.task)]
    assert listed == [("alone", "h-tree", None), ("challenged", "h-tree", "majority-class")]
    partition.control("drop", key="challenged")
    assert [each["challenger"] for each in rows(partition.task)] == [None, None]


@pytest.mark.parametrize("name", registry.names("learners"))
def test_every_name_that_is_listed_is_one_that_specs_take(name: str) -> None:
    partition = Partition(config({}))
    partition.control("create", key="m", spec={"learner": {"name": name}}, schema=SCHEMA)
    (listed,) = (each["spec"] for each in rows(partition.task))
    assert listed == spelling.of_spec("learners", name) == Spec.parse(listed).to_dict()["learner"]["name"]
