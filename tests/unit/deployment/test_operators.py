"""Objects for KEDA, Strimzi and the Prometheus operator against the definitions of these operators."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from tests.unit.deployment.helm import EXAMPLES, helm, objects
from tests.unit.deployment.operators import POD_MONITOR, keda, strimzi
from tests.unit.deployment.test_chart import ALL, OPERATORS

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(3600)]

Schemas = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Schemas:
    ours = {("monitoring.coreos.com/v1", "PodMonitor"): POD_MONITOR}
    return keda() | strimzi(tmp_path_factory.mktemp("strimzi")) | ours


def check(thing: dict[str, Any], schemas: Schemas) -> None:
    schema = schemas[thing["apiVersion"], thing["kind"]]
    jsonschema.validate(thing, schema, cls=jsonschema.Draft7Validator)


def test_operators_accept_their_objects(pytestconfig: pytest.Config, schemas: Schemas) -> None:
    program = helm(pytestconfig)
    cases = [ALL, *((f"--values={file}",) for file in EXAMPLES)]
    things = [thing for case in cases for thing in objects(program, *case) if thing["kind"] in OPERATORS]
    assert {thing["kind"] for thing in things} == set(OPERATORS)
    for thing in things:
        check(thing, schemas)


@pytest.mark.parametrize("kind", OPERATORS)
def test_a_misspelt_member_would_be_refused(pytestconfig: pytest.Config, schemas: Schemas, kind: str) -> None:
    thing = next(one for one in objects(helm(pytestconfig), *ALL) if one["kind"] == kind)
    thing["spec"]["misspelt"] = 1
    with pytest.raises(jsonschema.ValidationError, match="misspelt"):
        check(thing, schemas)


def test_values_that_an_operator_does_not_know_would_be_refused(
    pytestconfig: pytest.Config, schemas: Schemas
) -> None:
    things = {thing["kind"]: thing for thing in objects(helm(pytestconfig), *ALL)}
    things["KafkaUser"]["spec"]["authorization"]["acls"][0]["operations"] = ["Reads"]
    with pytest.raises(jsonschema.ValidationError, match="Reads"):
        check(things["KafkaUser"], schemas)
    things["ScaledObject"]["spec"]["fallback"]["behavior"] = "guess"
    with pytest.raises(jsonschema.ValidationError, match="guess"):
        check(things["ScaledObject"], schemas)
