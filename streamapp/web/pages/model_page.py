"""Model page: curve, budget, class shares, events, the tree, and the explanation of an answer."""

from __future__ import annotations

from typing import Any, Final

from nicegui import run, ui

from streamapp.web.clock import now_ms
from streamapp.web.formatting import (
    challenge_in_words,
    cut,
    event_in_words,
    moment,
    number,
    share,
)
from streamapp.web.page_frame import Person
from streamapp.web.pages.charts import (
    budget_chart,
    class_history,
    class_shares,
    drift_timeline,
    forecast_chart,
    learning_curve,
    matched,
    split_in_words,
    tree_chart,
)
from streamapp.web.watch.inspector import Found
from streamapp.web.watch.model_words import accuracy_in_words
from streamapp.web.watch.watching import LOOK_S, Looking, Watching, facts, heading, table, watch_frame

MARKED: Final = 200
"""Events that are drawn into the curve, and shown on the timeline, at most."""
LISTED: Final = 50
NODES_LISTED: Final = 200
TREE_EVENTS: Final = (
    "split",
    "revised",
    "pruned",
    "drift",
    "growth-stopped",
    "thresholds-set",
    "reset",
    "imported",
    "created",
    "promoted",
)


MEASURES: Final = {
    "name": "Class",
    "labels": "Labels",
    "precision": "Precision",
    "recall": "Recall",
    "f1": "F1",
    "auc": "AUC",
    "taken_for": "Most often taken for",
}
"""Columns of the table of measures."""


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
        )
        if evaluation.get(name) is not None
    ]
    return f"{stands} {', '.join(parts)}".strip()


ADVICE: Final = {
    "stop": "Stop: 500 more labels are not worth it.",
    "go on": "Go on asking for labels.",
    "ask again after drift": "Ask again: the stream changed, and older labels do not show what new ones buy.",
}


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


def measure_rows(evaluation: dict[str, Any] | None) -> list[dict[str, str]]:
    """Return a row for each class with measures, in the order of the evaluation."""
    per_class = (evaluation or {}).get("per_class") or {}
    confusion = (evaluation or {}).get("confusion")
    rows = []
    for at, (name, figures) in enumerate(per_class.items()):
        row = {"name": cut(name, 80), "labels": f"{figures.get('labels') or 0.0:,.0f}", "taken_for": ""}
        for figure in ("precision", "recall", "f1", "auc"):
            row[figure] = _with_interval(figures, figure)
        if confusion is not None and at < len(confusion["weights"]):
            others = [
                (weight, -other) for other, weight in enumerate(confusion["weights"][at]) if other != at
            ]
            weight, other = max(others, default=(0.0, 0))
            if weight > 0.0:
                row["taken_for"] = f"{cut(str(confusion['classes'][-other]), 80)} ({weight:,.0f})"
        rows.append(row)
    return rows


def _with_interval(figures: dict[str, Any], name: str) -> str:
    value, low, high = (figures.get(f"{name}{end}") for end in ("", "_low", "_high"))
    if value is None:
        return ""
    return f"{value:.3f}" if low is None or high is None else f"{value:.3f} ({low:.3f} to {high:.3f})"


class ModelPage:
    """The elements of the page on one model in one browser."""

    def __init__(self, watching: Watching, person: Person, key: str) -> None:
        self._watching, self._person, self._key = watching, person, key
        self._seen: tuple[Any, ...] = ()
        self._limit: float | None = None
        with watch_frame("/models", person, watching):
            heading(key)
            self._state = ui.label().props("role=status")
            heading("Accuracy", 2)
            self._curve = _chart(learning_curve({key: []}), "Accuracy against labels")
            heading("What would 500 more labels buy?", 2)
            self._advice = ui.label()
            self._forecast = _chart(forecast_chart(None), "Accuracy against labels, with a forecast")
            heading("Requested labels", 2)
            self._budget = _chart(budget_chart([], None), "Requested labels against records")
            heading("Classes of the labels", 2)
            self._classes = _chart(class_history([]), "Shares of the classes against labels")
            heading("Measures per class", 2)
            self._basis = ui.label()
            self._measures = table(MEASURES, [], "name")
            heading("Challenger", 2)
            self._challenge = ui.label()
            heading("What happened", 2)
            self._timeline = _chart(drift_timeline([]), "Splits and drifts by time").classes("grove-low")
            self._events = table({"time": "Time (UTC)", "labels": "Labels", "said": "Event"}, [], "at")
            with ui.row().classes("items-center"):
                heading("Tree", 2)
                ui.button("Read the tree again", on_click=lambda: self._look(0)).props("no-caps outline")
            self._tree = Looking(watching.inspector, self._draw_model, person)
            heading("One record's explanation", 2)
            with ui.row().classes("items-end"):
                at = (
                    ui.input("Its place in instances, PARTITION:OFFSET")
                    .props("maxlength=40")
                    .classes("grove-place")
                )
                ui.button("Explain", on_click=lambda: self._explain(str(at.value).strip())).props(
                    "no-caps outline"
                )
            self._explanation = Looking(watching.inspector, self._draw_explanation, person)
        ui.timer(LOOK_S, self.tick)
        ui.timer(0.0, self._begin, once=True)

    async def _begin(self) -> None:
        await self.tick()
        await self._look(60_000)

    async def _look(self, fresh_ms: int) -> None:
        await self._tree.look("model", fresh_ms=fresh_ms, key=self._key)

    async def _explain(self, at: str) -> None:
        await self._explanation.look("explanation", key=self._key, at=at)

    async def tick(self) -> None:
        """Show what has come from the topics since the last tick."""
        if not self._person.signed_in():
            ui.navigate.to("/sign-in")
            return
        watched, key = self._watching.watched, self._key
        model = await run.io_bound(watched.model, key)
        if model is None:
            self._state.set_text("Nothing was heard of this model yet.")
            return
        newest = await run.io_bound(watched.evaluation, key)
        (last,) = await run.io_bound(watched.events, key, count=1) or [None]
        seen = (newest, last, self._limit)
        state = f"{model.learner or 'a model'}{', ' + model.state if model.state else ''}: "
        state += f"{number(model.records)} records, {number(model.labels)} labels, "
        state += f"accuracy {accuracy_in_words(model)}, {number(model.splits)} splits, "
        state += f"{number(model.drifts)} drifts, partition {model.partition}; "
        self._state.set_text(f"{state}newest evaluation or event {moment(model.last_ms)} UTC")
        if seen == self._seen:
            return
        self._seen = seen
        points = await run.io_bound(watched.curve, key)
        grown = await run.io_bound(watched.events, key, TREE_EVENTS, count=MARKED)
        events = await run.io_bound(watched.events, key, count=LISTED)
        _show(self._curve, learning_curve({key: points}, grown))
        _show(self._budget, budget_chart(points, self._limit))
        _show(self._classes, class_history(points))
        _show(self._timeline, drift_timeline(grown))
        self._advice.set_text(advice_in_words(newest))
        _show(self._forecast, forecast_chart(newest))
        self._basis.set_text(basis_in_words(newest))
        self._measures.rows = measure_rows(newest)
        self._challenge.set_text(cut(challenge_in_words((newest or {}).get("challenge")), 400))
        self._events.rows = [
            {
                "at": f"{at}",
                "time": moment(event["time_ms"]),
                "labels": number(event["version"]),
                "said": cut(event_in_words(event), 300),
            }
            for at, event in enumerate(events)
        ]

    def _draw_model(self, reply: Found) -> None:
        model, nodes = reply.answer, reply.answer["nodes"]
        summary, spec = model["summary"], model["spec"]
        self._limit = spec["budget"].get("limit")
        splits = matched(nodes, self._watching.watched.splits(self._key))
        positions = ", ".join(f"{source} {at}" for source, at in model["taken"]["positions"].items())
        ui.label(
            f"As it was at the committed offsets ({positions}), looked up {moment(reply.at_ms)} UTC, "
            f"{(now_ms() - reply.at_ms) // 1000} s ago."
        )
        facts(
            {
                "learner": cut(str(spec["learner"]), 300),
                "query": str(spec["query"]),
                "budget": str(spec["budget"]),
                "drift": str(spec["drift"]),
                "features": f"{len(model['attributes']) + model['attributes_left_out']:,}",
                "tree": f"{summary['leaves']:,} leaves, depth {summary['depth']}, {model['bytes']:,} bytes",
            }
        )
        if model["cut"]:
            ui.label("The tree is too large to be drawn: deeper levels are left out.")
        ui.label(
            "Drag to move, turn the wheel to zoom, click a node to fold it; the more records, the larger."
        )
        chart = ui.echart(tree_chart(nodes, model["classes"], splits)).classes("grove-tree")
        chart.props('role=img aria-label="The tree; the table below has the same content"')
        ui.label("Classes of the labels learned").classes("text-bold")
        masses = nodes[0]["masses"] if nodes else []
        _chart(class_shares(model["classes"][: len(masses)], masses), "Shares of the classes").classes(
            "grove-low"
        )
        ui.label("Nodes, parents first").classes("text-bold")
        rows = [_node_row(node, model["classes"], splits) for node in nodes[:NODES_LISTED]]
        columns = {
            "node": "Node",
            "condition": "Condition",
            "records": "Records",
            "own": "Before its split",
            "on": "Further down",
            "votes": "Votes for",
            "purity": "Purity",
            "split": "Split",
        }
        table(columns, rows, "node")
        if len(nodes) > NODES_LISTED:
            ui.label(f"and {len(nodes) - NODES_LISTED:,} more nodes")

        if model["importances"]:
            ui.label("Importances of the attributes").classes("text-bold")
            ui.label(CAVEAT)
            listed = [{"name": cut(name, 80), "share": share(part)} for name, part in model["importances"]]
            table({"name": "Attribute", "share": "Share of the decrease"}, listed, "name")

    def _draw_explanation(self, reply: Found) -> None:
        document = reply.answer
        if document["record"] is None:
            ui.label("There is no record at this offset.")
        elif document["prediction"] is None:
            ui.label(cut(f"The record is of the model {document['record']!r}, or was put aside.", 200))
        else:
            for refused in document["prediction"]["refused"]:
                ui.label(cut(str(refused), 400))
            for answer in document["prediction"]["answers"]:
                shares = sorted(answer["probabilities"].items(), key=lambda item: -item[1])[:10]
                facts(
                    {
                        "instance": cut(str(answer["id"]), 200),
                        "answer": str(answer["label"] or "no class known yet"),
                        "probabilities": ", ".join(f"{name} {share(p)}" for name, p in shares),
                        "because": cut(str(answer["path"]), 2000),
                        "label": f"{'requested' if answer['asked'] else 'not requested'}: {answer['why']}",
                    }
                )
            ui.label({"equal": "The sent answer is equal."}.get(document["prediction"]["sent"], SENT))


CAVEAT: Final = (
    "The decrease of impurity by the tests of each attribute, averaged over the trees. It shows the tests of "
    "these trees, not causes: attributes with many values get too much, and one of several equal attributes "
    "may get all of it."
)
SENT: Final = "The sent answer differs, or is not on its topic any more."


def _node_row(node: dict[str, Any], classes: list[str], splits: Any) -> dict[str, Any]:
    votes = "nothing seen" if node["majority"] is None else cut(classes[node["majority"]])
    inner = bool(node["children"])
    return {
        "node": node["node"],
        "condition": "  " * min(node["depth"], 20) + cut(node["branch"] or "all records", 80),
        "records": number(round(node["records"], 2)),
        "own": number(round(node["own"], 2)) if inner else "",
        "on": number(round(node["records"] - node["own"], 2)) if inner else "",
        "votes": votes,
        "purity": share(node["purity"]),
        "split": split_in_words(splits.get(node["node"])) if inner else "",
    }


def _chart(options: dict[str, Any], label: str) -> ui.echart:
    return ui.echart(options).classes("grove-chart").props(f'role=img aria-label="{label}"')


def _show(chart: ui.echart, options: dict[str, Any]) -> None:
    chart.options.clear()
    chart.options.update(options)
    chart.update()
