"""A short run of the chaos program: workers die, freeze and lose their disks, and nothing shows."""

from pathlib import Path

import pytest

from benchmarks.chaos import steps
from benchmarks.chaos.__main__ import brokers, parse, run, wrong
from benchmarks.chaos.acquiring import SPECS
from benchmarks.chaos.installation import CHALLENGES, compile_kernels
from streamapp.embedded import EmbeddedBroker
from streamapp.worker.faults import POINTS

pytestmark = pytest.mark.broker

PRINTED = {  # what the program is asked to print, whatever else it does
    "faults_by_kind",
    "aborted_transactions",
    "torn_snapshots",
    "zombies_that_wrote",
    "records",
    "lost",
    "doubled",
    "state_equal",
    "deleted",
    "restores",
    "takeover_seconds_p50",
    "takeover_seconds_max",
}


SHORT = "--seconds 4 --rate 200"
WHOLE = "--seconds 13 --rate 400 --features"


@pytest.mark.parametrize(
    ("guarantee", "more"),
    [
        ("exactly_once", SHORT),
        pytest.param("exactly_once", WHOLE, marks=pytest.mark.nightly),
        pytest.param("at_least_once", WHOLE, marks=pytest.mark.nightly),
        pytest.param("exactly_once", f"{WHOLE} --learner arf", marks=pytest.mark.nightly),
        pytest.param("exactly_once", f"{WHOLE} --learner hat", marks=pytest.mark.nightly),
    ],
)
def test_under_faults_nothing_is_lost_and_models_are_those_of_an_undisturbed_worker(
    private_broker: EmbeddedBroker, tmp_path: Path, guarantee: str, more: str
) -> None:
    compile_kernels()
    report = run(
        parse(f"--workers 2 --seed 71 --guarantee {guarantee} {more}".split()), tmp_path, private_broker
    )
    assert wrong(report) == {}, report
    assert report.keys() >= PRINTED
    assert report["challenges"]["challenged"] == len(CHALLENGES), report
    buys = "--features" in more
    models = 18 + len(SPECS) * buys
    assert (report["faults"] >= 1, report["rows"] > 300, report["models"]) == (True, True, models), report
    if buys:
        bought = report["purchases"]
        assert min(bought["features_charged"], bought["values_again"], bought["answers"]) > 50, report


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_five_minutes_of_faults(private_broker: EmbeddedBroker, tmp_path: Path, guarantee: str) -> None:
    compile_kernels()
    line = f"--workers 2 --seconds 300 --rate 400 --seed 72 --features --guarantee {guarantee}"
    report = run(parse(line.split()), tmp_path, private_broker)
    assert wrong(report) == {}, report
    assert report["faults"] > 10, report


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_faults_of_three_brokers(tmp_path: Path) -> None:
    compile_kernels()
    options = parse(["--brokers", "3", "--workers", "2", "--seconds", "180", "--rate", "200", "--seed", "73"])
    with brokers(options, tmp_path) as site:
        report = run(options, tmp_path, *site)
    assert wrong(report) == {}, report
    assert report["pauses"].keys() == report["faults_by_kind"].keys(), report


@pytest.mark.nightly
@pytest.mark.timeout(3600)  # ten steps of a minute or so each
@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_a_worker_may_die_at_any_step(private_broker: EmbeddedBroker, tmp_path: Path, guarantee: str) -> None:
    compile_kernels()
    options = steps.parse(f"--rate 200 --guarantee {guarantee}".split())
    reports = [steps.run(step, options, tmp_path, private_broker) for step in POINTS]
    assert [wrong(report) for report in reports] == [{}] * len(POINTS), reports
