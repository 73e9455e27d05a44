"""What many small models cost, measured as the benchmark does it: the growth of a process of its own."""

import json
import subprocess
import sys

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
    told = json.loads(done.stdout)
    assert (told["models"], told["attributes"], told["classes"]) == (MODELS, 10, 2)
    assert told["bytes_per_model"] <= min(LIMIT, ONE)
    assert told["bytes_per_model"] >= told["buffer_bytes"], "the buffers alone take that much"
