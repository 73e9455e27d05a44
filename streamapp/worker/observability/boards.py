"""Grafana boards: three dashboards made of the metrics of `/metrics`; `python -m tests.boards` writes them.

The kind of a panel's metrics determines what the panel shows: a rate for a counter, two quantiles for a
histogram, a sum for a gauge. Panels are described by the help texts of their metrics
(`streamapp.worker.observability.metrics`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from streamapp.worker.observability.metrics import Metrics

QUANTILES: Final = (0.5, 0.99)
COLUMNS, WIDTH, HEIGHT = 3, 8, 8
SCHEMA_VERSION: Final = 39  # of Grafana 10.1 and later
JOB: Final = 'job=~"$job"'


@dataclass(frozen=True, slots=True)
class Panel:
    """A chart of metrics with a line for each value of `by`.

    Metrics are named as on `/metrics`, histograms without suffix.
    """

    title: str
    metrics: tuple[str, ...]
    by: tuple[str, ...] = ()
    unit: str = "short"  # Grafana's names
    mean: bool = False  # for a gauge: show the mean over the workers instead of the sum
    least: float | None = 0  # where the axis begins; None: at the least value


Row = tuple[str, tuple[Panel, ...]]


def _p(title: str, *metrics: str, by: str = "", unit: str = "short", mean: bool = False) -> Panel:
    return Panel(title, metrics, tuple(by.split()), unit, mean)


def _interval(
    title: str, metric: str, *others: str, unit: str = "percentunit", least: float | None = 0
) -> Panel:
    """Return a panel of a figure of models with its interval, and of other metrics."""
    metrics = metric, f"{metric}_low", f"{metric}_high", *others
    return Panel(title, metrics, ("model_key",), unit, mean=True, least=least)


def _of_class(title: str, metric: str) -> Panel:
    """Return a panel of a figure of classes with its interval."""
    by = ("model_key", "class")
    return Panel(title, (metric, f"{metric}_low", f"{metric}_high"), by, "percentunit", mean=True)


BOARDS: Final[dict[str, tuple[Row, ...]]] = {
    "fleet": (
        (
            "Does it keep up?",
            (
                _p("Records processed", "grove_records_total", by="topic outcome", unit="rowsps"),
                _p("Lag", "kafka_consumergroup_lag", by="consumergroup topic"),
                _p("Record to output", "grove_end_to_end_seconds", unit="s"),
                _p("Commit", "grove_commit_seconds", unit="s"),
                _p("A run of instances", "grove_predict_seconds", unit="s"),
                _p("A run of labels", "grove_learn_seconds", unit="s"),
            ),
        ),
        (
            "Workers and partitions",
            (
                _p("Processes", "grove_worker_up", "grove_worker_restarts", by="worker"),
                _p("Partitions", "grove_partitions", by="state"),
                _p("Red checks of /readyz", "grove_not_ready", by="check"),
                _p("Version", "grove_build_info", by="version"),
                _p("Rebalance", "grove_rebalance_seconds", unit="s"),
                _p(
                    "Stopped and aborted",
                    "grove_partitions_stopped_total",
                    "grove_transactions_aborted_total",
                ),
                _p("Life left of the sign-in's token", "grove_token_expires_seconds", unit="s", mean=True),
                _p(
                    "Partitions that wait for a schema, and failed look-ups",
                    "grove_schema_waiting_partitions",
                    "grove_schema_lookup_failures_total",
                ),
                _p("Spans sent and dropped", "grove_spans_sent_total", "grove_spans_dropped_total"),
                _p("Queued in the producers", "grove_producer_queued_records"),
                _p("Lost and sought back", "grove_records_lost_total", "grove_sought_back_total"),
            ),
        ),
        (
            "State",
            (
                _p("Snapshots", "grove_snapshots_total"),
                _p("Snapshot, cut to complete", "grove_snapshot_seconds", unit="s"),
                _p("Snapshot bytes", "grove_snapshot_bytes_total", unit="Bps"),
                _p(
                    "Age of the newest snapshot",
                    "grove_snapshot_age_seconds",
                    by="partition",
                    unit="s",
                    mean=True,
                ),
                _p("Restores", "grove_restores_total", by="beginning"),
                _p("Restore of a partition", "grove_restore_seconds", unit="s"),
                _p(
                    "Replay under way",
                    "grove_restore_replayed_records",
                    "grove_restore_remaining_records",
                    by="partition",
                ),
                _p("Records replayed", "grove_replayed_records_total", unit="rowsps"),
                _p("Parts of snapshots read", "grove_changelog_records_total", by="role"),
                _p("Bytes of these parts", "grove_changelog_bytes_total", by="role", unit="Bps"),
            ),
        ),
        (
            "Bad input",
            (
                _p("Dead letters", "grove_dlq_records_total", by="reason"),
                _p("Keys in the wrong partition", "grove_misplaced_keys_total", by="topic"),
                _p("Outputs too large", "grove_outputs_too_large_total"),
                _p(
                    "Ignored features and values",
                    "grove_features_ignored_total",
                    "grove_features_unknown_values_total",
                ),
                _p("Jumps of event time", "grove_time_jumps_total"),
            ),
        ),
    ),
    "model": (
        (
            "Do they learn?",
            (
                _p(
                    "Accuracy, windowed",
                    "grove_accuracy_ratio",
                    by="model_key",
                    unit="percentunit",
                    mean=True,
                ),
                _p("Drift alerts", "grove_drift_alerts_total", by="detector level"),
                _p("Splits", "grove_tree_splits_total", by="reason"),
            ),
        ),
        (
            "How good are the answers?",
            (
                _interval(
                    "Accuracy over all records, with the band for all times",
                    "grove_accuracy_powered",
                    "grove_accuracy_always_low",
                    "grove_accuracy_always_high",
                ),
                _interval("Cohen's kappa", "grove_kappa_unbiased", unit="none", least=None),
                _interval("Balanced accuracy", "grove_balanced_accuracy"),
                _interval("Log-loss", "grove_log_loss", unit="none"),
                _interval("Brier score", "grove_brier", unit="none"),
                _interval("AUC", "grove_auc", unit="none"),
                _interval("Calibration error", "grove_calibration_error"),
                _interval("Coverage of conformal sets", "grove_coverage"),
                _p("Classes in a conformal set", "grove_set_size", by="model_key", mean=True),
                _p(
                    "Figures of all records (1) or of chosen labels (0)",
                    "grove_measured_records",
                    by="model_key",
                    mean=True,
                ),
            ),
        ),
        (
            "What would 500 more labels buy?",
            (
                _interval("Gain of accuracy", "grove_gain_forecast"),
                _interval("Accuracy after these labels", "grove_accuracy_forecast"),
                _p("Advice", "grove_label_advice", by="model_key advice", mean=True),
            ),
        ),
        (
            "Would another model be better?",
            (
                Panel(
                    "Accuracy of the challenger less that of the model",
                    ("grove_challenge_difference", "grove_challenge_low", "grove_challenge_high"),
                    ("model_key",),
                    "percentunit",
                    mean=True,
                    least=None,
                ),
                _p("Labels compared", "grove_challenge_labels", by="model_key", mean=True),
                _p("Challenges that ended", "grove_challenges_ended_total", by="outcome"),
            ),
        ),
        (
            "Which classes?",
            (
                _of_class("Precision", "grove_class_precision"),
                _of_class("Recall", "grove_class_recall"),
                _of_class("F1", "grove_class_f1"),
                _of_class("AUC, against the other classes", "grove_class_auc"),
                _p("Labels", "grove_class_labels", by="model_key class", mean=True),
            ),
        ),
        (
            "How many, how large?",
            (
                _p("Models", "grove_models_loaded", "grove_models_resident"),
                _p("Nodes", "grove_tree_nodes"),
                _p(
                    "Bytes",
                    "grove_model_bytes",
                    "grove_models_evicted_bytes",
                    "grove_shared_bytes",
                    unit="bytes",
                ),
                _p(
                    "Created, imported, deleted",
                    "grove_models_created_total",
                    "grove_models_imported_total",
                    "grove_models_deleted_total",
                    "grove_imports_given_up_total",
                ),
                _p("Trees that may not grow", "grove_models_growth_stopped_total"),
            ),
        ),
        (
            "Do they fit in memory?",
            (
                _p("Hits and misses", "grove_model_hits_total", "grove_model_misses_total"),
                _p("Wait for evicted models", "grove_model_reload_seconds", unit="s"),
                _p("Evictions", "grove_model_evictions_total"),
                _p("Bytes written by evictions", "grove_model_eviction_bytes_total", unit="Bps"),
            ),
        ),
    ),
    "labelling": (
        (
            "Requests",
            (
                _p("Requests by state", "grove_label_requests_total", by="strategy outcome"),
                _p("Open requests", "grove_label_requests_outstanding"),
                _p("Budget", "grove_label_budget_ratio", by="kind", unit="percentunit", mean=True),
            ),
        ),
        (
            "Labels",
            (
                _p("Answer to label, event time", "grove_label_delay_seconds", unit="s"),
                _p("Instances that wait", "grove_pending_instances"),
                _p("Given up", "grove_pending_expired_total", "grove_pending_dropped_total"),
                _p("Labels that wait for their instance", "grove_early_labels"),
                _p("Early labels learned", "grove_early_learned_total"),
            ),
        ),
        (
            "Features that are bought",
            (
                _p("Instances that wait for features", "grove_open_episodes"),
                _p("Cost, in units of the schemas", "grove_feature_cost_total"),
                _p("Episodes", "grove_episodes_opened_total", "grove_episodes_dropped_total"),
                _p(
                    "Reasons for the end of purchases",
                    "grove_episodes_one_region_total",
                    "grove_episodes_none_left_total",
                    "grove_episodes_exhausted_total",
                    "grove_episodes_budget_total",
                    "grove_episodes_finish_total",
                    "grove_episodes_deadline_total",
                    "grove_episodes_room_total",
                ),
                _p(
                    "Features",
                    "grove_episodes_features_missing_total",
                    "grove_episodes_features_requested_total",
                    "grove_episodes_features_bought_total",
                    "grove_episodes_features_unavailable_total",
                ),
            ),
        ),
    ),
}
"""Board → its rows and their panels."""

EXCUSED: Final[dict[str, str]] = {}
"""Metrics that are on no board, and why."""


def metrics_of(board: str) -> set[str]:
    """Return the metrics on a board."""
    return {metric for _, panels in BOARDS[board] for panel in panels for metric in panel.metrics}


def board(name: str) -> dict[str, Any]:
    """Return a board as Grafana reads it; its data source and jobs are chosen on the page."""
    meanings = {family.name: family.documentation for family in Metrics().registry.collect()}
    return {
        "uid": f"grove-{name}",
        "title": f"streamgrove: {name}",
        "tags": ["streamgrove"],
        "schemaVersion": SCHEMA_VERSION,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [_source(), _jobs()]},
        "panels": list(_panels(BOARDS[name], meanings)),
    }


def _source() -> dict[str, Any]:
    return {"name": "DS_PROMETHEUS", "label": "data source", "type": "datasource", "query": "prometheus"}


def _jobs() -> dict[str, Any]:
    return {
        "name": "job",
        "type": "query",
        "datasource": _datasource(),
        "query": {"query": "label_values(grove_build_info, job)", "refId": "jobs"},
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def _datasource() -> dict[str, str]:
    return {"type": "prometheus", "uid": "${DS_PROMETHEUS}"}


def _panels(rows: Sequence[Row], meanings: dict[str, str]) -> Iterator[dict[str, Any]]:
    number = top = 0
    for title, panels in rows:
        number += 1
        place = {"h": 1, "w": COLUMNS * WIDTH, "x": 0, "y": top}
        yield {
            "id": number,
            "type": "row",
            "title": title,
            "collapsed": False,
            "gridPos": place,
            "panels": [],
        }
        top += 1
        for at, panel in enumerate(panels):
            number += 1
            row, column = divmod(at, COLUMNS)
            place = {"h": HEIGHT, "w": WIDTH, "x": column * WIDTH, "y": top + row * HEIGHT}
            yield {"id": number, "gridPos": place, **_chart(panel, meanings)}
        top += -(-len(panels) // COLUMNS) * HEIGHT


def _chart(panel: Panel, meanings: dict[str, str]) -> dict[str, Any]:
    texts = (meanings.get(metric.removesuffix("_total").removesuffix("_info")) for metric in panel.metrics)
    lines = [line for metric in panel.metrics for line in _lines(panel, metric)]
    return {
        "type": "timeseries",
        "title": panel.title,
        "description": " ".join(dict.fromkeys(text for text in texts if text)),
        "datasource": _datasource(),
        "fieldConfig": {"defaults": _defaults(panel), "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {"refId": f"Q{i}", "datasource": _datasource(), "expr": expression, "legendFormat": legend}
            for i, (expression, legend) in enumerate(lines)
        ],
    }


def _defaults(panel: Panel) -> dict[str, Any]:
    return {"unit": panel.unit} | ({} if panel.least is None else {"min": panel.least})


def _lines(panel: Panel, metric: str) -> Iterator[tuple[str, str]]:
    """Yield the expressions of a metric, each with the name of its lines."""
    labels = " ".join(f"{{{{{label}}}}}" for label in panel.by)
    if metric.endswith("_seconds") and not panel.mean:  # a histogram; means are of gauges
        for quantile in QUANTILES:
            by = ", ".join(("le", *panel.by))
            rates = f"sum by ({by}) (rate({metric}_bucket{{{JOB}}}[$__rate_interval]))"
            yield f"histogram_quantile({quantile}, {rates})", f"p{quantile * 100:g} {labels}".strip()
        return
    by = f" by ({', '.join(panel.by)})" if panel.by else ""
    named = metric.removeprefix("grove_").removesuffix("_total").replace("_", " ")
    legend = " ".join(filter(None, ("" if labels and len(panel.metrics) == 1 else named, labels)))
    if metric.endswith("_total"):
        yield f"sum{by} (rate({metric}{{{JOB}}}[$__rate_interval]))", legend
    else:
        yield f"{'avg' if panel.mean else 'sum'}{by} ({metric}{{{JOB}}})", legend
