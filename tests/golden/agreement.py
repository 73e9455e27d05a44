"""Writes ``agreement.json`` again, with statsmodels 0.15, krippendorff 0.9 and irrCAC 0.4.

    python -m tests.golden.agreement    (where these are installed; they are no dependency of ours)

Each case has the answers of each record, one number for each annotator; -1: no answer. irrCAC is Gwet's own.
"""

import json
from pathlib import Path

import numpy as np

FILE = Path(__file__).with_suffix(".json")
Z_95 = 1.959963984540054

CASES = {
    "two annotators": (60, 2, 2, 0.8, 0.0, 1),
    "two annotators, four classes, few of one": (80, 2, 4, 0.7, 0.0, 2),
    "four annotators": (40, 4, 3, 0.75, 0.0, 3),
    "four annotators who guess": (40, 4, 3, 0.0, 0.0, 4),
    "five annotators, missing answers": (70, 5, 3, 0.8, 0.5, 5),
    "three annotators, nearly always one class": (50, 3, 2, 0.97, 0.2, 6),
}


def answers(records, annotators, classes, accuracy, missing, seed):
    """Return int[records, annotators]; every record keeps two answers."""
    random = np.random.default_rng(seed)
    prior = np.arange(classes, 0, -1) ** 2
    true = random.choice(classes, records, p=prior / prior.sum())
    guesses = random.integers(0, classes, (records, annotators))
    codes = np.where(random.random((records, annotators)) < accuracy, true[:, None], guesses)
    codes[:, 2:][random.random((records, annotators - 2)) < missing] = -1
    return codes


def figures(codes):
    import krippendorff
    import pandas as pd
    from irrCAC.raw import CAC
    from statsmodels.stats import inter_rater

    classes = range(codes.max() + 1)
    seen = np.where(codes < 0, np.nan, codes)
    held = {"krippendorff": krippendorff.alpha(reliability_data=seen.T, level_of_measurement="nominal")}
    if codes.shape[1] == 2:
        table = np.array([[np.sum((codes == (i, j)).all(axis=1)) for j in classes] for i in classes])
        kappa = inter_rater.cohens_kappa(table)
        held["cohen"] = [
            kappa.kappa,
            kappa.kappa - Z_95 * kappa.std_kappa,
            kappa.kappa + Z_95 * kappa.std_kappa,
        ]
    if (codes >= 0).all():
        held["fleiss"] = inter_rater.fleiss_kappa(inter_rater.aggregate_raters(codes)[0])
    by_gwet = CAC(pd.DataFrame(seen), digits=12)
    for name, result in (("fleiss", by_gwet.fleiss()), ("krippendorff", by_gwet.krippendorff())):
        estimate = result["est"]
        held[f"{name} by irrCAC"] = [estimate["coefficient_value"], estimate["se"]]
    return held


def main():
    held = {}
    for name, case in CASES.items():
        codes = answers(*case)
        held[name] = {"answers": codes.tolist(), **figures(codes)}
    FILE.write_text(json.dumps(held, separators=(",", ":"), default=float) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
