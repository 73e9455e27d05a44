"""Measure words: the measures of a model, and the advice on more labels, as people read them."""

from __future__ import annotations

from typing import Any, Final

from streamapp.web.formatting import cut
from streamapp.web.layout.data_table import Cell, Column, number_cell, text_cell

MEASURES: Final = {
    "name": Column("Class"),
    "labels": Column("Labels", numeric=True),
    "precision": Column("Precision", numeric=True),
    "recall": Column("Recall", numeric=True),
    "f1": Column("F1", numeric=True),
    "auc": Column("AUC", numeric=True),
    "taken_for": Column("Most often taken for"),
}
"""Columns of the table of measures."""
ADVICE: Final = {
    "stop": "Stop: 500 more labels are not worth it.",
    "go on": "Go on asking for labels.",
    "ask again after drift": "Ask again: the stream changed, and older labels do not show what new ones buy.",
}


def basis_in_words(evaluation: dict[str, Any] | None) -> str:
    """Return the records that the measures stand for, and the measures of all classes together."""
    if evaluation is None or evaluation.get("measured") is None:
        return "No evaluation has measures per class yet."
    stands = {"records": "They represent all records, by weights of the labels."}.get(
        evaluation["measured"], "They count the judged labels, which may be a biased choice."
    )
    parts = [
        f"{title} {_with_interval(evaluation, name)}"
        for title, name in (
            ("accuracy", "accuracy_powered"),
            ("kappa", "kappa_unbiased"),
            ("balanced accuracy", "balanced_accuracy"),
            ("log-loss", "log_loss"),
            ("Brier score", "brier"),
            ("AUC", "auc"),
            ("calibration error", "calibration_error"),
            ("coverage of the sets", "coverage"),
            ("classes in a set", "set_size"),
        )
        if evaluation.get(name) is not None
    ]
    return f"{stands} {', '.join(parts)}".strip()


def advice_in_words(evaluation: dict[str, Any] | None) -> str:
    """Return the advice on more labels, and the forecast that it rests on."""
    advice = (evaluation or {}).get("advice")
    if evaluation is None or advice is None:
        return "No advice: no evaluation has a curve yet, or no label shows the accuracy of all records."
    words = ADVICE.get(advice, cut(str(advice), 80))
    if evaluation.get("gain_forecast") is None:
        return f"{words} There is no forecast: the curve has too few labels, or its newest part left it."
    gain, then = (_with_interval(evaluation, name) for name in ("gain_forecast", "accuracy_forecast"))
    return f"{words} Gain {gain}, accuracy then {then}; the bands are of 90 %."


def measure_rows(evaluation: dict[str, Any] | None) -> list[dict[str, Cell]]:
    """Return a row for each class with measures, in the order of the evaluation."""
    per_class = (evaluation or {}).get("per_class") or {}
    confusion = (evaluation or {}).get("confusion")
    rows = []
    for at, (name, figures) in enumerate(per_class.items()):
        row = {"name": text_cell(cut(name, 80)), "labels": number_cell(round(figures.get("labels") or 0.0))}
        for figure in ("precision", "recall", "f1", "auc"):
            row[figure] = Cell(_with_interval(figures, figure), figures.get(figure))
        row["taken_for"] = _taken_for(confusion, at)
        rows.append(row)
    return rows


def _taken_for(confusion: dict[str, Any] | None, at: int) -> Cell:
    """Return the class that was answered most often in the place of a class, with its weight."""
    if confusion is None or at >= len(confusion["weights"]):
        return Cell("")
    others = [(weight, -other) for other, weight in enumerate(confusion["weights"][at]) if other != at]
    weight, other = max(others, default=(0.0, 0))
    if weight <= 0.0:
        return Cell("")
    return Cell(f"{cut(str(confusion['classes'][-other]), 80)} ({weight:,.0f})", weight)


def _with_interval(figures: dict[str, Any], name: str) -> str:
    value, low, high = (figures.get(f"{name}{end}") for end in ("", "_low", "_high"))
    if value is None:
        return ""
    return f"{value:.3f}" if low is None or high is None else f"{value:.3f} ({low:.3f} to {high:.3f})"
