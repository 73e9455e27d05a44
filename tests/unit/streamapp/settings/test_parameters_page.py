"""docs/parameters.md: every part of a spec, as the plug-ins themselves declare it."""

import dataclasses
import json
import re

import pytest

from core import registry
from core.learners.protocol import build
from core.spec import Spec
from streamapp.settings.parameters_page import FAMILIES, page, rows_of, source_of
from tests.unit.streamapp.settings.test_settings import ROOT

VARIANTS = [(family, name) for family in registry.FAMILIES for name in registry.names(family)]
OF_OUR_OWN = {
    "queries always",
    "queries never",
    "drift none",
    "inputs none",
    "acquirers none",
    "acquirers random",
}


def test_is_current():
    assert (ROOT / "docs" / "parameters.md").read_text() == page()


def test_is_linked():
    assert "docs/parameters.md" in (ROOT / "README.md").read_text()
    assert "(parameters.md)" in (ROOT / "docs" / "trees.md").read_text()
    assert "(parameters.md)" in (ROOT / "docs" / "active-learning.md").read_text()


def test_has_every_family():
    assert set(FAMILIES) == set(registry.FAMILIES)


@pytest.mark.parametrize(("family", "name"), VARIANTS)
def test_every_variant_says_what_its_parameters_mean_and_where_it_is_from(family, name):
    module = registry.module(family, name)
    section = page().split(f"\n## {FAMILIES[family][0]}\n")[1].split("\n## ")[0]
    shown = name.replace("_", "-") if family == "learners" else name
    assert f"\n### `{shown}`\n" in section
    fields = [field.name for field in dataclasses.fields(module.Plugin)]
    found = rows_of(module.Plugin)
    assert list(found) == fields
    for parameter, (_, _, _, meaning) in found.items():
        assert meaning.endswith("."), parameter
        assert f"| `{parameter}` |" in section
    assert bool(re.search(r"\b(19|20)\d\d\b", source_of(module))) is (f"{family} {name}" not in OF_OUR_OWN)


def test_the_example_is_a_spec():
    (example,) = re.findall(r"```json\n(.*?)```", page(), re.DOTALL)
    assert Spec.parse(json.loads(example)).to_dict()["learner"]["name"] == "c-tree"


def test_the_values_that_a_preset_changes_are_those_it_has():
    for name in registry.names("learners"):
        section = page().split(f"\n### `{name.replace('_', '-')}`\n")[1].split("\n### ")[0]
        for parameter, default in re.findall(
            r"\| `(\w+)` \| [^|]+ \| `([^`]+)` \|", section.split("\n## ")[0]
        ):
            value = build({"name": name}).to_dict()[parameter]
            value = value["name"] if isinstance(value, dict) else value
            assert default == json.dumps(value).strip('"').removesuffix(".0"), parameter
