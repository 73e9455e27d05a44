"""Writes ``crowds.json`` with crowd-kit 1.4: Dawid and Skene's estimate for the answers of simulated crowds.

python -m tests.golden.crowds    (where crowd-kit is installed; it is no dependency of ours)
"""

import json
from pathlib import Path
from typing import Any

from tests.unit.streamapp.people.crowds import CASES, crowd

FILE = Path(__file__).with_suffix(".json")


def by_crowd_kit(records):
    """Return the class of each record and the confusion matrix of each annotator."""
    import pandas
    from crowdkit.aggregation import DawidSkene

    rows = [
        (number, name, label)
        for number, record in enumerate(records)
        for name, label in record.answers.items()
    ]
    estimate = DawidSkene(n_iter=200).fit(pandas.DataFrame(rows, columns=["task", "worker", "label"]))
    confusion: dict[str, Any] = {}  # annotator → true class → answered class → probability
    for (worker, answered), row in estimate.errors_.iterrows():
        for true, probability in row.items():
            confusion.setdefault(worker, {}).setdefault(true, {})[answered] = round(float(probability), 6)
    return {"labels": estimate.labels_.sort_index().tolist(), "confusion": confusion}


if __name__ == "__main__":
    figures = {name: by_crowd_kit(crowd(*case)) for name, case in CASES.items()}
    FILE.write_text(json.dumps(figures, sort_keys=True) + "\n")
