"""Real data sets have the rows, attributes and classes that their sources state (CDT, table 1)."""

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from topics.readers import open_dataset

ROOT = Path(__file__).resolve().parents[4]
COMMITTED = ROOT / "examples" / "data"
FOLDER = Path(os.environ.get("GROVE_DATASETS", ROOT.parent / "shared" / "datasets"))

# file(s), options, rows, attributes (nominal ones), rows with a missing value, classes
SETS = [
    ("elecNormNew.arff.gz", {}, 45_312, 8, 1, 0, {"DOWN": 26_075, "UP": 19_237}),
    ("airlines.csv.gz", {"nominal": ["DayOfWeek"]}, 539_383, 7, 4, 0, {"0": 299_119, "1": 240_264}),
    ("weather.csv.gz", {}, 18_159, 8, 0, 0, {"0": 12_461, "1": 5_698}),
    ("SEA_training_class.csv.gz", {}, 50_000, 0, 0, 0, {"0": 30_952, "1": 19_048}),
    ("SEA_training_data.csv.gz", {"labelled": False}, 50_000, 3, 0, 0, {None: 50_000}),
    ("spam.libsvm.gz", {}, 9_324, 39_916, 0, 0, {"0": 6_937, "1": 2_387}),
    ("phishing.csv.gz", {}, 1_250, 9, 0, 0, {"0": 702, "1": 548}),
    ("a9a.gz", {}, 32_561, 123, 0, 0, {"-1": 24_720, "1": 7_841}),
    ("a9a.t.gz", {}, 16_281, 122, 0, 0, {"-1": 12_435, "1": 3_846}),
    ("diabetes.arff.gz", {}, 768, 8, 0, 0, {"tested_negative": 500, "tested_positive": 268}),
    ("breast.w.arff.gz", {}, 699, 9, 0, 16, {"benign": 458, "malignant": 241}),
    ("fetal_health.csv.gz", {}, 2_126, 21, 0, 0, {"1": 1_655, "2": 295, "3": 176}),
    (
        "cardiotocography.csv.gz",
        {},
        2_126,
        35,
        0,
        0,
        dict(zip(map(str, range(1, 11)), [384, 579, 53, 81, 72, 332, 252, 107, 69, 197], strict=True)),
    ),
    ("spect.train.arff.gz", {"target": "OVERALL_DIAGNOSIS"}, 80, 22, 22, 0, {"0": 40, "1": 40}),
    ("spect.test.arff.gz", {"target": 0}, 187, 22, 22, 0, {"0": 15, "1": 172}),
    (
        "zoo.arff.gz",
        {"ignore": "animal"},
        101,
        16,
        15,
        0,
        {
            "mammal": 41,
            "bird": 20,
            "fish": 13,
            "invertebrate": 10,
            "insect": 8,
            "reptile": 5,
            "amphibian": 4,
        },
    ),
    (
        "led7.csv.gz",
        {},
        3_200,
        7,
        0,
        0,
        dict(zip("0123456789", [325, 333, 319, 270, 336, 335, 341, 304, 327, 310], strict=True)),
    ),
    ("compas_gosdt_binned.csv.gz", {}, 6_907, 12, 0, 0, {"0": 3_711, "1": 3_196}),
    ("compas_gosdt_2016.csv.gz", {}, 5_020, 6, 0, 0, {"0": 2_774, "1": 2_246}),
    ("compas_corels_train-binary.csv.gz", {}, 6_489, 14, 0, 0, {"0": 3_583, "1": 2_906}),
    ("compas_corels_test-binary.csv.gz", {}, 721, 14, 0, 0, {"0": 377, "1": 344}),
    ("balance.scale.arff.gz", {}, 625, 4, 0, 0, {"L": 288, "R": 288, "B": 49}),
    ("waveform5000.arff.gz", {}, 5_000, 40, 0, 0, {"0": 1_692, "1": 1_653, "2": 1_655}),
    ("ionosphere.arff.gz", {}, 351, 34, 0, 0, {"g": 225, "b": 126}),
    ("sonar.arff.gz", {}, 208, 60, 0, 0, {"Mine": 111, "Rock": 97}),
    ("heart.statlog.arff.gz", {}, 270, 13, 0, 0, {"absent": 150, "present": 120}),
    ("heart.c.arff.gz", {}, 303, 13, 7, 7, {"<50": 165, ">50_1": 138}),
    ("credit.g.arff.gz", {}, 1_000, 20, 13, 0, {"good": 700, "bad": 300}),
]

KDD = {
    "smurf": 280_790,
    "neptune": 107_201,
    "normal": 97_278,
    "back": 2_203,
    "satan": 1_589,
    "ipsweep": 1_247,
    "portsweep": 1_040,
    "warezclient": 1_020,
    "teardrop": 979,
    "pod": 264,
    "nmap": 231,
    "guess_passwd": 53,
    "buffer_overflow": 30,
    "land": 21,
    "warezmaster": 20,
    "imap": 12,
    "rootkit": 10,
    "loadmodule": 9,
    "ftp_write": 8,
    "multihop": 7,
    "phf": 4,
    "perl": 3,
    "spy": 2,
}


def counted(dataset):
    """Return rows, rows with a missing value, and rows of each class."""
    rows = missing = 0
    classes: Counter[str | None] = Counter()
    for x, y in dataset.batches():
        assert x.shape == (len(y), len(dataset.names))
        rows += len(y)
        missing += int(np.isnan(x).any(axis=1).sum())
        for code, count in zip(*np.unique(y, return_counts=True), strict=True):
            classes[dataset.classes[code] if code >= 0 else None] += int(count)
    return rows, missing, dict(classes)


def shared(name):
    path = FOLDER / name
    if not path.exists():
        pytest.skip(f"{path} is not there; GROVE_DATASETS names the folder of data sets")
    return path


@pytest.mark.parametrize("expected", SETS, ids=[row[0] for row in SETS])
def test_counts_of_a_data_set(expected):
    name, options, rows, attributes, nominal, missing, classes = expected
    dataset = open_dataset(shared(name), **options)
    assert counted(dataset) == (rows, missing, classes)
    assert (len(dataset.names), dataset.kinds.count("nominal")) == (attributes, nominal)


def test_counts_of_airlines_categories():
    dataset = open_dataset(shared("airlines.csv.gz"), nominal=["DayOfWeek"])
    counted(dataset)
    sizes = dict(zip(dataset.names, map(len, dataset.values), strict=True))
    assert sizes == {
        "Airline": 18,
        "Flight": 0,
        "AirportFrom": 293,
        "AirportTo": 293,
        "DayOfWeek": 7,
        "Time": 0,
        "Length": 0,
    }
    x, y = next(dataset.batches(1))
    words = [v[int(c)] if v else c for c, v in zip(x[0], dataset.values, strict=True)]
    assert words == ["CO", 269, "SFO", "IAH", "3", 15, 205] and dataset.classes[y[0]] == "1"


def test_counts_of_kdd99_with_the_dots_of_the_file():
    dataset = open_dataset(shared("kddcup.data_10_percent.gz"))
    assert counted(dataset) == (494_021, 0, {name + ".": count for name, count in KDD.items()})
    assert (len(dataset.names), dataset.kinds.count("nominal")) == (41, 3)


def test_counts_of_the_kdd99_test_set():
    rows, missing, classes = counted(open_dataset(shared("kddcup_corrected.gz")))
    assert (rows, missing, len(classes)) == (311_029, 0, 38)
    assert {"smurf.": 164_091, "normal.": 60_593, "snmpgetattack.": 7_741}.items() <= classes.items()


def test_counts_of_the_demo_data():
    """Committed with the project, so always there: a9a and a9a.t one after the other."""
    dataset = open_dataset([COMMITTED / "a9a.gz", COMMITTED / "a9a.t.gz"])
    assert counted(dataset) == (48_842, 0, {"-1": 37_155, "1": 11_687})
    assert (len(dataset.names), dataset.rows) == (123, 48_842)
    x, _ = next(dataset.batches(1))
    assert (np.flatnonzero(x[0]) + 1).tolist() == [3, 11, 14, 19, 39, 42, 55, 64, 67, 73, 75, 76, 80, 83]
