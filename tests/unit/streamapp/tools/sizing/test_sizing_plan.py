"""Sizing plans: golden cases, properties, refusals, and a derivation that can be calculated again."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamapp.cli.main import main
from streamapp.errors import StreamappError, UsageError
from streamapp.tools.sizing.broker_load import broker_load
from streamapp.tools.sizing.busiest_worker import busiest_worker
from streamapp.tools.sizing.delays import LatencyError, least_p99
from streamapp.tools.sizing.measured_costs import Costs, read_costs
from streamapp.tools.sizing.sizing_plan import HotModelError, SizingPlan, plan_of
from streamapp.tools.sizing.worker_load import backlog_rate, load_of, record_us
from streamapp.tools.sizing.workload import GUARANTEES, Workload
from streamapp.worker.observability.cgroup_memory import CALM, WARN
from streamapp.worker.task.task_config import TaskConfig
from topics.clients.partitioner import partition_of

ROOT = Path(__file__).parents[5]

ROUND = Costs(
    record_us=2.0,
    byte_ns=10.0,
    many_models_us=1.0,
    round_us=1_000.0,
    short_round_us=500.0,
    run_us=100.0,
    commit_us=1_000.0,
    commit_partition_us=100.0,
    snapshot_us_per_mb=60_000.0,
    idle_us=5_000.0,
    exactly_once_ms=35.0,
    at_least_once_ms=15.0,
    process_mb=400.0,
    partition_mb=10.0,
    model_bytes=10_000.0,
    answer_bytes=100.0,
    frame_bytes=20.0,
    batch_bytes=150.0,
    journal_bytes=200.0,
)
"""Costs that a head can add."""

workloads = st.builds(
    Workload,
    rate=st.floats(1.0, 3e6),
    models=st.integers(200, 1_000_000),
    record_bytes=st.floats(10.0, 500.0),
    p99_ms=st.floats(101.0, 2_000.0),
    guarantee=st.sampled_from(GUARANTEES),
)


def plan(workload: Workload, costs: Costs = ROUND) -> SizingPlan | None:
    """The plan; None if one model needs more than a core."""
    try:
        return plan_of(workload, costs)
    except HotModelError:
        return None


def test_a_plan_by_hand() -> None:
    """100,000 records of 2 + 2 + 0.1 µs on one worker, with 10 rounds and 8 commits of 8 partitions."""
    planned = plan_of(Workload(100_000, 1_000, 200, 242), ROUND)
    assert (planned.workers, planned.partitions, planned.commit_interval_ms) == (1, 8, 125)
    # records 410,000; rounds 10 × (1,000 + 800) = 18,000; commits 8 × (1,000 + 800) = 14,400;
    # snapshots 1,000 × 10,000 bytes × 60,000 ÷ 60 = 10,000; idle 5,000
    assert planned.utilisation == pytest.approx(0.4574)
    assert planned.cores == planned.cores_per_worker == 0.7  # 0.4574 / 0.7 = 0.653
    assert planned.memory_mb == 490  # 400 + 8 × 10 + 1,000 × 10,000 bytes
    # records of 200 + 20 and answers of 100 bytes; 8 × 8 batches of 150 bytes and as many of the journal of
    # 200; snapshots 1,000 × 10,000 bytes a minute; ends of transactions of 78 bytes
    assert planned.broker.written_mb_per_s == pytest.approx(32.0 + 0.0096 + 0.0128 + 0.16667, rel=1e-4)
    assert planned.broker.replicated_mb_per_s == pytest.approx(2 * planned.broker.written_mb_per_s)
    assert planned.broker.read_mb_per_s == pytest.approx(32.0 + 64 * (150 + 78) / 1e6, rel=1e-5)
    # a fetch from each of 3 brokers a round; a commit: its records to each of them, and four steps
    assert planned.broker.requests_per_s == pytest.approx(10 * 3 + 8 * (3 + 4))


def test_the_brokers_of_a_plan_at_least_once_by_hand() -> None:
    """1,000 records a second in 8 partitions: half a core is enough for 744 rounds of 1.3 runs."""
    planned = plan_of(Workload(1_000, 100, 200, 242, "at_least_once", replicas=1), ROUND)
    # of 500,000 µs: records 4,010 (2 + 2 + 0.01 each), 10 commits of 8 partitions 18,000, snapshots 1,000,
    # idle 5,000; runs of all records 100,000: 371,990 remain for rounds of 500 µs
    rounds = 743.98
    assert planned.broker.requests_per_s == pytest.approx(2 * rounds + 10 * 5, rel=1e-3)
    # each record has a run and a batch of its own
    assert planned.broker.read_mb_per_s == pytest.approx((1_000 * 320 + 1_000 * 150) / 1e6, rel=1e-3)


def test_brokers_get_snapshots_of_the_models_that_learned_alone() -> None:
    """At 10 records/s, at most 600 of a million models learn between two snapshots."""
    planned = plan_of(Workload(10, 1_000_000, 200, 250), ROUND)
    assert planned.broker.written_mb_per_s < 0.2  # 600 × 10,000 bytes a minute, and the records
    assert any("models that learned since" in line for line in planned.derivation if "written" in line)


def test_a_plan_with_a_hot_model_by_hand() -> None:
    """A fifth of 300,000 records has one key; 2 workers get 0.2 + 0.8 × (1/2 + √(2 ln 2 / 2·10,000)) each."""
    planned = plan_of(Workload(300_000, 10_000, 200, 250, hottest=0.2), ROUND)
    share = 0.2 + 0.8 * (1 / 3 + math.sqrt(2 * math.log(3) / 30_000))
    assert planned.workers == 3
    assert planned.busiest_records_per_s == pytest.approx(300_000 * share, rel=1e-3)


MODELS, EXPONENT = 1_000, 1.1


@pytest.mark.parametrize("workers", [2, 4, 8, 16])
def test_the_busiest_worker_by_zipfs_law_is_that_of_real_keys(workers: int) -> None:
    """The largest share of records with murmur2's places in 64 partitions, the mean over 40 sets of keys."""
    weights = 1.0 / np.arange(1, MODELS + 1) ** EXPONENT
    weights /= weights.sum()
    largest = []
    for salt in range(40):
        places = [partition_of(b"%d-model-%d" % (salt, number), 64) % workers for number in range(MODELS)]
        largest.append(np.bincount(places, weights=weights).max())
    planned = busiest_worker(ROUND, Workload(1_000, MODELS, 100, 250, zipf=EXPONENT), workers, 100.0)
    assert planned.share == pytest.approx(np.mean(largest), rel=0.06)  # means of 40 and of 64 draws


@pytest.mark.parametrize("models", [3, 500, 501, 2_000_000])
@pytest.mark.parametrize("exponent", [0.0, 0.7, 1.0, 1.3])
def test_the_share_of_the_hottest_model_is_that_of_zipfs_law(models: int, exponent: float) -> None:
    weights = 1.0 / np.arange(1, models + 1) ** exponent
    assert Workload(1, models, 1, 250, zipf=exponent).hottest_share == pytest.approx(
        1.0 / weights.sum(), rel=1e-5
    )


def test_a_skew_that_no_number_of_workers_can_carry_is_refused() -> None:
    with pytest.raises(HotModelError, match="the busiest model gets"):
        plan_of(Workload(2_000_000, 10_000, 160, 250, zipf=1.5), ROUND)


@given(workloads, st.floats(1.0, 4.0))
def test_more_rate_never_needs_fewer_workers_cores_or_bytes(workload: Workload, factor: float) -> None:
    before = plan(workload)
    after = plan(Workload(**{**vars(workload), "rate": workload.rate * factor}))
    if before is None:
        assert after is None
    elif after is not None:
        assert after.workers >= before.workers
        assert after.partitions >= before.partitions
        assert after.cores >= before.cores - 1e-9
        assert after.broker.written_mb_per_s >= before.broker.written_mb_per_s


@given(workloads, st.floats(1.0, 4.0))
def test_larger_records_never_need_fewer_workers(workload: Workload, factor: float) -> None:
    before = plan(workload)
    after = plan(Workload(**{**vars(workload), "record_bytes": workload.record_bytes * factor}))
    if before is None:
        assert after is None
    elif after is not None:
        assert after.workers >= before.workers


@given(workloads, st.floats(0.001, 1.0))
def test_a_hotter_model_never_needs_fewer_workers(workload: Workload, hottest: float) -> None:
    before = plan(workload)
    hotter = max(hottest, workload.hottest_share)
    after = plan(Workload(**{**vars(workload), "hottest": hotter}))
    if before is None:
        assert after is None
    elif after is not None:
        assert after.workers >= before.workers


@given(workloads, st.floats(1.0, 10.0))
def test_more_time_never_needs_more_workers(workload: Workload, factor: float) -> None:
    before = plan(workload)
    after = plan(Workload(**{**vars(workload), "p99_ms": workload.p99_ms * factor}))
    if before is not None:
        assert after is not None
        assert after.workers <= before.workers


@given(workloads)
def test_the_busiest_worker_stays_within_its_limit_and_one_worker_less_does_not(workload: Workload) -> None:
    planned = plan(workload)
    if planned is None:
        return
    assert planned.utilisation <= planned.utilisation_limit <= 0.7
    assert planned.workers <= planned.partitions
    assert planned.cores_per_worker <= 1.0
    assert planned.memory_mb >= ROUND.process_mb * planned.workers + workload.models * ROUND.model_bytes / 1e6


STEP = re.compile(r"(?P<label>.+): (?P<expression>[^:]+?) = (?P<value>[\d.,]+) (?P<unit>.+)")


def calculated(expression: str) -> float:
    """The value of an expression of a derivation."""
    words = expression.replace(",", "").replace("×", "*").replace("÷", "/")
    words = words.replace("√", "sqrt").replace("ln ", "log ")
    words = re.sub(r"log ([\d.]+)", r"log(\1)", words)
    assert re.fullmatch(r"[\d.+*/() \-a-z]+", words), words
    return float(eval(words, {"__builtins__": {}, "sqrt": math.sqrt, "log": math.log}))


SKEWS = st.one_of(
    st.just({}),
    st.builds(lambda share: {"hottest": share}, st.floats(0.01, 0.3)),
    st.builds(lambda exponent: {"zipf": exponent}, st.floats(0.0, 1.5)),
)


@given(workloads, SKEWS)
def test_each_step_of_the_derivation_can_be_calculated_again(
    workload: Workload, skew: dict[str, float]
) -> None:
    planned = plan(Workload(**{**vars(workload), **skew}))
    if planned is None:
        return
    for line in planned.derivation:
        match = STEP.fullmatch(line)
        assert match, line
        value, again = float(match["value"].replace(",", "")), calculated(match["expression"])
        if match["label"].endswith("at most 1"):
            again = min(1.0, again)
        assert value == pytest.approx(again, rel=2e-3, abs=1.0 if "rounded up" in match["label"] else 1e-9), (
            line
        )


@given(workloads)
def test_a_worker_with_the_planned_memory_is_ready_within_the_planned_limit(workload: Workload) -> None:
    planned = plan(workload)
    if planned is not None:
        assert CALM < WARN
        assert planned.memory_mb_per_worker <= planned.memory_limit_mb_per_worker * CALM
        assert planned.memory_mb_per_worker > (planned.memory_limit_mb_per_worker - 1) * CALM - 1e-6


@pytest.mark.parametrize(
    ("rate", "models", "hottest", "workers", "needed"),
    [
        (1_000, 1_000_000, None, 1, 1_000_000),
        (1_000, 1_000, None, 1, TaskConfig().models_max_count),
        (300_000, 1_000_000, 0.2, 6, 334_880),  # 2 × (1/6 + √(2 ln 6 / 6,000,000)) of all
    ],
)
def test_a_worker_accepts_the_planned_models_and_those_of_another(
    rate: float, models: int, hottest: float | None, workers: int, needed: int
) -> None:
    planned = plan_of(Workload(rate, models, 160, 250, hottest=hottest), replace(ROUND, model_bytes=1_000.0))
    assert planned.workers == workers
    assert planned.models_max_count == pytest.approx(needed, rel=1e-3)
    (line,) = (line for line in planned.derivation if "models.max.count" in line)
    assert line.endswith(f"models.max.count {planned.models_max_count:,}")


def test_the_derivation_leads_to_the_figures() -> None:
    planned = plan_of(Workload(500_000, 10_000, 160, 250), ROUND)
    values = {line.partition(":")[0]: line for line in planned.derivation}
    assert f"= {planned.memory_mb:,.0f} MB" in values["memory of all workers"]
    limits = [line for label, line in values.items() if label.startswith("memory limit of a worker")]
    assert [f"= {planned.memory_limit_mb_per_worker:,.0f} MB" in line for line in limits] == [True]
    assert f"= {planned.cores:g} cores" in values["cores of all workers"]
    assert f"= {planned.partitions} partitions" in values["partitions"]


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_p99_that_cannot_be_met_is_refused_with_the_nearest(guarantee: str) -> None:
    nearest = math.ceil(least_p99(ROUND, guarantee))
    with pytest.raises(LatencyError, match=f"the shortest is {nearest} ms"):
        plan_of(Workload(1_000, 10, 100, nearest - 1.0, guarantee), ROUND)
    assert plan_of(Workload(1_000, 10, 100, nearest, guarantee), ROUND).workers == 1


def test_a_refused_p99_names_the_other_guarantee_where_it_helps() -> None:
    with pytest.raises(LatencyError, match="--guarantee at_least_once reaches 47 ms"):
        plan_of(Workload(1_000, 10, 100, 60), ROUND)
    with pytest.raises(LatencyError) as refused:
        plan_of(Workload(1_000, 10, 100, 20), ROUND)
    assert "at_least_once" not in str(refused.value)


def test_a_model_that_outgrows_a_core_is_named_with_the_way_out() -> None:
    with pytest.raises(
        HotModelError, match=r"gets 500,000 records/s .* one core processes 1\d\d,\d{3}: .*Spread"
    ):
        plan_of(Workload(1_000_000, 1_000, 200, 250, hottest=0.5), ROUND)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ({"rate": 0.0}, "--rate 0 must be above 0"),
        ({"rate": math.nan}, "--rate nan must be above 0"),
        ({"rate": math.inf}, "--rate inf must be above 0 and at most 1e\\+12 records per second"),
        ({"rate": 1e300}, "--rate 1e\\+300 must be above 0 and at most 1e\\+12"),
        ({"models": 10**17}, "--models 1e\\+17 must be at least 1 and at most 1e\\+09"),
        ({"record_bytes": 1e11}, "--record-bytes 1e\\+11 must be at least 1 byte and at most 2147483647"),
        ({"p99_ms": math.inf}, "--p99 inf must be above 0 ms and finite"),
        ({"replicas": 10**6}, "--replication 1e\\+06 must be at least 1 and at most 32767"),
        ({"models": 0}, "--models 0 must be at least 1"),
        ({"record_bytes": 0.5}, "--record-bytes 0.5 must be at least 1"),
        ({"p99_ms": -1.0}, "--p99 -1 must be above 0"),
        ({"guarantee": "twice"}, "--guarantee twice must be one of exactly_once"),
        ({"hottest": 0.001}, r"--hottest 0.001 must be at least 0.01 .*--models 100"),
        ({"hottest": 1.5}, "at most 1"),
        ({"replicas": 0}, "--replication 0 must be at least 1"),
        ({"zipf": -0.1}, "--zipf -0.1 must be from 0 to 5"),
        ({"zipf": math.nan}, "--zipf nan must be from 0 to 5"),
        ({"zipf": 1.1, "hottest": 0.2}, "--zipf 1.1 and --hottest 0.2 must not be given together"),
    ],
)
def test_bad_input_is_named(words: dict[str, Any], text: str) -> None:
    good = {"rate": 1.0, "models": 100, "record_bytes": 100.0, "p99_ms": 250.0}
    with pytest.raises(UsageError, match=text):
        Workload(**{**good, **words})


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("[1]", "must be a JSON object of costs"),
        ("{", "must be a JSON object, as"),
        ('{"recordus": 1}', "recordus is no cost; known: record_us"),
        ('{"record_us": -1}', r"record_us is -1, but must be a number of at least 0 \(µs"),
        ('{"record_us": true}', "record_us is True"),
        ('{"record_us": NaN}', "record_us is nan"),
    ],
)
def test_bad_costs_are_named(content: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "costs").write_text(content)
    with pytest.raises(UsageError, match=text):
        read_costs(tmp_path / "costs")


COMMAND = ["plan", "--rate", "200000", "--models", "10000", "--record-bytes", "160", "--p99", "250"]


def test_the_command_prints_json_and_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMAND, "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert {"workers", "cores", "memory_mb", "partitions", "broker", "derivation"} <= figures.keys()
    assert figures["memory_limit_mb_per_worker"] > figures["memory_mb_per_worker"]
    assert figures["models_max_count"] == TaskConfig().models_max_count
    assert figures["partitions"] >= 4 * figures["workers"]
    costs = tmp_path / "costs.json"
    costs.write_text('{"record_us": 20}')
    assert (
        main([*COMMAND, "--costs", str(costs), "--guarantee", "at-least-once", "--model-bytes", "50000"]) == 0
    )
    text = capsys.readouterr().out
    assert re.search(r"^workers +1\d$", text, re.MULTILINE), text
    assert re.search(r"^memory limit +\d+ MB a worker$", text, re.MULTILINE), text
    assert re.search(r"^models\.max\.count +200,000$", text, re.MULTILINE), text
    assert ": 20 + 2.5 × 160 " in text


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["--p99", "30"], 1, "the shortest is"),
        (["--hottest", "2"], 64, "--hottest 2 must be"),
        (["--model-bytes", "0"], 64, "grove_model_bytes / grove_models_loaded"),
        (["--models", "many"], 64, "--models"),
        (["--costs", "/missing"], 64, "/missing"),
        (["--model-bytes", "1e15"], 1, "the snapshots of one model of 1e+15 bytes take"),
        (["--rate", "2e9", "--hottest", "0.9"], 1, "the busiest model gets 1,800,000,000 records/s"),
    ],
)
def test_the_command_refuses_with_one_line(
    words: list[str], code: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*COMMAND, *words]) == code
    said = capsys.readouterr().err
    assert text in said
    assert said.count("\n") == 1


ROW = re.compile(
    r"^\| ([\d,]+) \| (\d+) \| (at least once|exactly once)(?:, (\d+) %)? \| [\d.]+, ([\d.]+) \| ([\d.]+) \|",
    re.MULTILINE,
)
"""Records/s, partitions, guarantee, fetch.max.cpu.percent, p99 in ms, CPU s per million."""


def published_trickles() -> list[tuple[str, float, float, float | None, float, float]]:
    """Return the rows of the published latencies: guarantee, rate, partitions, share, p99, µs a record."""
    page = (ROOT / "docs" / "benchmarks-pipeline.md").read_text()
    return [
        (
            row[2].replace(" ", "_"),
            float(row[0].replace(",", "")),
            float(row[1]),
            float(row[3]) / 100 if row[3] else None,
            float(row[4]),
            float(row[5]),
        )
        for row in ROW.findall(page)
    ]


def test_latencies_are_published_for_both_guarantees() -> None:
    rows = published_trickles()
    assert {(row[0], row[3]) for row in rows} >= {("exactly_once", None), ("at_least_once", 0.5)}
    assert len(rows) >= 12


@pytest.mark.parametrize(
    ("guarantee", "rate", "partitions", "share", "p99", "us_per_record"),
    [row for row in published_trickles() if row[3] in (None, Costs().fetch_cores)],
)
def test_the_default_costs_agree_with_the_published_trickles(
    guarantee: str, rate: float, partitions: float, share: float | None, p99: float, us_per_record: float
) -> None:
    costs = Costs()
    load = load_of(costs, rate, partitions, 64, record_us(costs, 146, 64), guarantee, 100)
    cores = max(load.cores, share or 0.0)
    assert cores / rate * 1e6 == pytest.approx(us_per_record, rel=0.25)
    if share is None:
        assert 100.0 + costs.exactly_once_ms / (1 - cores) == pytest.approx(p99, rel=0.2)
    else:
        least = costs.pace_ms + costs.at_least_once_ms / (1 - load.cores)
        assert least > 0.9 * p99


def test_at_least_once_the_share_of_fetches_is_reserved() -> None:
    workload = Workload(rate=500, models=100, record_bytes=146, p99_ms=100, guarantee="at_least_once")
    planned = plan_of(workload, Costs())
    assert planned.utilisation < 0.5
    assert planned.cores_per_worker == 0.5
    assert any("fetch.max.cpu.percent" in line for line in planned.derivation)
    busy = plan_of(replace(workload, rate=100_000), Costs())
    assert busy.cores_per_worker > 0.5


def test_the_default_costs_of_a_backlog_are_between_the_quiet_and_the_slow_machine() -> None:
    """One worker, 8 partitions, 64 keys: 2.1 CPU µs a record on the quiet machine, 3.8 on the slow one."""
    costs = Costs()
    rate = backlog_rate(costs, 1.0, 8, record_us(costs, 146, 64), 100, 146)
    assert 2.1 < 1e6 / rate < 3.8


def test_a_rate_beyond_any_installation_is_refused() -> None:
    with pytest.raises(StreamappError, match="more than 100,000 workers"):
        plan_of(Workload(1e12, 10**9, 100, 250), ROUND)


BROKER_ROW = re.compile(
    r"^\| (at least once|exactly once) \| ([\d,]+) \| (\d+) \| (\d+) / (\d+) \| ([\d.]+) / ([\d.]+) "
    r"\| [\d.]+ / ([\d.]+) \|$",
    re.MULTILINE,
)
"""Guarantee, records/s, partitions, then measured / planned: requests, MB written, MB read."""


@pytest.mark.parametrize("row", BROKER_ROW.findall((ROOT / "docs" / "scale.md").read_text()))
def test_the_load_of_brokers_is_the_published_one_and_near_the_measured(row: tuple[str, ...]) -> None:
    guarantee, rate, partitions = row[0].replace(" ", "_"), float(row[1].replace(",", "")), float(row[2])
    requests, planned_requests, written, planned_written, planned_read = map(float, row[3:])
    costs = replace(Costs(), model_bytes=0.0)  # no snapshot was in the measured time
    load = load_of(costs, rate, partitions, 64, record_us(costs, 164, 64), guarantee, 100)
    planned, _ = broker_load(costs, Workload(rate, 64, 164, 1_000, guarantee, replicas=1), 1, load)
    figures = planned.requests_per_s, planned.written_mb_per_s, planned.read_mb_per_s
    assert figures == pytest.approx((planned_requests, planned_written, planned_read), rel=0.01)
    assert planned.requests_per_s == pytest.approx(requests, rel=0.35)
    assert planned.written_mb_per_s == pytest.approx(written, rel=0.25)


def test_the_load_of_brokers_is_published_for_both_guarantees() -> None:
    rows = BROKER_ROW.findall((ROOT / "docs" / "scale.md").read_text())
    assert {row[0] for row in rows} == {"at least once", "exactly once"}
    assert len(rows) >= 12
