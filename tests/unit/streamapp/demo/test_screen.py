"""The demo's table as a terminal shows it."""

import numpy as np
import pytest
from rich.console import Console

from streamapp.demo.demo_models import MODELS, read_models
from streamapp.demo.screen import Display, models_table
from streamapp.demo.tally import ModelTally, Truth


@pytest.mark.parametrize("width", [80, 120])
def test_no_figure_is_cut_on_a_terminal_of_80_columns(width: int) -> None:
    truth = Truth(np.array(([0] * 3 + [1]) * 12_500, np.int32), ("no", "yes"))
    tallies = {model.key: ModelTally(truth) for model in MODELS}
    for row in range(truth.rows):
        for tally in tallies.values():
            tally.answer(row, "no" if row < truth.rows // 2 else "yes", int(row > 0))
        tallies["all-labels"].ask(row)
    console = Console(width=width)
    with console.capture() as capture:
        console.print(models_table(MODELS, tallies, truth))
    lines = capture.get().splitlines()
    assert "…" not in capture.get()
    assert max(map(len, lines)) <= width
    cells = {line.split()[0]: line.split() for line in lines if line and not line.startswith(" ")}
    assert cells["majority"][-6:] == ["50,000", "0", "0.0%", "75.0%", "75.0%", "75.0%"]
    for model in MODELS:
        asked = ["50,000", "100.0%"] if model.key == "all-labels" else ["0", "0.0%"]
        assert cells[model.key][-7:] == ["50,000", *asked, "50.0%", "75.0%", "25.0%", "0"]


def test_brackets_of_specs_and_addresses_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    models = read_models(['m[bold]={"query": "always", "seed": 3}', "[red]=h-tree"], features=False)
    truth = Truth(np.array([0, 1], np.int32), ("no", "yes"))
    console = Console(width=200)
    with console.capture() as capture:
        console.print(models_table(models, {model.key: ModelTally(truth) for model in models}, truth))
    for model in models:
        assert model.key in capture.get()
        assert model.asks in capture.get()
    display = Display()
    display.say("grove web is at http://[fe80::1]:80/[red]")
    with display.waiting("reading [bold]x[/bold].csv"):
        pass
    out = capsys.readouterr().out
    assert "http://[fe80::1]:80/[red] …" in out
    assert "[bold]x[/bold].csv …" in out
