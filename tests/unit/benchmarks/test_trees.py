import gzip
import json

import numpy as np
import pytest

from benchmarks import trees
from benchmarks.datasets import FOLDER_VARIABLE, load
from core.spec import presets
from topics.errors import DatasetError


def idx(array):
    """Return an array of bytes as an IDX file."""
    sizes = b"".join(int(size).to_bytes(4, "big") for size in array.shape)
    return gzip.compress(bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes())


def test_mnist_is_read_from_idx_files(tmp_path, monkeypatch):
    pixels = np.random.default_rng(0).integers(0, 256, (5, 28, 28)).astype(np.uint8)
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(idx(pixels))
    (tmp_path / "train-labels-idx1-ubyte.gz").write_bytes(idx(np.array([3, 1, 4, 1, 5], dtype=np.uint8)))
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    rows = load("mnist", 4)
    assert rows.x.shape == (4, 784)
    assert rows.x[3].tolist() == pixels[3].reshape(-1).tolist()
    assert rows.y.tolist() == [3, 1, 4, 1]
    assert rows.classes == 10


def test_a_file_that_is_no_idx_file_is_refused(tmp_path, monkeypatch):
    for name in ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"):
        (tmp_path / name).write_bytes(gzip.compress(b"\x1f\x8bmore"))
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    with pytest.raises(DatasetError, match="must begin with 00 00 08"):
        load("mnist")


def test_every_preset_has_a_line(capsys):
    ran = ["--streams", "gen:sea?function=1&n=3000", "--peers", "", "--repeats", "1", "--json"]
    assert trees.main(ran) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["system"] for line in lines] == list(presets())
    assert all(line["records"] == 3000 and line["accuracy"] > 0.5 for line in lines)


def test_a_missing_data_set_is_said_and_left_out(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    assert trees.main(["--streams", "mnist", "--peers", ""]) == 1
    assert "mnist is left out" in capsys.readouterr().err
    assert trees.main(["--presets", "no-tree"]) == 64
