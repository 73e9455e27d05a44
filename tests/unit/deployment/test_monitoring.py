"""Grafana's boards and Prometheus' rules: what they ask for is measured, and every alert was seen to fire."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from streamapp.worker.observability.boards import BOARDS, EXCUSED, metrics_of
from streamapp.worker.observability.metrics import Metrics
from tests import boards

ROOT = Path(__file__).parents[3]
PROMETHEUS = ROOT / "monitoring" / "prometheus"
GRAFANA = ROOT / "monitoring" / "grafana"
RULES = [
    rule
    for name in ("recording.yml", "alerts.yml")
    for group in yaml.safe_load((PROMETHEUS / name).read_text())["groups"]
    for rule in group["rules"]
]
ALERTS = {rule["alert"]: rule for rule in RULES if "alert" in rule}
UNIT_TESTS = yaml.safe_load((PROMETHEUS / "rules_test.yml").read_text())["tests"]
ELSEWHERE = (
    "streamapp/worker/gauges.py",
    "streamapp/worker/observability/pages/parent.py",
    "streamapp/worker/telemetry/span_export.py",
)

needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not here")


def measured() -> Iterator[str]:
    """Every metric, as /metrics names it; a histogram without its suffixes."""
    for family in Metrics().registry.collect():
        suffix = {"counter": "_total", "info": "_info"}.get(family.type, "")
        yield family.name + suffix
    for file in ELSEWHERE:
        for node in ast.walk(ast.parse((ROOT / file).read_text())):
            text = str(node.value) if isinstance(node, ast.Constant) else ""
            if re.fullmatch(r"(grove|kafka)_[a-z_]+", text):
                yield text


MEASURED = set(measured())


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, timeout=300)


def expressions(board: dict[str, Any]) -> list[str]:
    return [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]


def names_in(expression: str) -> set[str]:
    metric_names = set(re.findall(r"(?<![:\w])(?:grove|kafka)_\w+", expression))
    return {name.removesuffix("_bucket") for name in metric_names}


def test_every_metric_is_on_a_board_or_excused() -> None:
    shown = set().union(*map(metrics_of, BOARDS))
    assert {"grove_records_total", "grove_partitions", "grove_worker_up", "kafka_consumergroup_lag"} <= shown
    assert shown & EXCUSED.keys() == set()
    assert shown | EXCUSED.keys() == MEASURED


def test_there_are_three_boards_and_no_metric_is_on_two() -> None:
    assert list(BOARDS) == ["fleet", "model", "labelling"]
    shown = [metric for board in BOARDS for metric in metrics_of(board)]
    assert len(shown) == len(set(shown))


@pytest.mark.parametrize("name", BOARDS)
def test_the_file_of_a_board_is_current(name: str) -> None:
    file = GRAFANA / "boards" / f"{name}.json"
    assert file.read_text() == boards.text_of(name), "write it anew: python -m tests.boards"


@pytest.mark.parametrize("name", BOARDS)
def test_panels_lie_beside_each_other_and_ask_for_what_they_show(name: str) -> None:
    board = json.loads(boards.text_of(name))
    cells = [
        (x, y)
        for panel in board["panels"]
        for place in [panel["gridPos"]]
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    assert set().union(*map(names_in, expressions(board))) == metrics_of(name)


@pytest.mark.parametrize("name", BOARDS)
def test_only_histograms_are_asked_for_quantiles(name: str) -> None:
    histograms = {family.name for family in Metrics().registry.collect() if family.type == "histogram"}
    asked = re.findall(r"(grove_\w+)_bucket", " ".join(expressions(json.loads(boards.text_of(name)))))
    assert set(asked) <= histograms


@needs_promtool
def test_the_expressions_of_the_boards_are_promql(tmp_path: Path) -> None:
    asked = [expression for name in BOARDS for expression in expressions(json.loads(boards.text_of(name)))]
    rules = [
        {"record": f"asked:{i}", "expr": expression.replace("$__rate_interval", "1m").replace("$job", ".*")}
        for i, expression in enumerate(asked)
    ]
    file = tmp_path / "asked.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "asked", "rules": rules}]}))
    checked = promtool("check", "rules", file)
    assert checked.returncode == 0, checked.stderr
    assert f"{len(asked)} rules found" in checked.stdout


@needs_promtool
def test_configuration_and_rules_are_valid() -> None:
    checked = promtool("check", "config", PROMETHEUS / "prometheus.yml")
    assert checked.returncode == 0, checked.stderr
    assert f"{len(ALERTS)} rules found" in checked.stdout


@needs_promtool
def test_alerts_fire_where_they_should_and_nowhere_else() -> None:
    tested = promtool("test", "rules", PROMETHEUS / "rules_test.yml")
    assert tested.returncode == 0, tested.stdout + tested.stderr


@needs_promtool
@pytest.mark.parametrize("never", ["vector(0) > 1", "vector(1)"])
def test_alerts_of_other_expressions_would_be_noticed(never: str, tmp_path: Path) -> None:
    for file in PROMETHEUS.glob("*.yml"):
        (tmp_path / file.name).write_text(file.read_text())
    document = yaml.safe_load((PROMETHEUS / "alerts.yml").read_text())
    for rule in document["groups"][0]["rules"]:
        rule["expr"] = never
    (tmp_path / "alerts.yml").write_text(yaml.safe_dump(document))
    tested = promtool("test", "rules", tmp_path / "rules_test.yml")
    assert tested.returncode != 0
    assert set(re.findall(r"alertname: ?(\w+)", tested.stdout + tested.stderr)) == ALERTS.keys()


def test_every_alert_and_rule_has_a_case() -> None:
    cases = [case for test in UNIT_TESTS for case in test.get("alert_rule_test", ())]
    fire = {case["alertname"] for case in cases if case["exp_alerts"]}
    assert fire == {case["alertname"] for case in cases if not case["exp_alerts"]} == ALERTS.keys()
    asked = {case["expr"] for test in UNIT_TESTS for case in test.get("promql_expr_test", ())}
    recorded = {rule["record"] for rule in RULES if "record" in rule}
    in_alerts = {name for rule in ALERTS.values() for name in recorded if name in rule["expr"]}
    assert asked | in_alerts == recorded


def test_rules_ask_for_what_is_measured() -> None:
    for rule in RULES:
        assert names_in(rule["expr"]) <= MEASURED, rule
        for metric in re.findall(r"(grove_\w+)_bucket", rule["expr"]):
            assert metric in MEASURED, rule


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_says_what_to_do(name: str) -> None:
    alert = ALERTS[name]
    assert alert["labels"]["severity"] in ("page", "ticket", "info")
    page, _, anchor = alert["annotations"]["runbook"].partition("#")
    headings = re.findall(r"^#+ (.*)$", (ROOT / page).read_text(), re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert anchor in anchors


def test_grafana_finds_prometheus_and_the_boards() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    mounts = dict(volume.split(":")[:2] for volume in services["grafana"]["volumes"])
    (provider,) = yaml.safe_load((GRAFANA / "provisioning/dashboards/streamgrove.yml").read_text())[
        "providers"
    ]
    assert mounts["./monitoring/grafana/boards"] == provider["options"]["path"]
    assert mounts["./monitoring/grafana/provisioning"] == "/etc/grafana/provisioning"
    (source,) = yaml.safe_load((GRAFANA / "provisioning/datasources/prometheus.yml").read_text())[
        "datasources"
    ]
    assert source["url"] == "http://prometheus:9090"
    assert "./monitoring/prometheus:/etc/prometheus:ro" in services["prometheus"]["volumes"]
    (scraped,) = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())["scrape_configs"]
    (discovery,) = scraped["dns_sd_configs"]
    assert discovery["names"] == ["worker"]
    assert services["worker"]["ports"][0].endswith(f":{discovery['port']}")
