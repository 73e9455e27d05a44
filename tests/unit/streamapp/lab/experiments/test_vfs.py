"""The experiments of VFS, their quick versions: the order of the systems, not the noise."""

import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks.datasets import folder
from streamapp.lab.experiments import conduct
from streamapp.lab.experiments.base import experiment
from streamapp.lab.experiments.split_delay import split_delay
from streamapp.lab.experiments.vfs import vfs_data, vfs_efdt, vfs_figure1, vfs_table1, vfs_table2
from streamapp.lab.experiments.vfs.vfs_streams import STREAMS

# Attempts, leaves and accuracy of VFDT, OSM and IMAC on the first 20,000 records.
TABLE_2 = {
    "SEA": [(97, 6, 79.95), (91, 7, 79.75), (17, 7, 80.3)],
    "LED": [(99, 2, 11.79), (62, 2, 11.88), (4, 2, 11.86)],
    "AGR": [(87, 11, 66.35), (82, 12, 69.85), (41, 11, 63.4)],
    "RBF": [(100, 1, 9.6), (41, 1, 9.6), (1, 1, 9.6)],
    "RTG": [(74, 58, 43.2), (72, 58, 43.2), (37, 62, 45.15)],
}


def ran(name: str, keep: Any = lambda cell: True) -> list[dict[str, Any]]:
    """Return parameters and results of the quick cells."""
    plan = experiment(name)
    return [cell | plan.run(cell) for cell in plan.cells("quick", None) if keep(cell)]


def test_the_streams_are_those_of_table_1() -> None:
    lines = vfs_table1.report(ran("vfs-table1")).tables["table1"]
    assert [line["stream"] for line in lines] == list(STREAMS)
    for line in lines:
        assert line["attributes"] == line["attributes published"]
        assert line["classes"] == line["classes published"]


def test_schedules_attempt_less_often_than_vfdt() -> None:
    few = ("SEA", "LED", "AGR")
    rows = ran("vfs-table2", lambda cell: cell["stream"] in few and cell["what"] == "run")
    lines = vfs_table2.report(rows).tables["table2"]
    for stream in few:
        own = {line["system"]: line for line in lines if line["stream"] == stream}
        attempts = {system: line["attempts"] for system, line in own.items()}
        assert attempts["IMAC"] < attempts["OSM"] <= attempts["VFDT"] <= 20_000 // 200
        if not STREAMS[stream].drifts:
            accuracies = [line["accuracy"] for line in own.values()]
            assert max(accuracies) - min(accuracies) < 5.0
        assert not own["VFDT"]["whole"]


@pytest.mark.parametrize("stream", TABLE_2)
def test_small_runs_of_table_2_are_the_same_everywhere(stream: str) -> None:
    """No drawn number, no clock: a change of these figures is a change of the trees."""
    rows = ran("vfs-table2", lambda cell: cell["stream"] == stream and cell["what"] == "run")
    lines = vfs_table2.report(rows).tables["table2"]
    figures_of = {line["system"]: (line["attempts"], line["leaves"], line["accuracy"]) for line in lines}
    assert figures_of == dict(zip(("VFDT", "OSM", "IMAC"), TABLE_2[stream], strict=True))
    assert all(line["inactive"] == 0 for line in lines), "memory is not measured before a million records"


def test_the_whole_of_led_has_the_published_accuracies() -> None:
    assert accuracies("LED") == pytest.approx(vfs_table2.PUBLISHED["LED"]["accuracy"], abs=0.0051)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("stream", "off"), [("SEA", 0.0051), ("AGR", 0.011), ("RBF", 0.011), ("RTG", 0.11)])
def test_whole_streams_have_the_published_accuracies(stream: str, off: float) -> None:
    """A hundredth is rounding; OSM's intervals on RTG are a little longer or shorter [D37]."""
    assert accuracies(stream) == pytest.approx(vfs_table2.PUBLISHED[stream]["accuracy"], abs=off)


def accuracies(stream: str) -> tuple[float, ...]:
    """Return what the three systems reach on a whole stream."""
    cells = vfs_table2.cells("full", None)
    rows = [cell for cell in cells if (cell["what"], cell["stream"]) == ("run", stream)]
    lines = vfs_table2.report([row | vfs_table2.run(row) for row in rows]).tables["table2"]
    assert all(line["whole"] for line in lines)
    return tuple(line["accuracy"] for line in lines)


def test_delays_are_measured_beside_an_ideal_tree() -> None:
    rows = ran("vfs-table2", lambda cell: cell["stream"] == "AGR" and cell["what"] == "harness")
    lines = {line["system"]: line for line in vfs_table2.report(rows).tables["table2-delays"]}
    assert list(lines) == ["VFDT", "OSM", "IMAC"]
    assert lines["IMAC"]["attempts"] < lines["VFDT"]["attempts"]
    assert lines["VFDT"]["bound splits"] == lines["IMAC"]["bound splits"] + lines["IMAC"]["pending"] > 0
    assert lines["IMAC"]["delay"] < lines["VFDT"]["delay"] < 200


def test_time_and_attempts_grow_with_records() -> None:
    rows = ran("vfs-figure1", lambda cell: cell["panel"] == "records" and cell["records"] <= 8000)
    report = vfs_figure1.report(rows)
    own = [row for row in rows if row["system"] == "VFDT"]
    attempts = [row["attempts"] for row in sorted(own, key=lambda row: row["records"])]
    assert attempts == sorted(attempts)
    assert set(report.charts) == {
        f"figure1-{panel}-{what}"
        for panel in ("attributes", "records")
        for what in ("seconds", "attempt-seconds", "attempts")
    }
    for line in report.tables["figure1"]:
        assert 0.0 < line["attempt seconds"] <= line["seconds"]


def test_attempt_time_of_imac_is_what_vfdt_does_without() -> None:
    """VFDT learns and answers in 1.0 seconds; IMAC takes 1.5 for that and for watching."""
    point = {
        "panel": "records",
        "attributes": 400,
        "records": 1000,
        "attempts": 1,
        "leaves": 1,
        "accuracy": 0.5,
    }
    seconds = {"VFDT": (3.0, 2.0), "OSM": (2.0, 0.9), "IMAC": (1.8, 0.3)}
    rows = [point | {"system": name, "seconds": s, "deciding": d} for name, (s, d) in seconds.items()]
    elsewhere = point | {"records": 10, "system": "VFDT", "seconds": 9.0, "deciding": 0.0}
    lines = vfs_figure1.report([*rows, elsewhere]).tables["figure1"]
    assert [line["attempt seconds"] for line in lines] == [2.0, 0.9, pytest.approx(0.8), 0.0]


def test_no_table_has_more_digits_than_are_known() -> None:
    rows = ran("vfs-figure1", lambda cell: cell["panel"] == "attributes" and cell["attributes"] == 50)
    written = conduct._markdown("figure1", vfs_figure1.report(rows).tables["figure1"])
    assert not re.search(r"\.\d{6}", written)


@pytest.mark.parametrize("stream", STREAMS)
def test_a_shorter_stream_has_its_changes_at_the_same_shares(stream: str) -> None:
    whole, short = (STREAMS[stream].open(n) for n in (STREAMS[stream].records, 10_000))
    assert whole.schema is short.schema
    if STREAMS[stream].drifts:
        assert short.position * STREAMS[stream].records == whole.position * 10_000  # type: ignore[attr-defined]


def test_the_whole_is_what_was_published(tmp_path: Path) -> None:
    cells = vfs_table2.cells("full", None)
    assert len(cells) == (3 + 1) * len(STREAMS) + 3
    assert {(cell["stream"], cell["records"]) for cell in cells} == {
        (name, stream.records) for name, stream in STREAMS.items()
    }


def test_efdt_splits_earlier_than_vfdt_and_imac_saves_it_attempts() -> None:
    few = ("SEA", "LED", "AGR")
    rows = ran("vfs-efdt", lambda cell: cell["stream"] in few)
    assert vfs_efdt.report(rows).tables["efdt"] == rows
    for stream in few:
        own = {row["system"]: row for row in rows if row["stream"] == stream}
        assert list(own) == ["VFDT", "EFDT", "EFDT-IMAC", "EFDT-IMAC both"]
        assert own["EFDT"]["splits"] > own["VFDT"]["splits"]
        assert own["EFDT-IMAC"]["attempts"] < own["EFDT"]["attempts"]
        if stream != "LED":  # of which few records are like those before: watched nodes are due often
            assert own["EFDT-IMAC both"]["attempts"] <= own["EFDT"]["attempts"] / 2
        assert all(row["accuracy"] > 60.0 for row in own.values())
    assert all(row["accuracy"] > 86.0 for row in rows if row["stream"] == "SEA")


def test_real_sets_that_a_folder_has_are_in_the_table(tmp_path: Path) -> None:
    """Two images of two by two pixels in place of MNIST: what is read is what is learned."""
    images, labels = (tmp_path / name for name in vfs_data.SHARES["MNIST8M"].files)
    images.write_bytes(bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2, *range(8)]))
    labels.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 7]))
    assert vfs_data.found(tmp_path) == ["MNIST8M"]
    assert vfs_data.found(None) == []
    cells = [cell for cell in vfs_table2.cells("quick", tmp_path) if cell["stream"] == "MNIST8M"]
    systems = vfs_table2.systems()
    assert [(cell["what"], cell.get("system")) for cell in cells] == [
        *(("run", system) for system in systems),
        ("harness", None),
    ]
    assert cells[-1]["systems"] == systems
    rows = [cell | vfs_table2.run(cell) for cell in cells[:1]]
    (line,) = vfs_table2.report(rows).tables["table2"]
    assert (line["leaves"], line["cumulative accuracy"], line["whole"]) == (1, 50.0, False)


@pytest.mark.skipif(not folder().is_dir(), reason="no folder of data sets")
def test_the_real_sets_are_those_of_table_1() -> None:
    for name, attributes, classes in (("KDD99", 41, 23), ("MNIST8M", 784, 10)):
        records = vfs_data.load(name, folder())
        assert (records.x.shape, len(records.y)) == (
            (vfs_data.SHARES[name].records, attributes),
            vfs_data.SHARES[name].records,
        )
        assert records.schema.n_classes == classes
        assert not records.schema.classes_open
        assert not any(attribute.open for attribute in records.schema.attributes)


@pytest.mark.nightly
def test_attempts_and_delays_on_the_whole_of_led_are_those_of_table_2() -> None:
    """OSM's are a few per cent apart: its interval is found by bisection on integers [D37]."""
    stream = STREAMS["LED"].open(STREAMS["LED"].records)
    vfdt, osm, imac = split_delay(
        stream.batches(STREAMS["LED"].records),
        stream.schema,
        list(vfs_table2.SCHEDULES.values()),
        vfs_table2.COMPAT,
    )
    published = vfs_table2.PUBLISHED["LED"]
    assert (vfdt.attempts, imac.attempts) == (published["attempts"][0], published["attempts"][2])
    assert vfdt.mean_bound_delay == pytest.approx(published["delay"][0], abs=0.01)
    assert imac.mean_bound_delay == pytest.approx(published["delay"][2], abs=0.01)
    assert osm.attempts == pytest.approx(published["attempts"][1], rel=0.05)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_attempts_and_delays_on_the_whole_of_agr_are_nearly_those_of_table_2() -> None:
    """VFDT's attempts are the published ones; all else is within 1 % (docs/experiments.md)."""
    cells = vfs_table2.cells("full", None)
    (cell,) = (c for c in cells if (c["what"], c["stream"]) == ("harness", "AGR"))
    lines = vfs_table2.report([cell | vfs_table2.run(cell)]).tables["table2-delays"]
    assert lines[0]["attempts"] == vfs_table2.PUBLISHED["AGR"]["attempts"][0]
    for line in lines:
        assert line["attempts"] == pytest.approx(line["attempts published"], rel=0.001)
        assert line["delay"] == pytest.approx(line["delay published"], rel=0.01)
