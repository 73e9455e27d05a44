"""Model events of a run: their records, drift alerts, evaluations, and lines in the log."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, Final

from core.evaluation import Evaluation, EvaluationDue
from core.events import Drift, Event, GrowthStopped, InputsChanged, Pruned, Split, ThresholdsSet
from core.measures.named_measures import named
from core.schema.schema import Schema
from streamapp.worker.task import counters
from streamapp.worker.task.effects.effects import Alert, Effects, Evaluated, Notice
from streamapp.worker.task.effects.model_happenings import action_of, grown, moved_inputs
from streamapp.worker.task.models.model_store import ModelStore
from topics.columns.records import DriftAlert, EvaluationRecord, Ints32, Ints64, RawRecords

CLASSES_MAX: Final = 20
"""Most classes whose label counts an evaluation lists: with more the record would be as long as a schema."""
NAMED_MAX: Final = 3
"""Most moved inputs in a line of the log."""
ANSWER: Final = {"share": "the share of the answers", "class": "the class of the answers"}
_MEASURES: Final = tuple(field.name for field in fields(Evaluation))


class ModelEvents:
    """The events of one run, in the order of its rows."""

    def __init__(self, store: ModelStore, raw: RawRecords, record: Ints32, ids: Sequence[str]) -> None:
        """record: int32[n] record of each row; ids: n instance ids."""
        self._store = store
        self._raw = raw
        self._record = record
        self._ids = ids
        self._events: list[tuple[int, Event, int, int]] = []  # row, event, version, records
        self._compared: dict[tuple[int, int], dict[str, Any]] = {}  # by model and row

    def add(
        self,
        events: Sequence[Event],
        rows: Ints64,
        version: Callable[[int], int],
        records: Callable[[int], int],
    ) -> None:
        """Take the events of a kernel call on `rows` (int64[m]).

        version: number of labels that its model had learned before row 0..m-1 of the call; records: number of
        records that it had answered after the row.
        """
        for event in events:
            if isinstance(event, Split) or self._is_split(event):
                self._store.traits.open[event.model] = False
            at, answered = (
                (0, 0) if isinstance(event, EvaluationDue) else (version(event.row), records(event.row))
            )
            self._events.append((int(rows[event.row]), event, at, answered))

    def evaluated(self, slot: int) -> list[int]:
        """Return the rows after which an evaluation of a model is due, ascending."""
        due = [(row, event) for row, event, *_ in self._events if isinstance(event, EvaluationDue)]
        return sorted(row for row, event in due if event.model == slot)

    def compared(self, slot: int, row: int, challenge: dict[str, Any]) -> None:
        """Add the state of a challenge to the evaluation of a model that is due after a row."""
        self._compared[slot, row] = challenge

    def _is_split(self, event: Event) -> bool:
        """Return whether a drift installed a background tree that has split; its splits are not events."""
        if not isinstance(event, Drift) or not self._store.traits.open[event.model]:
            return False
        return not self._store.cache.peek(event.model).takes_attributes

    def write(self, effects: Effects) -> None:
        """Add the events to the effects, in the order of the rows."""
        for row, event, version, records in sorted(self._events, key=lambda item: item[0]):
            record = int(self._record[row])
            if isinstance(event, EvaluationDue):
                classes = self._store.traits.schema(event.model).classes
                challenge = self._compared.get((event.model, row))
                effects.evaluations.append(Evaluated(record, _evaluation(event, classes, challenge)))
            elif isinstance(event, Drift):
                effects.alerts.append(Alert(record, self._alert(event, version, row)))
            elif isinstance(event, InputsChanged):
                effects.alerts.append(Alert(record, self._input_alert(event, version, row)))
            elif isinstance(event, Split):
                effects.count(counters.SPLITS)
                effects.splits[event.reason] += 1
            elif isinstance(event, GrowthStopped):
                effects.count(counters.GROWTH_STOPPED)
            if not isinstance(event, EvaluationDue):
                schema = self._store.traits.schema(event.model)
                happening = grown(event, schema, self._raw, record, self._ids[row], version, records)
                effects.happened += [] if happening is None else [happening]
                effects.notices.append(self._notice(event, record))

    def _alert(self, event: Drift, version: int, row: int) -> DriftAlert:
        return DriftAlert(
            level=event.level,
            detector=event.detector,
            error_rate=event.error_rate,
            action=event.action,
            version=version,
            instance_id=self._ids[row],
            node=event.node,
            depth=event.depth,
            classes=self._pair(event),
            member=event.member,
        )

    def _input_alert(self, event: InputsChanged, version: int, row: int) -> DriftAlert:
        return DriftAlert(
            level="input",
            detector=event.detector,
            error_rate=math.nan,
            action=action_of(event),
            version=version,
            instance_id=self._ids[row],
            inputs=moved_inputs(event, self._store.traits.schema(event.model)),
            moved=event.moved_count,
        )

    def _pair(self, event: Drift | Split) -> list[str] | None:
        """Return the classes whose tree an event belongs to, None: the model has one tree for all."""
        if event.pair is None:
            return None
        classes = self._store.traits.schema(event.model).classes
        return [classes[code] for code in event.pair]

    def _where(self, event: Drift | Split) -> str:
        """Return words that identify the tree of an event, if the model has several."""
        if event.member is not None:
            return f" of member {event.member}"
        pair = self._pair(event)
        return "" if pair is None else f" of the tree of {pair[0]!r} and {pair[1]!r}, depth {event.depth},"

    def _notice(self, event: Event, record: int) -> Notice:
        key = self._store.keys[event.model]
        offset = self._raw.offsets[record]
        if isinstance(event, Split):
            schema = self._store.traits.schema(event.model)
            name = schema.attributes[event.attribute].name
            best, second = event.merits
            verb = {"split": "split", "replaced": "split anew", "moved": "moved its threshold"}[event.action]
            if event.former is not None:
                verb += f" (before: {schema.attributes[event.former.attribute].name!r})"
            text = (
                f"node {event.node}{self._where(event)} {verb} on {name!r} ({event.reason}) "
                f"after {event.n:g} labels: "
                f"merits {best:.6g} and {second:.6g}, bound {event.bound:.6g}"
            )
            return Notice("info", text, key, offset)
        if isinstance(event, Pruned):
            name = self._store.traits.schema(event.model).attributes[event.former.attribute].name
            member = "" if event.member is None else f" of member {event.member}"
            text = f"node {event.node}{member}, of {name!r}, became a leaf ({event.reason}) "
            text += f"after {event.n:g} labels"
            return Notice("info", text, key, offset)
        if isinstance(event, Drift):
            node = self._where(event) if event.node is None else f" at node {event.node}{self._where(event)}"
            text = f"{event.detector}:{node} {event.level} at error rate {event.error_rate:.4f}"
            text += f"; {event.action}"
            # A detector may reach its warning level and go back every few hundred labels: every change is an
            # alert, but only a drift is logged.
            return Notice("info" if event.level == "drift" else "debug", text, key, offset)
        if isinstance(event, InputsChanged):
            schema = self._store.traits.schema(event.model)
            text = f"{event.detector}: inputs moved: {inputs_in_words(event, schema)}; {action_of(event)}"
            return Notice("info", text, key, offset)
        if isinstance(event, GrowthStopped):
            text = (
                f"the tree has {event.leaves} leaves and grows no more (max_leaves or max_bytes of its spec)"
            )
            return Notice("warning", text, key, offset)
        if isinstance(event, ThresholdsSet):
            text = (
                f"numeric attributes that got thresholds of their first values (warm_up): {event.attributes}"
            )
            if event.left:
                text += f"; with too few values yet: {event.left}"
            return Notice("info", text, key, offset)
        return Notice("info", repr(event), key, offset)


def inputs_in_words(event: InputsChanged, schema: Schema) -> str:
    """Return the first inputs that moved, with their distances, and the number of the others."""
    words = []
    for moved in event.moved[:NAMED_MAX]:
        is_feature = moved.kind == "feature"
        name = repr(schema.attributes[moved.attribute].name) if is_feature else ANSWER[moved.kind]
        words.append(f"{name} (KS {moved.ks:.3f}, PSI {moved.psi:.3f}, missing {moved.missing[1]:.1%})")
    others = event.moved_count - len(words)
    return ", ".join(words) + (f" and {others} more" if others else "")


def _evaluation(
    event: EvaluationDue, classes: Sequence[str], challenge: dict[str, Any] | None
) -> EvaluationRecord:
    evaluation, judged = event.evaluation, event.judged
    most = sorted((code for code, n in enumerate(judged) if n), key=lambda code: (-judged[code], code))
    figures = {} if event.sums is None else named(event.sums.read(), classes, most[:CLASSES_MAX])
    curve = {} if event.curve is None else event.curve.read().to_dict()
    sets: dict[str, Any] = {} if event.sets is None else event.sets.to_dict()
    return EvaluationRecord(
        **{name: getattr(evaluation, name) for name in _MEASURES},
        **figures,
        **curve,
        **sets,
        version=evaluation.labels,
        classes={classes[code]: judged[code] for code in most[:CLASSES_MAX]},
        challenge=challenge,
    )
