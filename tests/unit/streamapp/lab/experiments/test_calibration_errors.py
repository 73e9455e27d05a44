"""The experiment on calibration: its errors are those of the answers."""

import gzip

import numpy as np
import pytest

from streamapp.lab.experiments.probabilities import calibration, probability_streams
from tests.naive.calibration import expected_error

CELL = {
    "stream": "waveform",
    "address": probability_streams.STREAMS["waveform"],
    "calibration": "platt",
    "query": "random",
    "delay": 0,
    "records": 20_000,
    "seeds": 1,
}


def test_a_tenth_of_the_labels_halves_the_error_and_sets_hold_nine_tenths():
    result = calibration.run(CELL)
    assert result["error_after"] < 0.5 * result["error_before"]
    assert result["coverage"] == pytest.approx(0.9, abs=0.04)
    assert 1.0 <= result["set_size"] < 2.0


@pytest.mark.parametrize("name", calibration.CALIBRATIONS)
def test_after_an_abrupt_change_late_labels_cost_no_accuracy(name):
    """A detector starts a new tree; the labels that come next belong to answers of the tree before."""
    stream = {"stream": "stagger-drift", "address": probability_streams.STREAMS["stagger-drift"]}
    result = calibration.run(CELL | stream | {"calibration": name, "query": "ask", "delay": 2000})
    assert result["accuracy_before"] > 0.85
    assert result["accuracy_after"] > result["accuracy_before"] - 0.005


def test_cells_are_the_streams_whose_files_are_there(tmp_path):
    for file in ("a9a.gz", "elecNormNew.arff.gz"):
        (tmp_path / file).touch()
    cells = calibration.cells("full", tmp_path)
    assert {cell["stream"] for cell in cells} == {*probability_streams.STREAMS, "elec"}, "a9a has two files"
    (tmp_path / "a9a.t.gz").touch()
    streams = {cell["stream"]: cell["address"] for cell in calibration.cells("full", tmp_path)}
    assert streams["a9a"] == f"{tmp_path / 'a9a.gz'},{tmp_path / 'a9a.t.gz'}"
    delays = {(cell["stream"], cell["delay"]) for cell in calibration.cells("full", tmp_path)}
    assert {("led", 0), ("led", 1000), ("stagger-drift", 0), ("stagger-drift", 2000)} <= delays
    assert {cell["stream"] for cell in calibration.cells("quick", tmp_path)} == {"rbf", "random-tree"}


def test_digits_are_read_by_their_main_components(tmp_path):
    draw = np.random.default_rng(1)
    pixels = draw.integers(0, 256, (90, 5, 6)).astype(np.uint8)
    labels = draw.integers(0, 10, 90).astype(np.uint8)
    files = [tmp_path / file for file in probability_streams.FILES[probability_streams.DIGITS]]
    for file, array in zip(files, (pixels, labels), strict=True):
        sizes = b"".join(int(size).to_bytes(4, "big") for size in array.shape)
        file.write_bytes(gzip.compress(bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes()))
    cell = {"stream": probability_streams.DIGITS, "address": ",".join(map(str, files)), "records": 60}
    ((schema, x, y),) = probability_streams.batches(cell, 1, calibration.spec_of(CELL, 1))
    assert (schema.n_attributes, schema.classes) == (20, tuple("0123456789"))
    assert y.tolist() == labels[:60].tolist()
    whole, _ = probability_streams.digits(cell["address"])
    assert x.tolist() == whole[:60].tolist()
    flat = pixels.reshape(90, -1) / 255.0
    expected = np.linalg.svd(flat - flat.mean(axis=0), compute_uv=False)[:20]
    assert np.linalg.norm(whole, axis=0) == pytest.approx(expected, rel=1e-4)
    assert abs(np.corrcoef(whole, rowvar=False) - np.eye(20)).max() < 1e-3, "components are uncorrelated"


def test_the_error_is_that_of_its_definition():
    claims = np.random.default_rng(1).random(500)
    hits = np.random.default_rng(2).random(500) < claims**2
    assert calibration.expected_error(claims, hits) == pytest.approx(expected_error(claims, hits))
    assert calibration.expected_error(np.ones(3), np.ones(3, bool)) == 0.0


def test_a_report_has_a_line_for_each_stream_and_the_means():
    rows = [
        CELL
        | {"stream": name}
        | dict.fromkeys(calibration.FIGURES, value)
        | {f"{figure}_se": 0.3 * value for figure in calibration.UNCERTAIN}
        for name, value in (("a", 1), ("b", 2))
    ]
    report = calibration.report(rows)
    assert [line["coverage"] for line in report.tables["streams"]] == [1, 2]
    assert [line["coverage"] for line in report.tables["means"]] == [1.5]
    assert report.tables["means"][0]["coverage_se"] == pytest.approx(np.hypot(0.3, 0.6) / 2, abs=1e-5)


def test_the_error_of_one_seed_is_unknown():
    assert calibration.standard_error([0.5]) is None
    assert calibration.standard_error([0.4, 0.6]) == pytest.approx(0.1)
    assert calibration.error_of_mean([0.1, None]) is None
