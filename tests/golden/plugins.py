"""Writes models with every plug-in: ``python -m tests.golden.plugins``.

``plugins-<format>-<state>.zip`` has a snapshot for each spec of `plugin_specs`, as ``core.Model.save`` writes
it. ``.json`` beside it has the spec of each, what must be found in the model, and what it does with further
records. A release writes a model in the oldest state version that has the words of its spec, so a file has
models of several versions, up to the version in its name. Files of released versions stay, and stay readable.
"""

from __future__ import annotations

import dataclasses
import json
import zipfile
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from core.active.label_account import EXPIRED
from core.model import snapshot
from core.model.model import Model
from core.model_table import ModelTable
from core.schema.schema import Attribute, Schema
from core.spec import Spec
from core.state_version import STATE_VERSION
from tests.golden.plugin_specs import SPECS
from tests.golden.versions import ascending

HERE: Final = Path(__file__).parent
BEFORE: Final = 200
"""Records that a model of a file has had."""
AFTER: Final = 100
"""Records with which it goes on."""
DRIFTS: Final = (170, 240)
"""Records at which the classes change places."""
QUESTIONS: Final = 5
DIGITS: Final = 9
"""Decimals of probabilities that are equal on all platforms."""
OLDEST: Final = (1980, 1, 1, 0, 0, 0)
"""The time of all members of an archive, the earliest that the format has."""

Rows = tuple[npt.NDArray[np.float64], npt.NDArray[np.int32], npt.NDArray[np.float64]]


def files() -> list[Path]:
    return ascending(HERE.glob("plugins-*.zip"))


def file_of_now() -> Path:
    return HERE / f"plugins-{snapshot.FORMAT_VERSION}-{STATE_VERSION}.zip"


def snapshots(path: Path) -> dict[str, bytes]:
    """Return the snapshots of a file by the name of their spec."""
    with zipfile.ZipFile(path) as archive:
        return {name.removesuffix(".grove"): archive.read(name) for name in archive.namelist()}


def expected(path: Path) -> dict[str, Any]:
    """Return by name what must be found in the snapshots of a file."""
    body: dict[str, Any] = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return body


def schema_of(spec: Spec) -> Schema:
    """Return a schema with numbers and nominal attributes, of which one is open to values."""
    attributes = [
        Attribute("colour", "nominal", ("red", "green", "blue")),
        Attribute("x", range=(0.0, 1.0)),
        Attribute("city", "nominal", ("Oslo", "Rome"), open=True),
        Attribute("z", range=(0.0, 1.0)),
    ]
    return Schema.of(attributes, ("a", "b"), classes_open=True, max_classes=spec.max_classes)


def drawn(n: int, column: int) -> int:
    """Return a number below 1024 that depends on record and column alone."""
    mixed = (n * 16 + column + 1) * 0x9E3779B97F4A7C15 % (1 << 64)
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 % (1 << 64)
    return int((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB % (1 << 64)) >> 54


def rows(first: int, end: int) -> Rows:
    """Return records, labels and weights of the stream: x float64[n, 4], label int32[n], weight float64[n].

    Every fourth record has no label, one of 16 cells is missing.
    """
    given = []
    for n in range(first, end):
        colour, x, city, z = drawn(n, 0) % 3, drawn(n, 1) / 1024, drawn(n, 2) % 2, drawn(n, 3) / 1024
        is_high = x > 0.6 or (colour == 1 and z > 0.5)
        label = is_high != (sum(n >= drift for drift in DRIFTS) % 2 == 1)
        cells = [
            np.nan if drawn(n, 4 + i) < 64 else float(cell) for i, cell in enumerate((colour, x, city, z))
        ]
        given.append((cells, int(label) if n % 4 else -1, 2.0 if n % 10 == 1 else 1.0))
    x_of, label_of, weight_of = zip(*given, strict=True)
    return np.array(x_of), np.array(label_of, dtype=np.int32), np.array(weight_of)


def play(model: Model, first: int, end: int) -> tuple[Model, list[int]]:
    """Return the model after these records of the stream, and the classes that it answered."""
    table = ModelTable()
    index = table.add(model)
    x, label, weight = rows(first, end)
    if model.spec.learner.unit_weights:
        weight[:] = 1.0
    answers = table.answer(np.full(end - first, index), x, label, weight)
    return table.model(index), [int(code) for code in answers.prediction]


def begun(name: str) -> Model:
    """Return a new model of a spec."""
    spec = Spec.parse(SPECS[name])
    return Model.create(spec, schema_of(spec))


def written(name: str) -> Model:
    """Return the model of a spec as it is written: after BEFORE records, with one request expired."""
    model, _ = play(begun(name), 0, BEFORE)
    if model.summary().outstanding:
        model.close(EXPIRED)
    return model


def described(data: bytes) -> dict[str, Any]:
    """Return what can be compared across machines, of a snapshot and of the model that goes on from it."""
    header, model = snapshot.describe(data), Model.restore(data)
    body = {
        "state": header.state,
        "words": header.words,
        "summary": dataclasses.asdict(model.summary()),
        "answers": answers(model),
    }
    after, predictions = play(model, BEFORE, BEFORE + AFTER)
    return body | {
        "then": {
            "predictions": "".join("-ab"[code + 1] for code in predictions),
            "words": len(snapshot.trim(after.plan, after.ints)),
            "summary": dataclasses.asdict(after.summary()),
            "answers": answers(after),
        }
    }


def answers(model: Model) -> list[dict[str, float]]:
    """Return the probabilities of the classes for some records."""
    x, _, _ = rows(BEFORE + AFTER, BEFORE + AFTER + QUESTIONS)
    table = ModelTable()
    index = table.add(Model.restore(model.snapshot()))
    found = table.answer(
        np.full(QUESTIONS, index), x, np.full(QUESTIONS, -1, dtype=np.int32), np.ones(QUESTIONS)
    )
    return [
        {name: round(float(share), DIGITS) for name, share in zip(model.schema.classes, shares, strict=False)}
        for shares in found.probability
    ]


def main() -> None:
    path, bodies = file_of_now(), {}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, given in SPECS.items():
            data = written(name).snapshot()
            archive.writestr(zipfile.ZipInfo(f"{name}.grove", OLDEST), data, zipfile.ZIP_DEFLATED, 9)
            bodies[name] = {"given": given} | described(data)
    lines = [f" {json.dumps(name)}: {json.dumps(body)}" for name, body in bodies.items()]
    path.with_suffix(".json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
