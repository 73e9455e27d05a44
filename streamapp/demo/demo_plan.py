"""Demo plan: the data set, the models and the pace of a demo, as the command line names them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from streamapp.demo.demo_models import MODELS, DemoModel, model_of_person
from streamapp.errors import StreamappError
from streamapp.lab.datasets import Format

# Rows a second: labels come back within a few hundred rows, and the 40,000 rows take 33 s.
DEFAULT_RATE = 1200.0
# With --features: each record leads to several requests and answers, for 123 features if a model buys all.
FEATURES_RATE = 60.0
FEATURES_RECORDS = 3_000
GENERATED = "gen:rbf?seed=1&model_seed=1&n=40000"
"""The demo's stream: on the bundled a9a a tenth of the labels is worth nearly as much as all of them, so that
no choice of labels can show (docs/active-learning.md)."""
BUNDLED = Path(__file__).parents[2] / "examples" / "data"


@dataclass(frozen=True)
class DemoPlan:
    """Options of the command line."""

    data: str | None = None
    form: Format | None = None
    target: str | None = None
    header: bool | None = None
    delimiter: str | None = None
    ignore: Sequence[str] | None = None
    nominal: Sequence[str] | None = None
    skip_lines: int | None = None
    missing: Sequence[str] | None = None
    decimal: str | None = None
    thousands: str | None = None
    quotes: bool | None = None
    zero_based: bool = False
    records: int | None = None
    workers: int = 1
    rate: float = DEFAULT_RATE
    features: bool = False
    """Records bring no features: models buy them."""
    bootstrap_servers: str | None = None
    models: tuple[DemoModel, ...] = MODELS
    web: bool = False
    """The web application runs as well, and all processes run until they are interrupted. One model is left
    to the person."""

    @property
    def person(self) -> DemoModel | None:
        """The model whose labels the person gives; None: the oracle answers all models."""
        return model_of_person(self.models) if self.web else None

    @property
    def address(self) -> str:
        """The data set of the option, else the demo's own: with features to buy a file, else a generator."""
        if self.data is not None:
            return self.data
        if not self.features:
            return GENERATED
        files = [BUNDLED / "a9a.gz", BUNDLED / "a9a.t.gz"]
        if not all(file.is_file() for file in files):
            message = "the demo's own data set is not installed here; name one with --data FILE"
            raise StreamappError(message)
        return ",".join(map(str, files))

    def data_options(self) -> list[str]:
        """The options that name the data set for replay and oracle."""
        options = ["--data", self.address]
        if self.form:
            options += ["--format", self.form]
        if self.target is not None:
            options.append(f"--target={self.target}")
        if self.header is not None:
            options.append("--header" if self.header else "--no-header")
        if self.delimiter is not None:
            options += ["--delimiter", self.delimiter]
        options += [f"--ignore={column}" for column in self.ignore or ()]
        options += [f"--nominal={column}" for column in self.nominal or ()]
        options += [f"--missing={word}" for word in self.missing or ()]
        options += [
            f"--{name}={value}"
            for name, value in (
                ("skip-lines", self.skip_lines),
                ("decimal", self.decimal),
                ("thousands", self.thousands),
            )
            if value is not None
        ]
        if self.quotes is not None:
            options.append("--quotes" if self.quotes else "--no-quotes")
        if self.zero_based:
            options.append("--zero-based")
        return options
