"""The schema of the demo's data set, as a control takes it."""

from __future__ import annotations

from pathlib import Path

from streamapp.demo.demo_models import read_models
from streamapp.demo.demo_plan import DemoPlan
from streamapp.demo.demo_run import read_truth


def test_models_that_buy_know_all_columns(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("x,y,class\n1,a,no\n5,b,yes\n3,a,no\n", encoding="ascii")
    truth = read_truth(DemoPlan(data=str(path), target="class", features=True))
    numeric, nominal = truth.schema["attributes"]
    assert numeric == {"name": "x"}
    assert (nominal["name"], nominal["kind"], list(nominal["values"])) == ("y", "nominal", ["a", "b"])
    assert list(truth.schema["classes"]) == ["no", "yes"]
    (asks,) = read_models(['asks={"learner": "ufodt"}'], features=True)
    assert asks.asks == "by utility"
