"""Held spec: the model of a key keeps one spec from a point of the log on, in spite of controls."""

from __future__ import annotations

from typing import Literal

from core.errors import SpecError
from core.model.model import Model
from core.spec import Spec
from streamapp.worker.task.models.model_keys import NO_MODEL
from streamapp.worker.task.task import CODE, Task, TaskRun
from topics.columns.records import Controls

Beginning = Literal["continued", "new", "created-later"]
"""How a model begins under the spec: it keeps what it has learned, as after `configure`; it is a new one with
the same schema, as after `reset`; or it does not exist yet."""


def spec_of(task: Task, key: str) -> Spec | None:
    """Return the spec of a key's model, or the spec that the model will have; None: it has no model."""
    slot = task.models.keys.slot(key)
    if slot != NO_MODEL:
        return task.models.cache.plan(slot).spec
    return task.awaited.get(key)


class HeldSpec:
    """Keeps the model of a key under a spec."""

    def __init__(self, key: str, spec: Spec, task: Task) -> None:
        self.key = key
        self.spec = spec
        self.overridden = 0
        """Controls of the log that set another spec, and were passed over or corrected."""
        self._task = task
        self._is_ours = False  # the awaited spec is not of the log: the first instance would make the model

    def hold(self) -> Beginning:
        """Give the model, or the model to be created, the spec; GroveError if it cannot have it."""
        store, awaited = self._task.models, self._task.awaited
        slot = store.keys.slot(self.key)
        if slot == NO_MODEL:
            self._is_ours = self._is_ours or self.key not in awaited
            if self._task.config.models_auto_create or not self._is_ours:
                awaited.put(self.key, self.spec)
            return "created-later"
        self._is_ours = False
        if store.keys.challenger(self.key) != NO_MODEL:
            store.drop(slot)
        if store.cache.plan(slot).spec == self.spec:
            return "continued"
        try:
            store.configure(slot, self.spec)
        except SpecError:
            schema = store.traits.schema(slot)
            self.spec.learner.check_schema(schema)
            store.replace(slot, Model.create(self.spec, schema))
            self._task.pending.forget_model(slot)
            return "new"
        return "continued"

    def control(self, run: TaskRun, log: Task) -> None:
        """Process controls; `log`: the task that has processed them as they were."""
        if run.dead:
            self._task.process(TaskRun("controls", run.raw, dead=True))
            return
        (batch,) = CODE["controls"].decode([run.raw], log.config.limits)
        controls = {control.record: control for control in batch.items}
        for record in range(len(run.raw)):
            part, control = run.raw.part(record, record + 1), controls.get(record)
            if control is None or control.key != self.key:
                self._task.process(TaskRun("controls", part))
                continue
            if control.command in ("configure", "challenge", "promote", "drop"):
                self.overridden += 1
                self._task.process(TaskRun("controls", part, Controls([], [])))  # its time counts
                continue
            if self._is_ours:
                self._task.awaited.discard(self.key)
                self._is_ours = False
            self._task.process(TaskRun("controls", part))
            self.overridden += "spec" in control.body
            self.hold()
