"""Pages on one model without a broker: topics are played into the file, answers come from a list.

tests/broker/test_web_watch.py has a worker and a broker behind the same pages.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from core.spec import Spec
from streamapp.web.application import WebPlan, _server
from streamapp.web.audit_log import AuditLog
from streamapp.web.clock import now_ms
from streamapp.web.guard import Entry
from streamapp.web.pages.surroundings import Surroundings
from streamapp.web.queue.label_queue import LabelQueue
from streamapp.web.queue.overview import WaitingRecord
from streamapp.web.store import Store
from streamapp.web.tree.outline_rows import OutlineRows
from streamapp.web.users import Sessions
from streamapp.web.watch.inspector import InspectionError, Inspector
from streamapp.web.watch.watched import Evaluated, Said, Watched
from streamapp.web.watch.watching import Watching
from tests.unit.streamapp.web.tree.trees import FEATURES, random_tree
from topics.columns.records import EvaluationRecord, ModelEvent
from topics.definitions import TopicNames

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what its imports complain of is not ours
    from nicegui.testing.general import nicegui_reset_globals

KEY = "shop <1>"
PATIENCE_S = 120.0
HOUR_MS = 3_600_000
DRIFT_AT = 600
GAP = {"gap": 0.2, "bound": 0.1, "labels": 400.0, "reason": "gap"}


class PlayedInspector(Inspector):
    """Answers in the place of the process that rebuilds models."""

    def __init__(self, nodes: list[dict[str, Any]]) -> None:
        super().__init__({})
        self._tree = OutlineRows(nodes)
        self.asked: list[str] = []

    def _ask(self, question: bytes) -> Any:
        asked = orjson.loads(question)
        self.asked.append(asked["ask"])
        answer = getattr(self, f"_{asked['ask'].replace('-', '_')}_answer", None)
        if answer is None:
            message = f"{asked['ask']} is not played here"
            raise InspectionError(message)
        return orjson.loads(orjson.dumps(answer(asked)))

    def _model_answer(self, _: dict[str, Any]) -> Any:
        spec = Spec.parse({"learner": "h-tree", "query": "random", "budget": {"name": "count", "limit": 0.5}})
        leaves = sum(not row["children"] for row in self._tree.rows)
        return {
            "taken": {"positions": {"instances": 4711, "labels": 812}},
            "frozen": False,
            "spec": spec.to_dict(),
            "classes": ["good", "fraud"],
            "attributes": [[name, "numeric"] for name in FEATURES],
            "attributes_left_out": 0,
            "summary": {"leaves": leaves, "depth": max(row["depth"] for row in self._tree.rows)},
            "bytes": 123_456,
            "nodes": self._tree.rows,
            "importances": [["amount", 0.7], ["age", 0.3]],
            "cut": False,
        }

    def _path_answer(self, asked: dict[str, Any]) -> Any:
        deepest = max(self._tree.rows, key=lambda row: row["depth"])["node"]
        if asked.get("at") == "9:9":
            message = "record='9:9' must be a record of instances: there is none at this offset"
            raise InspectionError(message)
        return {
            "label": "fraud",
            "probabilities": {"fraud": 0.9312, "good": 0.0688},
            "version": 812,
            "conditions": self._tree.conditions(deepest),
        }

    def _explanation_answer(self, asked: dict[str, Any]) -> Any:
        answer = {
            "id": "order-4711",
            "label": "fraud",
            "probabilities": {"fraud": 0.9312, "good": 0.0688},
            "version": 812,
            "path": "amount > 40 and country = DE",
            "asked": False,
            "why": "the budget was closed: 500 of 1000 records had been requested (limit 0.5)",
        }
        return {
            "at": asked["at"],
            "record": KEY,
            "prediction": {"answers": [answer], "refused": [], "sent": "equal"},
        }


def _figures(labels: float, value: float) -> dict[str, float]:
    ends = {"": 0.0, "_low": -0.02, "_high": 0.02}
    return {"labels": labels} | {
        f"{name}{end}": value + shift
        for name in ("precision", "recall", "f1", "auc")
        for end, shift in ends.items()
    }


def _curve(labels: int) -> dict[str, Any]:
    """Return accuracies by intervals of 100 labels."""
    starts = range(0, labels - 99, 100)
    values = [0.93 - 0.25 / (1 + start / 100) for start in starts]
    return {
        "labels": [[start, start + 100] for start in starts],
        "accuracy": [[value, value - 0.02, value + 0.02] for value in values],
    }


def evaluations(n: int, now: int) -> list[Evaluated]:
    """Evaluations of a model that learns, meets a drift at DRIFT_AT labels, and learns again."""
    made = []
    for at in range(1, n + 1):
        labels = 25 * at
        since = labels if labels < DRIFT_AT else labels - DRIFT_AT
        recent = 0.94 - 0.3 / (1 + since / 60)
        half = 0.3 / (labels**0.5)
        record = EvaluationRecord(
            *(5 * labels, labels, 0.5 * recent + 0.42, recent, 0.5, 0.5, 0.5, 0.5, 0.2),
            version=labels,
            asked=labels + 30,
            answered=labels,
            declined=at // 2,
            outstanding=30 - at // 2,
            accuracy_unbiased=recent - 0.01,
            accuracy_unbiased_low=recent - 0.01 - half,
            accuracy_unbiased_high=min(1.0, recent - 0.01 + half),
            classes={"good": round(0.7 * labels), "fraud": labels - round(0.7 * labels)},
            measured="records",
            accuracy_powered=recent,
            per_class={
                "good": _figures(0.7 * labels, 0.95),
                "fraud": _figures(0.3 * labels, 0.82),
            },
            confusion={
                "classes": ["good", "fraud"],
                "weights": [[0.65 * labels, 0.05 * labels], [30.0, 330.0]],
            },
            advice="go on",
            learning_curve=_curve(labels),
            accuracy_forecast=0.93,
            accuracy_forecast_low=0.91,
            accuracy_forecast_high=0.95,
            gain_forecast=0.01,
            gain_forecast_low=0.002,
            gain_forecast_high=0.018,
        )
        made.append(Evaluated(KEY, 2, now - (n - at) * HOUR_MS // 4, record))
    return made


def events(now: int) -> list[Said]:
    """Events of the same model: its creation, thirty splits, a drift."""
    detail: dict[str, Any] = {"learner": "h-tree", "query": "random", "budget": "count", "drift": "ddm"}
    given: list[tuple[str, int, dict[str, Any]]] = [("created", 0, detail)]
    given += [
        (
            "split",
            40 * at,
            {"node": at, "attribute": "amount", "test": "numeric", "threshold": float(at)} | GAP,
        )
        for at in range(1, 31)
    ]
    given.append(
        ("drift", DRIFT_AT, {"level": "drift", "detector": "ddm", "error_rate": 0.31, "action": "new tree"})
    )
    given.sort(key=lambda item: item[1])
    return [
        Said(
            KEY,
            2,
            ModelEvent(
                kind,  # type: ignore[arg-type]
                "grove.instances" if at % 2 == 0 else "grove.labels",
                at,
                now - (1300 - at) * HOUR_MS // 100,
                at,
                5 * at,
                f"order-{at}",
                more,
            ),
        )
        for kind, at, more in given
    ]


@dataclass(frozen=True, slots=True)
class Rig:
    """The served pages, the file that they draw from, and the inspector that they ask."""

    address: str
    watched: Watched
    inspector: PlayedInspector


@contextmanager
def served(folder: Path, n_nodes: int = 300) -> Iterator[Rig]:
    """Serve all pages for one model with a tree of at least so many nodes."""
    store, watched = Store(":memory:"), Watched(":memory:")
    inspector = PlayedInspector(random_tree(n_nodes))
    watched.begin({"prefix": "t."})
    now = now_ms()
    watched.apply([], events(now), {})
    watched.apply(evaluations(48, now), [], {})
    queue = LabelQueue(store)
    around = Surroundings(queue, lambda: queue.counts(now_ms()), lambda: "")
    entry = Entry(Sessions(store), None, "ann", True, AuditLog(store))
    ready, address = threading.Event(), list[str]()

    def started(where: str) -> None:
        address.append(where)
        ready.set()

    waiting = [WaitingRecord("order-9", now - 90_000, {"amount": 12.5, "country": "DE"})]
    watching = Watching(watched, inspector, folder, lambda *_: None, waiting=lambda _: waiting)
    with nicegui_reset_globals():
        server = _server(WebPlan(folder, TopicNames(), port=0), around, entry, started, watching)
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            assert ready.wait(PATIENCE_S)
            yield Rig(address[0], watched, inspector)
        finally:
            server.should_exit = True
            thread.join(PATIENCE_S)
            inspector.close()
            watched.close()
            store.close()
