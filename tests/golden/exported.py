"""Writes an exported model anew: ``python -m tests.golden.exported``.

``exported-<format>-<state>.grove`` is the file, ``.json`` beside it what must be found in it, with answers.
Files of formats that were released stay, and stay readable, as long as releases read their state version. The
files of each state version that is written have the same story; their specs differ (`versions.ADDED`).
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from core.model import file as model_file
from core.model.model import Model
from streamapp.worker.task.models.files.exported import write_exported
from tests.golden.versions import WRITTEN, ascending, extended
from tests.topology.partition import Partition, config

HERE = Path(__file__).parent
QUESTIONS: list[dict[str, Any]] = [{"x": n, "colour": ["red", "green", "blue"][n % 3]} for n in range(10)]


def files() -> list[Path]:
    return ascending(HERE.glob("exported-*.grove"))


def file_of_now(version: int) -> Path:
    """Return the file of a state version that is written (WRITTEN)."""
    return HERE / f"exported-{model_file.FORMAT_VERSION}-{version}.grove"


def played(version: int) -> Partition:
    """Return a partition with a model that has split, waits for labels and takes in new classes."""
    spec = {"query": "random", "drift": "ddm", "evaluation": {"window": 8, "every": 50}}
    partition = Partition(config(extended(spec, version)))
    for n in range(150):
        features = {"x": n % 10, "colour": ["red", "green"][n % 3 == 0]}
        document: dict[str, Any] = {"id": f"i{n}", "features": features}
        if n % 3:
            document["label"] = "high" if n % 10 > 5 else "low"
        partition.instances(document, key="shop/ü", at=10 * n)
    return partition


def written(version: int) -> bytes:
    """Return the exported model of the story, in a state version."""
    store = played(version).task.models
    taken = {"prefix": "t.", "partition": 3, "positions": {"controls": 0, "instances": 150, "labels": 0}}
    return write_exported(store.record(store.keys.slot("shop/ü")), taken)


def described(data: bytes) -> dict[str, Any]:
    """Return what can be compared across machines."""
    contents = model_file.unwrap(data)
    model = Model.restore(contents.snapshot)
    return {
        "head": contents.head,
        "summary": dataclasses.asdict(model.summary()),
        "answers": [answer(model, question) for question in QUESTIONS],
    }


def answer(model: Model, question: dict[str, Any]) -> list[Any]:
    prediction = model.predict(question)
    return [
        prediction.label,
        {name: round(share, 9) for name, share in prediction.probabilities.items()},
        prediction.version,
    ]


def main() -> None:
    for version in WRITTEN:
        path = file_of_now(version)
        data = written(version)
        path.write_bytes(data)
        path.with_suffix(".json").write_text(json.dumps(described(data), indent=1) + "\n")


if __name__ == "__main__":
    main()
