"""The models of the demo, and those of one's own."""

from pathlib import Path

import pytest

from core import registry
from core.errors import GroveError
from core.spec import Spec
from streamapp.demo.demo_models import MODELS, read_models
from streamapp.errors import UsageError
from tests.unit.core.builders import learner_for


def test_without_any_they_are_the_three() -> None:
    assert read_models([]) == MODELS
    for model in MODELS:
        Spec.parse(dict(model.spec))


@pytest.mark.parametrize("query", registry.names("queries"))
@pytest.mark.parametrize("budget", registry.names("budgets"))
def test_every_strategy_and_budget_by_spec(query: str, budget: str) -> None:
    learner = learner_for(query)
    parts = f'"learner": "{learner}", "query": "{query}"'
    spec = f'{{{parts}, "budget": {{"name": "{budget}", "limit": 0.05, "respend": true}}}}'
    (model,) = read_models([f"mine={spec}"])
    assert (model.key, model.asks) == ("mine", f"0.05 by {query}")
    assert Spec.parse(dict(model.spec)) == Spec.parse(spec)


def test_a_preset_and_a_file(tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text('{"query": "random"}')
    one, other = read_models(["a=h-tree", f"b=@{tmp_path / 'spec.json'}"])
    assert Spec.parse(dict(one.spec)) == Spec.parse("h-tree")
    assert Spec.parse(dict(other.spec)).query.name == "random"


@pytest.mark.parametrize(
    "given", [["mine"], ["=h-tree"], ["mine="], ["a=h-tree", "a=h-tree"], ["a=@nothing"]]
)
def test_mistakes_name_the_argument(given: list[str]) -> None:
    with pytest.raises(UsageError, match="--model|--spec"):
        read_models(given)


def test_a_wrong_spec_says_what_is_known() -> None:
    with pytest.raises(GroveError, match="unknown query strategy 'oracle'"):
        read_models(['a={"query": "oracle"}'])
