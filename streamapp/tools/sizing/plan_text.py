"""Text of a plan: its figures, one a line, and the derivation below them."""

from __future__ import annotations

from streamapp.tools.sizing.sizing_plan import SizingPlan


def as_text(planned: SizingPlan) -> str:
    """Return the text that `grove plan` prints."""
    broker = planned.broker
    rows = [
        ("workers", f"{planned.workers:,}"),
        ("cores", f"{planned.cores:,.1f} ({planned.cores_per_worker:.1f} a worker)"),
        ("memory", f"{planned.memory_mb:,.0f} MB ({planned.memory_mb_per_worker:,.0f} MB a worker)"),
        ("memory limit", f"{planned.memory_limit_mb_per_worker:,.0f} MB a worker"),
        ("partitions", f"{planned.partitions:,}"),
        ("commit.interval.ms", f"{planned.commit_interval_ms:.0f}"),
        ("models.max.count", f"{planned.models_max_count:,}"),
        (
            "busiest worker",
            f"{planned.busiest_records_per_s:,.0f} records/s, {planned.utilisation:.2f} of a core "
            f"(limit {planned.utilisation_limit:.2f})",
        ),
        (
            "brokers",
            f"{broker.written_mb_per_s:,.1f} MB/s written, {broker.replicated_mb_per_s:,.1f} replicated, "
            f"{broker.read_mb_per_s:,.1f} read; {broker.requests_per_s:,.0f} requests/s of workers",
        ),
    ]
    width = max(len(name) for name, _ in rows)
    lines = [f"{name:<{width}}  {value}" for name, value in rows]
    return "\n".join([*lines, "", "derivation", *(f"  {line}" for line in planned.derivation)])
