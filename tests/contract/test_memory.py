"""What models cost, measured as the benchmarks do it: the growth of a process of its own."""

import csv
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

MODELS = 10_000
LIMIT = 700 * 10**6 / 100_000  # bytes of a model: 100,000 of them in 700 MB
ONE = 4_096  # bytes of a model in all, Python objects included


def test_ten_thousand_models_of_one_leaf_have_their_share_of_the_limit() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory", "--models", str(MODELS)],
        capture_output=True,
        text=True,
        check=True,
    )
    figures = json.loads(done.stdout)
    assert (figures["models"], figures["attributes"], figures["classes"]) == (MODELS, 10, 2)
    assert figures["bytes_per_model"] <= min(LIMIT, ONE)
    assert figures["bytes_per_model"] >= figures["buffer_bytes"], "the buffers alone take that much"


@pytest.mark.nightly
def test_models_that_met_values_in_orders_of_their_own_share_what_they_know() -> None:
    """A schema kept all its successors once: a megabyte a model, never freed; 10,000 may take 100 MB."""
    models = 1_500
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.schemas", "--models", str(models)],
        capture_output=True,
        text=True,
        check=True,
    )
    figures = json.loads(done.stdout)
    half, whole = figures["steps"][1], figures["steps"][-1]
    assert (half["number"], whole["number"]) == (models // 2, models)
    a_model = (whole["rss"] - half["rss"]) / (models - models // 2)
    assert a_model <= 2 * 100 * 10**6 / 10_000, "twice the share of one: pages come in pieces"
    assert whole["models"] > models * 1_000
    assert whole["shared"] > models * 3 * 50
    assert figures["freed"]["shared"] < whole["shared"] / 2


TRIAL = """
import sys
from streamapp.cli import main
try:
    main()
finally:
    status = open("/proc/self/status").read().split()
    print(int(status[status.index("VmHWM:") + 1]) // 1024, file=sys.stderr)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_columns_of_thousands_of_strings_fit_into_a_small_machine(tmp_path: Path) -> None:
    """Ten columns of 3,000 values took two gigabytes once; the limit is that of a check from outside."""
    draw, path, rows = random.Random(3), tmp_path / "strings.csv", 12_000
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow([*(f"s{i}" for i in range(10)), "class"])
        for _ in range(rows):
            numbers = [draw.randrange(3_000) for _ in range(10)]
            lines.writerow([*(f"value-{i}-{n}" for i, n in enumerate(numbers)), "ab"[numbers[0] % 2]])
    words = ["prequential", "--data", str(path), "--target", "class", "--json"]
    done = subprocess.run([sys.executable, "-c", TRIAL, *words], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["labels"] == rows
    assert int(done.stderr.split()[-1]) < 700
